import { err, ok, type Result } from '../result.ts'

/** One escape of a JSON text, taken whole: a pair of surrogates, any other `\u`, or a short one like `\\`. */
const ESCAPES = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u(?<unit>[\da-fA-F]{4})|[^u])/g

const MIGHT_HOLD_SURROGATES = /\\u[dD]/

/** Tells whether a JSON text writes half a character by an escape. Such a string has no UTF-8 form. */
function hasLoneSurrogate(text: string): boolean {
  if (!MIGHT_HOLD_SURROGATES.test(text)) return false
  for (const { groups } of text.matchAll(ESCAPES)) {
    if (/^[dD][89a-fA-F]/.test(groups?.unit ?? '')) return true
  }
  return false
}

/**
 * What a text frame holds. A text with half a character in it is refused like any other that is not JSON: it could be
 * neither stored nor compared as what was sent. Of a key that is given twice the last one counts.
 */
export function parseJson(text: string): Result<unknown, 'not_json'> {
  try {
    return hasLoneSurrogate(text) ? err('not_json') : ok(JSON.parse(text))
  } catch {
    return err('not_json')
  }
}

/** A JSON object, as opposed to null, a list and everything that has no fields. */
export const isJsonObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A version that this or another release might speak: what is none is a broken frame, not another version (RF 3, 9). */
export const isVersion = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0
