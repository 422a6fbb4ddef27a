/**
 * API keys and session tokens (EC 23). Both carry more than 256 random bits, so a plain SHA-256 digest is what is kept
 * of them, and a slow hash would only burn CPU (docs/decisions.md).
 */

const KEY_PREFIX = 'sk-smista-api01-'
const KEY_SECRET_CHARS = 96
const TOKEN_SECRET_CHARS = 64
const KEY_ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const TOKEN_ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789'

const compact = (uuid: string): string => uuid.replaceAll('-', '')

const dashed = (hex: string): string =>
  `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`

/** `sk-smista-api01-<user id, 32 hex digits>-<96 alphanumeric characters>`. */
export const makeApiKey = (userId: string): string =>
  `${KEY_PREFIX}${compact(userId)}-${randomText(KEY_ALPHABET, KEY_SECRET_CHARS)}`

/** `<token id, 32 hex digits>-<64 characters a–z, 0–9>`. */
export const makeToken = (tokenId: string): string =>
  `${compact(tokenId)}-${randomText(TOKEN_ALPHABET, TOKEN_SECRET_CHARS)}`

/** The user that a well-formed key names, or null. */
export function keyUserId(key: string): string | null {
  const match = /^sk-smista-api01-([0-9a-f]{32})-[A-Za-z0-9]{96}$/.exec(key)
  return match?.[1] === undefined ? null : dashed(match[1])
}

/** The token id in a well-formed token, or null. */
export function tokenIdOf(token: string): string | null {
  const match = /^([0-9a-f]{32})-[a-z0-9]{64}$/.exec(token)
  return match?.[1] === undefined ? null : dashed(match[1])
}

/** Compares two digests in a time that does not depend on where they differ. */
export function sameDigest(a: string, b: string): boolean {
  const encoder = new TextEncoder()
  const left = encoder.encode(a)
  const right = encoder.encode(b)
  return left.byteLength === right.byteLength && crypto.subtle.timingSafeEqual(left, right)
}

/** Uniform over the alphabet: bytes that would favour its first characters are thrown away. */
function randomText(alphabet: string, length: number): string {
  const limit = 256 - (256 % alphabet.length)
  let text = ''
  while (text.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length))) {
      if (byte < limit && text.length < length) text += alphabet[byte % alphabet.length]
    }
  }
  return text
}
