/**
 * base64url without padding (RFC 4648, section 5). Reading is strict: each byte string has exactly one spelling, so that
 * two clients never disagree on whether an envelope, a key or a fingerprint is the same.
 */

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

const CODES = new TextEncoder().encode(ALPHABET)

/** The value of each ASCII letter; 255 = not in the alphabet. */
const VALUES = new Uint8Array(128).fill(255)
CODES.forEach((code, value) => {
  VALUES[code] = value
})

const ASCII = new TextDecoder()

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
  return ASCII.decode(out)
}

/** The bytes of a text; null for padding, any other character, an impossible length, or bits left over that are not zero. */
export function fromBase64url(text: string): Uint8Array<ArrayBuffer> | null {
  if (text.length % 4 === 1) return null
  const out = new Uint8Array(Math.floor((text.length * 3) / 4))
  let at = 0
  let bits = 0
  let held = 0
  for (let i = 0; i < text.length; i++) {
    const value = VALUES[text.charCodeAt(i)] ?? 255
    if (value === 255) return null
    held = ((held & 0xff) << 6) | value
    bits += 6
    if (bits >= 8) {
      bits -= 8
      out[at++] = held >> bits
    }
  }
  return (held & ((1 << bits) - 1)) === 0 ? out : null
}
