import { fromBase64url, toBase64url } from '../../protocol/base64url.ts'
import { type EnvelopeVersion, envelopeVersion, KEY_ID_PREFIXES } from '../../protocol/execution/sealed.ts'

/** XChaCha20-Poly1305 takes 256 bits. */
export const KEY_BYTES = 32

/** The key of sealed sessions. It stays with clients: the router only ever sees `keyId`. */
export type SessionKey = {
  /** `kf_` or `kf2_`, and the key's SHA-256 in base64url. */
  readonly keyId: string
  readonly version: EnvelopeVersion
  /** 32 bytes. */
  readonly bytes: Uint8Array<ArrayBuffer>
}

/** 43 letters are the 32 bytes of SHA-256. */
const FINGERPRINT = /^[A-Za-z0-9_-]{43}$/

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
  return { keyId: `${KEY_ID_PREFIXES[version]}${toBase64url(digest)}`, version, bytes }
}

/** Which envelopes go with a key id; null when it is none of ours. */
export function versionOfKeyId(keyId: string): EnvelopeVersion | null {
  const version = envelopeVersion(keyId)
  const prefix = KEY_ID_PREFIXES[version]
  return keyId.startsWith(prefix) && FINGERPRINT.test(keyId.slice(prefix.length)) ? version : null
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
