import { assert } from '../../protocol/assert.ts'
import { CODE_LENGTH } from '../../protocol/remote/limits.ts'

const CODE_VALUES = 10 ** CODE_LENGTH
const HALF = CODE_LENGTH / 2

/** The manual code of a number from 0 to 99,999,999, as it is shown: `0000-0042`. */
export function formatCode(value: number): string {
  assert(Number.isInteger(value) && value >= 0 && value < CODE_VALUES, 'a pairing code is out of its range')
  const digits = String(value).padStart(CODE_LENGTH, '0')
  return `${digits.slice(0, HALF)}-${digits.slice(HALF)}`
}

/** What was typed, without hyphens and spaces: the form that is hashed. Whatever else is in it stays, and is wrong. */
export function normalizeCode(text: string): string {
  return text.replace(/[- ]/g, '')
}

/** Whether two digests are one, in a time that does not tell where they differ. Only their length may show. */
export function sameDigest(a: string, b: string): boolean {
  if (a.length !== b.length) return false
  let difference = 0
  for (let at = 0; at < a.length; at++) difference |= a.charCodeAt(at) ^ b.charCodeAt(at)
  return difference === 0
}
