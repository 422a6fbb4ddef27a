import { refKind, resultRef } from '../../protocol/execution/content-refs.ts'
import type { ContinueRequest } from '../../protocol/execution/continue.ts'
import { failure } from '../../protocol/execution/errors.ts'
import type { ContentRef } from '../../protocol/execution/ids.ts'
import {
  type EncryptedPayload,
  envelopeProblem,
  envelopeVersion,
  type SealedMap,
} from '../../protocol/execution/sealed.ts'
import type { RunInputEvent } from './inputs.ts'
import { jsonBytes } from './json-bytes.ts'
import { checkSeals } from './seal-check.ts'
import type { Sealing } from './sealing.ts'
import { NOTHING_UNSEALED, type RunState } from './state.ts'
import type { Refusal, Step } from './step.ts'

/**
 * What may wait for its ciphertext when new words come, in references and in UTF-8 bytes of JSON: with the input and the
 * history of a turn it has to fit the request that brings it. Beyond it traces are given up; an `execute` gives up the rest
 * as well (EC 5.3), an `inject` is refused.
 */
const MAX_UNSEALED_REFS = 2_000
const MAX_UNSEALED_BYTES = 1024 * 1024

const encryptedOf = (message: ContinueRequest): SealedMap | undefined =>
  message.type === 'break' ? message.data?.encrypted : (message.data.encrypted ?? undefined)

/** The ciphertext that comes with a message, checked against what is waited for. */
export function incoming(
  state: RunState | null,
  input: RunInputEvent,
  { writes }: Step,
  { keyId, held, isSealed }: Sealing,
): { taken: SealedMap } | Refusal {
  if (input.type !== 'continuation_received' || state === null) return { taken: {} }
  const { message, digest } = input
  // All of it was taken when it came first; of a fact that was forgotten since the session knows nothing more.
  if (state.unsettled?.digest === digest) return { taken: {} }
  const { refs, told, answered } = state.unsealed ?? NOTHING_UNSEALED
  const encrypted = encryptedOf(message)
  if (message.type === 'inject') {
    const problem = injectProblem(message.data.messages, keyId)
    if (problem !== null) return { refused: failure('invalid_request', problem) }
  }
  if (message.type === 'inject' && encrypted === undefined) {
    const waiting = refs.filter((ref) => !isTrace(ref))
    const isNew = digest !== answered?.digest
    if (isNew && isTooMuch(waiting, (ref) => held.get(ref))) return { refused: tooMuchWaits(waiting) }
  }
  // Whoever stops or says something new may leave the rest for later; half of it would leave holes.
  if ((message.type === 'inject' || message.type === 'break') && encrypted === undefined) return { taken: {} }
  const results = writes.flatMap((write) =>
    write.w === 'settle_call' && message.type === 'tool_results' ? [resultRef(write.callId)] : [],
  )
  // Sent again because its answer is lost, an inject cannot bring the ciphertext of what nobody has seen.
  const isAgain = message.type === 'inject' && answered?.digest === digest
  const asked = state.active === null ? refs.slice(0, told) : []
  // Of a run that is over, what is lost on this side may be lost on the other as well: nobody is held up by it. Who has some
  // of it has all of it.
  const isLost = (ref: ContentRef) => !held.has(ref)
  const hasNone =
    message.type === 'sealed' && !asked.some((ref) => isLost(ref) && encrypted?.[ref] !== undefined)
  const mayLack = isAgain || hasNone
  return checkSeals(encrypted ?? {}, {
    keyId,
    required: [...asked.filter((ref) => !mayLack || !isLost(ref)), ...results],
    later: new Set(refs),
    isSealed,
  })
}

export const isTrace = (ref: ContentRef): boolean => refKind(ref) === 'trace'

/** More waits for its ciphertext than is to be carried on. The input of the run is bounded where it comes in. */
export function isTooMuch(
  refs: readonly ContentRef[],
  textOf: (ref: ContentRef) => string | undefined,
): boolean {
  if (refs.length > MAX_UNSEALED_REFS) return true
  let bytes = 0
  for (const ref of refs) if (refKind(ref) !== 'run_input') bytes += jsonBytes(textOf(ref) ?? '')
  return bytes > MAX_UNSEALED_BYTES
}

const tooMuchWaits = (refs: readonly ContentRef[]) =>
  failure(
    'invalid_request',
    'too much waits for its ciphertext: hand it in with `encrypted`, or answer the pause first',
    { missing: refs.slice(0, MAX_NAMED), max_bytes: MAX_UNSEALED_BYTES },
  )

/** How many references a refusal names. */
const MAX_NAMED = 20

/** One injected text may come sealed; several become one message, whose text nobody sealed yet. */
export function injectedCiphertext(message: ContinueRequest): EncryptedPayload | null {
  if (message.type !== 'inject') return null
  const [only, ...others] = message.data.messages
  return others.length > 0 ? null : (only?.ciphertext ?? null)
}

type InjectedMessages = Extract<ContinueRequest, { type: 'inject' }>['data']['messages']

function injectProblem(messages: InjectedMessages, keyId: string): string | null {
  for (const { ciphertext } of messages) {
    if (ciphertext == null) continue
    if (envelopeVersion(keyId) === 2)
      return 'in this session envelopes are bound to their place: an injected text is sealed when the router asks for it'
    const problem = envelopeProblem(ciphertext, keyId)
    if (problem !== null) return `the ciphertext of an injected text cannot be kept: ${problem}`
  }
  return null
}
