/** Standard base64 with padding (RFC 4648, section 4). As strict as `base64url.ts`: each byte string has one spelling. */

import { fromBase64url, toBase64url } from './base64url.ts'

/** Bytes for a text without padding inside: a multiple of three. */
const BYTES_AT_ONCE = 96 * 1024

/** The bytes of a text; null for any other character, missing padding, or bits left over that are not zero. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  if (text.length % 4 !== 0 || /[-_]|=[^=]|={3}/.test(text)) return null
  return fromBase64url(
    text
      .replace(/={1,2}$/, '')
      .replaceAll('+', '-')
      .replaceAll('/', '_'),
  )
}

/** The text of some bytes that come in pieces of any length. */
export function toBase64(pieces: Iterable<Uint8Array>): string {
  let text = ''
  let held = new Uint8Array(BYTES_AT_ONCE)
  let length = 0
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      const taken = Math.min(piece.length - at, BYTES_AT_ONCE - length)
      held.set(piece.subarray(at, at + taken), length)
      at += taken
      length += taken
      if (length < BYTES_AT_ONCE) break
      text += letters(held)
      length = 0
    }
  }
  held = held.subarray(0, length)
  const last = letters(held)
  return text + last + '='.repeat((4 - (last.length % 4)) % 4)
}

const letters = (bytes: Uint8Array): string => toBase64url(bytes).replaceAll('-', '+').replaceAll('_', '/')
