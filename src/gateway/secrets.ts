import { formatCode } from '../core/gateway/codes.ts'
import { toBase64url } from '../protocol/base64url.ts'
import { toHex } from '../protocol/hex.ts'
import { CODE_LENGTH } from '../protocol/remote/limits.ts'

/**
 * What the gateway gives out and keeps only digests of. Tokens and credentials carry 256 random bits, so SHA-256 is
 * enough of them (docs/decisions.md).
 */

const SECRET_BYTES = 32
/** Of a device, a rotation or a connection request: 16 hex digits. */
const ID_BYTES = 8
const CODES = 10 ** CODE_LENGTH

const randomBytes = (length: number): Uint8Array<ArrayBuffer> =>
  crypto.getRandomValues(new Uint8Array(length))

/** A token or a credential: 43 characters of base64url. */
export const newSecret = (): string => toBase64url(randomBytes(SECRET_BYTES))

export const newShortId = (): string => toHex(randomBytes(ID_BYTES))

/** 32 hex digits. */
export const newInstanceId = (): string => toHex(randomBytes(2 * ID_BYTES))

/** A code of eight digits, each equally likely, as it is shown: `dddd-dddd`. */
export function newCode(): string {
  const limit = 2 ** 32 - (2 ** 32 % CODES)
  for (;;) {
    const [value = limit] = crypto.getRandomValues(new Uint32Array(1))
    // Values beyond the last whole round would favour the low codes.
    if (value < limit) return formatCode(value % CODES)
  }
}

/** What a rotation hands out. */
export type Successor = { refreshToken: string; accessToken: string; rotationId: string }

/**
 * The successor of a refresh token under a secret of this rotation. The same token and secret give the same again, which
 * is how a lost answer is repeated without being kept; the secret alone gives nothing (D40).
 */
export async function deriveSuccessor(presented: string, secret: string): Promise<Successor> {
  const key = await crypto.subtle.importKey('raw', utf8(presented), 'HKDF', false, ['deriveBits'])
  const derive = async (purpose: string, bytes: number): Promise<Uint8Array> =>
    new Uint8Array(
      await crypto.subtle.deriveBits(
        { name: 'HKDF', hash: 'SHA-256', salt: utf8(secret), info: utf8(`switchyard ${purpose}`) },
        key,
        bytes * 8,
      ),
    )
  const [refresh, access, rotation] = await Promise.all([
    derive('refresh token', SECRET_BYTES),
    derive('access token', SECRET_BYTES),
    derive('rotation id', ID_BYTES),
  ])
  return {
    refreshToken: toBase64url(refresh),
    accessToken: toBase64url(access),
    rotationId: toHex(rotation),
  }
}

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)
