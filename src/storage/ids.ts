import { v7 } from 'uuid'

/** A new UUIDv7: grows with time, so that ids sort as they were made (D22). */
export const newId = (): string => v7()
