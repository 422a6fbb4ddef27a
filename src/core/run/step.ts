import { assertNever } from '../../protocol/assert.ts'
import { type Failure, failure } from '../../protocol/execution/errors.ts'
import type { PlainMap } from '../../protocol/execution/sealed.ts'
import type { TurnResponse } from '../../protocol/execution/turn.ts'
import type { RemoteErrorCode } from '../../protocol/remote/errors.ts'
import { advance } from './advance.ts'
import { beginRun } from './begin.ts'
import { decisionDelivered, deviceDecided, questionAnswered, questionCancelled } from './device-answers.ts'
import type { RunEvent } from './events.ts'
import { finishFailure, finishResponse, pauseForDecryption, resolved } from './finish.ts'
import { revokeGrant } from './grants.ts'
import type { RunInputEvent } from './inputs.ts'
import { withRunKept } from './run-clock.ts'
import { type Sealing, sealedStep } from './sealing.ts'
import { LEASE_MS, type RunState } from './state.ts'
import { recover } from './supersede.ts'
import type { Write } from './writes.ts'

/** What the shell does after the commit. Each is safe to lose: the state tells what is still owed. */
export type Effect =
  /** Decide and serve the turn that holds this lease. */
  | { e: 'serve_turn'; lease: string }
  /** Cut the upstream call of a turn that was superseded, and end what waits for it. */
  | { e: 'cancel_turn'; turnId: string }
  /** The turn has its outcome. */
  | { e: 'answer'; turnId: string; outcome: TurnResponse }

/** How the request that caused the step is answered: by the turn's outcome when it comes, or at once. */
export type Reply = { by: 'turn'; turnId: string } | { by: 'outcome'; outcome: TurnResponse }

/** `state`, `writes` and `events` are committed together; `effects` happen only after that. */
export type Step = {
  state: RunState
  writes: Write[]
  events: RunEvent[]
  effects: Effect[]
  reply?: Reply
  /** Of a sealed session: texts for memory, and for nothing else. */
  contents?: PlainMap
}

/** A refused input: nothing changes. `remote`: how a device is told, where its protocol has a word of its own for it. */
export type Refusal = { refused: Failure; remote?: RemoteErrorCode }

/** Time and ids come in from outside; ids are UUIDv7 (D22). */
export type StepContext = { nowMs: number; newId: () => string; sealing?: Sealing }

/** An input that came too late: a turn that was superseded in the meantime reports. */
export const DROPPED = { dropped: true } as const

/**
 * The run machine (EC 5): one pure function from a state and an input to the next state and what has to be stored,
 * told and done. `null` is a session that never had a run.
 */
export const step = (
  state: RunState | null,
  input: RunInputEvent,
  context: StepContext,
): Step | Refusal | typeof DROPPED =>
  context.sealing === undefined
    ? keptStep(state, input, context)
    : sealedStep(keptStep, state, input, context, context.sealing)

function keptStep(
  state: RunState | null,
  input: RunInputEvent,
  context: StepContext,
): Step | Refusal | typeof DROPPED {
  const result = clearStep(state, input, context)
  return 'state' in result ? withRunKept(state, result, context.nowMs) : result
}

function clearStep(
  state: RunState | null,
  input: RunInputEvent,
  context: StepContext,
): Step | Refusal | typeof DROPPED {
  if (input.type === 'execute_requested') return beginRun(state, input, context)
  if (input.type === 'grant_revoked') return revokeGrant(state, input.grantId)
  if (input.type === 'device_decided') return deviceDecided(state, input, context)
  if (input.type === 'question_answered') return questionAnswered(state, input, context)
  if (input.type === 'question_cancelled') return questionCancelled(state, input, context)
  if (state === null) {
    if (input.type !== 'continuation_received') return DROPPED
    return {
      refused: failure('invalid_request', 'the session has no run to continue; start one with execute'),
    }
  }
  switch (input.type) {
    case 'continuation_received':
      return advance(state, input, context)
    case 'decision_delivered':
      return decisionDelivered(state, context) ?? DROPPED
    case 'object_started':
      return state.active === null ? DROPPED : recover(state)
    case 'lease_renewed':
    case 'turn_resolved':
    case 'decryption_needed':
    case 'model_responded':
    case 'turn_failed': {
      const serving = state.active
      if (serving === null || serving.lease !== input.lease) return DROPPED
      switch (input.type) {
        case 'lease_renewed': {
          const active = { ...serving, leaseUntilMs: context.nowMs + LEASE_MS }
          return { state: { ...state, active }, writes: [], events: [], effects: [] }
        }
        case 'turn_resolved':
          return resolved(state, serving, input, context)
        case 'decryption_needed':
          return pauseForDecryption(state, serving, input)
        case 'model_responded':
          return finishResponse(state, serving, input, context)
        case 'turn_failed':
          return finishFailure(state, serving, input, context)
        default:
          return assertNever(input)
      }
    }
    default:
      return assertNever(input)
  }
}
