import type { ApprovalDecision, ContinueRequest } from '../../protocol/execution/continue.ts'
import type { Failure } from '../../protocol/execution/errors.ts'
import type { ModelReference, Provider } from '../../protocol/execution/ids.ts'
import type { TaskIntent } from '../../protocol/execution/policy.ts'
import type { SealedMap } from '../../protocol/execution/sealed.ts'
import type {
  AnswerEnding,
  Classification,
  ContextOutcome,
  RoutingDecision,
} from '../../protocol/execution/turn.ts'
import type { Usage } from '../../protocol/execution/usage.ts'
import type { MediatedCall } from '../mediate.ts'
import type { AskedCost, Disclosure, Driver, LastRoute } from './state.ts'
import type { CallRecord, TracePayload } from './writes.ts'

/** What a turn was decided to be, as reports show it. */
export type TurnReport = { classification: Classification; routing: RoutingDecision; context: ContextOutcome }

/** A decision that has to be asked for before the model may be invoked (EC 13). */
export type Gate =
  | { kind: 'remote_disclosure'; disclosure: Disclosure }
  | { kind: 'cost_limit'; cost: AskedCost }

/** What a model had said when it was cut off. */
export type Partial = { text: string; call: CallRecord }

/**
 * Everything that can happen to a run. `lease` ties what a served turn reports to the lock under which it was served:
 * with another lease it comes from a turn that was superseded, and is dropped.
 */
export type RunInputEvent =
  | {
      type: 'execute_requested'
      digest: string
      text: string
      command: TaskIntent | null
      driver: Driver
      /** `sha256:` key of the policy that came along; null where it is not kept. */
      policyDigest: string | null
      /** The request keeps the run from remote models: so are its words kept later. */
      localOnly: boolean
      /** Providers whose keys came along (D06). */
      keyed?: readonly Provider[]
    }
  | {
      type: 'continuation_received'
      digest: string
      message: ContinueRequest
      /** Of the turn that is being served, where the message supersedes one. */
      partial: Partial | null
      /** What the run was started with keeps it from remote models: so are injected words kept later. */
      localOnly: boolean
      /** Providers whose keys came along (D06). */
      keyed?: readonly Provider[]
    }
  /** A device decides what waits for a decision: all calls of the batch together, a gate or a plan (D05, RF 19). */
  | {
      type: 'device_decided'
      digest: string
      batchId: string
      decision: ApprovalDecision
      partial: Partial | null
    }
  /** A question was answered; `answer` is what the model will be told of it (RF 18). */
  | { type: 'question_answered'; digest: string; questionId: string; answer: string }
  /** The whole chain of questions is dismissed, and the turn with it (RF 18). */
  | { type: 'question_cancelled'; questionId: string; partial: Partial | null }
  /** The driver has been shown what a device decided (D10). */
  | { type: 'decision_delivered' }
  /** The user takes back what was allowed for the rest of the run (U23). */
  | { type: 'grant_revoked'; grantId: string }
  | {
      type: 'turn_resolved'
      lease: string
      report: TurnReport
      traces: TracePayload[]
      gate: Gate | null
      /** Models of the turn that were asked before and did not answer; they are not asked again after the gate. */
      failed?: readonly ModelReference[]
      /** The call about to leave, its usage still unknown. */
      call: CallRecord
      /** The call before it in this turn, which did not answer. */
      failedCall: CallRecord | null
    }
  /** Sealed content has to be opened by the client before the prompt can be built (EC 17.3). */
  | { type: 'decryption_needed'; lease: string; toDecrypt: SealedMap }
  | {
      type: 'model_responded'
      lease: string
      text: string
      /** Null for an answer that came to its end by itself (U42). */
      ending: AnswerEnding | null
      report: TurnReport
      calls: MediatedCall[]
      /** Of this call. */
      call: CallRecord
      /** Of all calls of the turn so far. */
      usage: Usage
    }
  | {
      type: 'turn_failed'
      lease: string
      failure: Failure
      partial: Partial | null
      call: CallRecord | null
      /** How the trace tells of it, where the turn was decided far enough. */
      told?: { route: LastRoute; traces: TracePayload[] }
    }
  /** The turn is still being served. */
  | { type: 'lease_renewed'; lease: string }
  /** The object came up; a lock that it finds was left by a crash. */
  | { type: 'object_started' }
