import { z } from 'zod'
import { base64urlBytes } from '../base64url.ts'
import { ContentRef, Count } from './ids.ts'

/** One sealed piece of content. The router keeps it as it came (EC 17.1). */
export const EncryptedPayload = z
  .object({
    version: Count,
    algorithm: z.string(),
    key_id: z.string(),
    nonce: z.string(),
    ciphertext: z.string(),
  })
  .meta({ id: 'EncryptedPayload' })
export type EncryptedPayload = z.infer<typeof EncryptedPayload>

/** The cipher of every envelope, and the sizes that come with it (EC 17.1). */
export const ENVELOPE_ALGORITHM = 'xchacha20poly1305'
export const ENVELOPE_NONCE_BYTES = 24
/** Stands behind each ciphertext, so that of an empty text nothing else is left. */
export const ENVELOPE_TAG_BYTES = 16

/** The form of the envelopes of a session; its key decides it for life (D48). */
export type EnvelopeVersion = 1 | 2

/** How the id of a key begins, by the version of the envelopes that are written with it (D48). */
export const KEY_ID_PREFIXES: Readonly<Record<EnvelopeVersion, string>> = { 1: 'kf_', 2: 'kf2_' }

/** The one version that goes with a key, whatever else its id is: only keys of version 2 bind envelopes to their place. */
export const envelopeVersion = (keyId: string): EnvelopeVersion =>
  keyId.startsWith(KEY_ID_PREFIXES[2]) ? 2 : 1

/**
 * What is wrong with the form of an envelope under this key, as the end of a sentence; null for one that may be kept.
 * Whether it opens only the key itself tells.
 */
export function envelopeProblem(payload: EncryptedPayload, keyId: string): string | null {
  const version = envelopeVersion(keyId)
  if (payload.key_id !== keyId) return `it is sealed with another key than that of this session, ${keyId}`
  if (payload.version !== version) return `this session takes envelopes of version ${version}`
  if (payload.algorithm !== ENVELOPE_ALGORITHM) return `the algorithm must be ${ENVELOPE_ALGORITHM}`
  if (base64urlBytes(payload.nonce) !== ENVELOPE_NONCE_BYTES)
    return `the nonce must be ${ENVELOPE_NONCE_BYTES} bytes in base64url without padding`
  const bytes = base64urlBytes(payload.ciphertext)
  if (bytes === null || bytes < ENVELOPE_TAG_BYTES)
    return `the ciphertext must be at least ${ENVELOPE_TAG_BYTES} bytes in base64url without padding`
  return null
}

/** Sealed content by reference. */
export const SealedMap = z.record(ContentRef, EncryptedPayload)
export type SealedMap = z.infer<typeof SealedMap>

/** Clear content by reference, on its way to or from the client. */
export const PlainMap = z.record(ContentRef, z.string())
export type PlainMap = z.infer<typeof PlainMap>
