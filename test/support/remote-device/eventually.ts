import { expect } from 'vitest'

/** On a busy machine, too. */
const PATIENCE_MS = 8_000

/** `expect.poll` for what the router learns from somebody else: a socket that was hung up, say. */
export const eventually = <T>(look: () => T) => expect.poll(look, { timeout: PATIENCE_MS })
