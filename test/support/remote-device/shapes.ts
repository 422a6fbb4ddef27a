/** A small language for "what a frame of the contract looks like". A fault is a sentence that begins with its place. */

export type Fields = Record<string, unknown>

/** What is wrong with a value; nothing when it is right. */
export type Check = (value: unknown, at: string) => string[]

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const shown = (value: unknown): string => JSON.stringify(value)?.slice(0, 80) ?? String(value)

const must =
  (what: string, holds: (value: unknown) => boolean): Check =>
  (value, at) =>
    holds(value) ? [] : [`${at} is not ${what}: ${shown(value)}`]

export const text: Check = must('a text', (value) => typeof value === 'string')
export const someText: Check = must(
  'a text with something in it',
  (value) => typeof value === 'string' && value !== '',
)
export const flag: Check = must('true or false', (value) => typeof value === 'boolean')
/** An integer that every JSON reader keeps exactly. */
export const count: Check = must('a count', (value) => Number.isSafeInteger(value) && Number(value) >= 0)
export const exactly = (wanted: unknown): Check => must(shown(wanted), (value) => value === wanted)
export const matching = (pattern: RegExp): Check =>
  must(`like ${pattern.source}`, (value) => typeof value === 'string' && pattern.test(value))
export const oneOf = (...words: readonly string[]): Check =>
  must(`one of ${words.join(', ')}`, (value) => typeof value === 'string' && words.includes(value))
/** RFC 3339 in UTC. */
export const time: Check = must(
  'a time in UTC',
  (value) =>
    typeof value === 'string' &&
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(value) &&
    !Number.isNaN(Date.parse(value)),
)
/** What is not looked into any further. */
export const anything: Check = () => []

export const listOf =
  (each: Check): Check =>
  (value, at) =>
    Array.isArray(value)
      ? value.flatMap((entry, index) => each(entry, `${at}[${index}]`))
      : [`${at} is no list: ${shown(value)}`]

/** An object with these fields and no others: the router under test sends nothing that the contract does not name. */
export const object =
  (required: Readonly<Record<string, Check>>, optional: Readonly<Record<string, Check>> = {}): Check =>
  (value, at) => {
    if (!isFields(value)) return [`${at} is no object: ${shown(value)}`]
    const known = { ...required, ...optional }
    return [
      ...Object.keys(required)
        .filter((name) => !Object.hasOwn(value, name))
        .map((name) => `${at}.${name} is missing`),
      ...Object.entries(value).flatMap(([name, entry]) => {
        const check = Object.hasOwn(known, name) ? known[name] : undefined
        return check === undefined ? [`${at}.${name} is unknown`] : check(entry, `${at}.${name}`)
      }),
    ]
  }

/** Every place that holds null: an absent field is left out, never sent as null. */
export function nulls(value: unknown, at: string): string[] {
  if (value === null) return [`${at} is null`]
  if (Array.isArray(value)) return value.flatMap((entry, index) => nulls(entry, `${at}[${index}]`))
  return isFields(value)
    ? Object.entries(value).flatMap(([name, entry]) => nulls(entry, `${at}.${name}`))
    : []
}

/** UTF-8 bytes of a text. Known to every runtime that devices are played in. */
export const byteLength = (content: string): number => new TextEncoder().encode(content).length
