/** What the checks of all dialects share. A fault is a sentence that begins with where it is. */
export type Fields = Record<string, unknown>

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {})
export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** An id that every provider takes. */
const CALL_ID = /^[a-zA-Z0-9_-]+$/
export const isCallId = (value: unknown): boolean => typeof value === 'string' && CALL_ID.test(value)

/** Keys that the provider does not know, where it refuses those. */
export const unknownKeys = (at: string, fields: Fields, known: readonly string[]): string[] =>
  Object.keys(fields)
    .filter((key) => !known.includes(key))
    .map((key) => `${at}: unknown field ${key}`)

/** Fields that hold null. What stands under one of `free` belongs to the user and may hold anything. */
export function nullFields(at: string, value: unknown, free: readonly string[]): string[] {
  if (value === null) return [`${at} is null`]
  if (Array.isArray(value)) return value.flatMap((entry, index) => nullFields(`${at}[${index}]`, entry, free))
  if (!isFields(value)) return []
  return Object.entries(value).flatMap(([key, entry]) =>
    free.includes(key) ? [] : nullFields(`${at}.${key}`, entry, free),
  )
}

/** A message with its place in the body. */
export type Placed = { at: string; fields: Fields }

export const placed = (at: string, list: unknown): Placed[] =>
  listOf(list).map((entry, index) => ({ at: `${at}[${index}]`, fields: fieldsOf(entry) }))

/** Names that are taken twice. */
export const repeated = (what: string, names: readonly unknown[]): string[] =>
  names
    .filter((name, index) => names.indexOf(name) !== index)
    .map((name) => `${what} ${String(name)} is there twice`)

/** The schema of a tool's arguments: an object, described as one. */
export function schemaFaults(at: string, schema: unknown): string[] {
  if (!isFields(schema)) return [`${at} is no object`]
  const { type, properties, required } = schema
  const faults: string[] = []
  if (textOf(type).toLowerCase() !== 'object') faults.push(`${at}.type is not object`)
  if (properties !== undefined && !isFields(properties)) faults.push(`${at}.properties is no object`)
  for (const name of listOf(required)) {
    if (!(textOf(name) in fieldsOf(properties)))
      faults.push(`${at}.required names ${String(name)}, which it lacks`)
  }
  return faults
}

/** An object that came as its JSON text. */
export function isJsonObject(text: unknown): boolean {
  if (typeof text !== 'string') return false
  try {
    return isFields(JSON.parse(text))
  } catch {
    return false
  }
}
