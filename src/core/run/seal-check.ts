import { type Failure, failure } from '../../protocol/execution/errors.ts'
import type { ContentRef } from '../../protocol/execution/ids.ts'
import { envelopeProblem, type SealedMap } from '../../protocol/execution/sealed.ts'

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
