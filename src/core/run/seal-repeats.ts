import { resultRef } from '../../protocol/execution/content-refs.ts'
import type { ContinueRequest } from '../../protocol/execution/continue.ts'
import type { ContentRef } from '../../protocol/execution/ids.ts'
import type { PlainMap, SealedMap } from '../../protocol/execution/sealed.ts'
import { acquire, isServing, serveNext } from './begin.ts'
import { idle } from './envelope.ts'
import type { RunInputEvent } from './inputs.ts'
import { injectedCiphertext } from './seal-admission.ts'
import type { Sealing } from './sealing.ts'
import { NOTHING_UNSEALED, type RunState } from './state.ts'
import type { Step, StepContext } from './step.ts'

/** A turn that these started can be served again from what is stored, as can one of words that came sealed (D20). */
const REPEATABLE: readonly string[] = ['tool_results', 'approval_decisions', 'decrypted']

/** A message that was answered before, where the answer is lost: its turn is served again. Null for any other. */
export function repeated(
  state: RunState,
  input: RunInputEvent,
  context: StepContext,
  { held, isSealed }: Sealing,
): Step | null {
  if (input.type !== 'continuation_received') return null
  const { message, digest } = input
  const { refs, told, answered } = state.unsealed ?? NOTHING_UNSEALED
  const isSame = answered?.digest === digest
  if (message.type === 'sealed' && isIdle(state) && (isSame || isKept(message.data.encrypted, isSealed))) {
    const reply = { by: 'outcome' as const, outcome: idle(state.traceId) }
    return { state, writes: [], events: [], effects: [], reply }
  }
  if (isServing(state, context.nowMs)) return null
  const isRepeatable = REPEATABLE.includes(message.type)
  const isLost =
    isSame &&
    (isRepeatable || injectedCiphertext(message) !== null) &&
    state.active === null &&
    refs.slice(0, told).some((ref) => !held.has(ref))
  const wasCut =
    isRepeatable && state.phase.k === 'Idle' && state.active === null && state.unsettled?.digest === digest
  if (!isLost && !wasCut) return null
  const active = acquire(context)
  const next: RunState = {
    ...state,
    phase: { k: 'Idle' },
    active,
    unsettled: { digest, kind: message.type },
    // The end of a turn that failed was the end of its planning as well.
    planning: state.planning || answered?.planning === true,
    unattendedRounds: 0,
    checkpointTurnId: null,
    unsealed: NOTHING_UNSEALED,
  }
  // Memory goes as a whole: where one text is lost, all are.
  const step = serveNext(next, refs.length === 0 ? [] : [{ w: 'dropped', refs }], [], state.turn)
  return {
    ...step,
    contents: textsOf(message, null, openedRefs(message).filter(isSealed)),
  }
}

/** However the ciphertext looks this time, what it stands for is kept. */
function isKept(encrypted: SealedMap, isSealed: Sealing['isSealed']): boolean {
  const refs = Object.keys(encrypted)
  return refs.length > 0 && refs.every(isSealed)
}

const isIdle = ({ active, unsettled, phase }: RunState): boolean =>
  active === null && unsettled === null && phase.k === 'Idle'

export const openedRefs = (message: ContinueRequest): ContentRef[] =>
  message.type === 'decrypted' ? Object.keys(message.data.plaintext) : []

/** The texts that a message brings along: results, and what was opened of what was asked for. */
export function textsOf(
  message: ContinueRequest,
  settled: ReadonlySet<string> | null,
  asked: readonly ContentRef[],
): PlainMap {
  if (message.type === 'tool_results')
    return Object.fromEntries(
      message.data.results
        .filter(({ call_id: id }) => settled === null || settled.has(id))
        .map(({ call_id: id, content }) => [resultRef(id), content]),
    )
  if (message.type !== 'decrypted') return {}
  const { plaintext } = message.data
  return Object.fromEntries(
    asked.flatMap((ref) => (plaintext[ref] === undefined ? [] : [[ref, plaintext[ref]]])),
  )
}
