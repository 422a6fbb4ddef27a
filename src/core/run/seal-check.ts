import { type Failure, failure } from '../../protocol/execution/errors.ts'
import type { ContentRef } from '../../protocol/execution/ids.ts'
import type { EncryptedPayload, SealedMap } from '../../protocol/execution/sealed.ts'

export const ALGORITHM = 'xchacha20poly1305'
/** Keys of this kind write envelopes that are bound to their session and place (D48). */
const BOUND_KEY = /^kf2_/
const NONCE_BYTES = 24
const TAG_BYTES = 16
const UNPADDED = /^[A-Za-z0-9_-]*$/

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Bytes that a text of base64url without padding stands for; null for any other text, and for bits left over. */
function decodedBytes(text: string): number | null {
  const rest = text.length % 4
  if (!UNPADDED.test(text) || rest === 1) return null
  const last = rest === 0 ? 0 : ALPHABET.indexOf(text.at(-1) ?? '')
  if (last % (rest === 2 ? 16 : rest === 3 ? 4 : 1) !== 0) return null
  return Math.floor((text.length * 3) / 4)
}

/** The version of envelopes that a session takes (D48). */
export const envelopeVersion = (keyId: string): 1 | 2 => (BOUND_KEY.test(keyId) ? 2 : 1)

/** What is wrong with an envelope, in words; null for one that may be kept (EC 17.1). What it holds only its key tells. */
export function envelopeProblem(payload: EncryptedPayload, keyId: string): string | null {
  const version = envelopeVersion(keyId)
  if (payload.algorithm !== ALGORITHM) return `the algorithm must be ${ALGORITHM}`
  if (payload.key_id !== keyId) return `it is sealed with another key than that of this session, ${keyId}`
  if (payload.version !== version) return `this session takes envelopes of version ${version}`
  if (decodedBytes(payload.nonce) !== NONCE_BYTES)
    return `the nonce must be ${NONCE_BYTES} bytes in base64url without padding`
  const bytes = decodedBytes(payload.ciphertext)
  if (bytes === null || bytes < TAG_BYTES)
    return `the ciphertext must be at least ${TAG_BYTES} bytes in base64url without padding`
  return null
}

export type SealDemands = {
  keyId: string
  /** What has to come now. */
  required: readonly ContentRef[]
  /**
   * What is asked for with the next outcome. It is not taken before that: what belongs to it may be missing, and a run's
   * input has the reference of the one before it.
   */
  later: ReadonlySet<ContentRef>
  /** What the session has the ciphertext of: it stays as it is, and a repeat is no fault. */
  isSealed(ref: ContentRef): boolean
}

/** How many references a refusal names. */
const NAMED = 20

/**
 * Checks a map of envelopes against what is waited for. All of it is taken or nothing: on a failure the pause stays.
 * @returns the envelopes to store
 */
export function checkSeals(
  encrypted: SealedMap,
  { keyId, required, later, isSealed }: SealDemands,
): { taken: SealedMap } | { refused: Failure } {
  const missing = required.filter((ref) => encrypted[ref] === undefined)
  if (missing.length > 0) {
    const message =
      'content is still unsealed: every entry of `to_encrypt` and every result has to come back sealed'
    return { refused: failure('invalid_request', message, { missing: missing.slice(0, NAMED) }) }
  }
  const wanted = new Set(required)
  const taken: SealedMap = {}
  for (const [ref, payload] of Object.entries(encrypted)) {
    if (!wanted.has(ref)) {
      if (isSealed(ref) || later.has(ref)) continue
      const message = 'sealed content came that this session does not wait for'
      return { refused: failure('invalid_request', message, { unknown: [ref.slice(0, 200)] }) }
    }
    const problem = envelopeProblem(payload, keyId)
    if (problem !== null)
      return {
        refused: failure('invalid_request', `an envelope cannot be kept: ${problem}`, { ref, problem }),
      }
    taken[ref] = payload
  }
  return { taken }
}
