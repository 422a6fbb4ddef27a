import { fromBase64url, toBase64url } from './base64url.ts'

/** XChaCha20-Poly1305 takes 256 bits. */
export const KEY_BYTES = 32

/** The form of the envelopes of a session; its key decides it for life (D48). */
export type EnvelopeVersion = 1 | 2

/** The key of sealed sessions. It stays with clients: the router only ever sees `keyId`. */
export type SessionKey = {
  /** `kf_` or `kf2_`, and the key's SHA-256 in base64url. */
  readonly keyId: string
  readonly version: EnvelopeVersion
  /** 32 bytes. */
  readonly bytes: Uint8Array<ArrayBuffer>
}

const PREFIXES: Readonly<Record<EnvelopeVersion, string>> = { 1: 'kf_', 2: 'kf2_' }

/** 43 letters are the 32 bytes of SHA-256. */
const KEY_ID = /^kf(2?)_[A-Za-z0-9_-]{43}$/

/** A new random key. */
export const generateKey = (version: EnvelopeVersion): Promise<SessionKey> =>
  sessionKey(crypto.getRandomValues(new Uint8Array(KEY_BYTES)), version)

/** The key that some bytes are, with its fingerprint (EC 17.1). Throws unless there are 32. */
export async function sessionKey(
  bytes: Uint8Array<ArrayBuffer>,
  version: EnvelopeVersion,
): Promise<SessionKey> {
  if (bytes.length !== KEY_BYTES) throw new RangeError(`a key has ${KEY_BYTES} bytes, not ${bytes.length}`)
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return { keyId: `${PREFIXES[version]}${toBase64url(digest)}`, version, bytes }
}

/** Which envelopes go with a key id; null when it is none of ours. */
export function versionOfKeyId(keyId: string): EnvelopeVersion | null {
  const match = KEY_ID.exec(keyId)
  if (match === null) return null
  return match[1] === '2' ? 2 : 1
}

/** The key as it is written down: 43 letters of base64url. */
export const keyText = (key: SessionKey): string => toBase64url(key.bytes)

/** Reads a key that was written down; null unless it is one whose fingerprint is `keyId`. */
export async function parseKeyText(keyId: string, text: string): Promise<SessionKey | null> {
  const version = versionOfKeyId(keyId)
  const bytes = fromBase64url(text)
  if (version === null || bytes?.length !== KEY_BYTES) return null
  const key = await sessionKey(bytes, version)
  return key.keyId === keyId ? key : null
}
