/**
 * base64url without padding (RFC 4648, section 5). Reading is strict: each byte string has exactly one spelling, so that
 * two programs never disagree on whether an envelope, a key or a fingerprint is the same.
 */

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const ONLY_ALPHABET = /^[A-Za-z0-9_-]*$/

const CODES = Uint8Array.from(ALPHABET, (letter) => letter.charCodeAt(0))

/** The value of each ASCII letter that is in the alphabet. */
const VALUES = new Uint8Array(128)
CODES.forEach((code, value) => {
  VALUES[code] = value
})

/** Letters that become text in one call: as its arguments they have to fit the stack. */
const LETTERS_AT_ONCE = 8192

/** The text of some bytes: letters, digits, `-` and `_`. */
export function toBase64url(bytes: Uint8Array): string {
  const out = new Uint8Array(Math.ceil((bytes.length * 4) / 3))
  let at = 0
  let bits = 0
  let held = 0
  for (const byte of bytes) {
    held = ((held & 0x3f) << 8) | byte
    bits += 8
    while (bits >= 6) {
      bits -= 6
      out[at++] = CODES[(held >> bits) & 0x3f] ?? 0
    }
  }
  if (bits > 0) out[at] = CODES[(held << (6 - bits)) & 0x3f] ?? 0
  let text = ''
  for (let from = 0; from < out.length; from += LETTERS_AT_ONCE)
    text += String.fromCharCode(...out.subarray(from, from + LETTERS_AT_ONCE))
  return text
}

/**
 * How many bytes a text stands for, without decoding it; null for padding, any other character, an impossible length, or
 * bits left over that are not zero.
 */
export function base64urlBytes(text: string): number | null {
  const rest = text.length % 4
  if (rest === 1 || !ONLY_ALPHABET.test(text)) return null
  const last = VALUES[text.charCodeAt(text.length - 1)] ?? 0
  // Two letters carry 12 bits for one byte, three carry 18 for two.
  const leftOver = rest === 2 ? 0b1111 : rest === 3 ? 0b11 : 0
  return (last & leftOver) === 0 ? Math.floor((text.length * 3) / 4) : null
}

/** The bytes of a text; null where `base64urlBytes` is. */
export function fromBase64url(text: string): Uint8Array<ArrayBuffer> | null {
  const length = base64urlBytes(text)
  if (length === null) return null
  const out = new Uint8Array(length)
  let at = 0
  let bits = 0
  let held = 0
  for (let i = 0; i < text.length; i++) {
    held = ((held & 0xff) << 6) | (VALUES[text.charCodeAt(i)] ?? 0)
    bits += 6
    if (bits >= 8) {
      bits -= 8
      out[at++] = held >> bits
    }
  }
  return out
}
