import type { ApprovalDecision } from '../../protocol/execution/continue.ts'
import type { ContentRef, Decimal, Provider } from '../../protocol/execution/ids.ts'
import type { TaskIntent } from '../../protocol/execution/policy.ts'
import type { EncryptedPayload } from '../../protocol/execution/sealed.ts'
import type { Payload } from '../../protocol/execution/trace.ts'
import type { TurnResponse } from '../../protocol/execution/turn.ts'
import type { MemoryOp } from '../memory.ts'
import type { Seen } from '../transcript.ts'

/** A trace event before it is stored: ids and times are given to it with the input. */
export type TraceEntry = {
  id: string
  createdAtMs: number
  taskType: TaskIntent
  provider: Provider
  model: string
  matchedRule?: string
  payload: TracePayload
}

/** The verdicts on all candidates of a turn in one entry (D28); readers see one event per candidate. */
export type SelectionList = {
  type: 'context_selection_list'
  items: { path?: string; kind: string; included: boolean; reason: string }[]
}

/** Of a sealed session: what kind of event it is stays clear, the rest stands in the envelope `trace:<id>` (EC 19). */
export type SealedTrace = { type: 'sealed'; event_type: Payload['type'] }

export type TracePayload = Payload | SelectionList | SealedTrace

/** One upstream call and what it used. `usage` is null when it is unknown (D23, U43). */
export type CallRecord = {
  provider: Provider
  model: string
  taskType: TaskIntent
  chosenBy: string
  status: 'answered' | 'failed' | 'cancelled' | 'lost'
  usage: {
    inputTokens?: number
    outputTokens?: number
    cachedTokens?: number
    cacheWriteTokens?: number
    reasoningTokens?: number
  } | null
  cost?: Decimal
  /** Of a sealed session: what it used stands in its trace alone (EC 20.2). */
  sealed?: true
  /** Content that only local models may see took part: so may what was answered (U37). */
  localOnly?: true
  /** What the prompt held: a policy that gets stricter later applies to the answer as well (U37). */
  seen?: Seen
  /** How long the answer took; kept with the message that came of it. */
  clock?: AnswerClock
}

/** How long a model took for what it said, and what was observed of its thinking meanwhile (RF 14). */
export type AnswerClock = { responseMs: number; thoughtMs?: number; thoughtTokens?: number }

/** What was waited for is not waited for any more: `cancelled` by a stop, `superseded` by new input (U22). */
export type EndedOutcome = 'cancelled' | 'superseded'

/** What became of a decision that was waited for (U22): the user's word, or that the run went on without it. */
export type SettledOutcome = ApprovalDecision | EndedOutcome

/** How a run ended. */
export type RunOutcome = 'completed' | 'failed' | 'cancelled'

export type NewCall = {
  id: string
  providerCallId?: string
  name: string
  arguments: Record<string, unknown>
  opaque?: Record<string, unknown>
  recordsDiff: boolean
  /** Absent for a call that waits for the client. */
  answer?: { result: string; isError: boolean; refused: boolean }
}

/**
 * A change of stored rows. All writes of a step are committed together with the new state, in this order, or not at
 * all.
 */
export type Write =
  | { w: 'run_input' }
  /** Text injected into an idle run: policy, preferences and paths of the last run input stay, the rest goes (EC 15). */
  | { w: 'injected_input' }
  /** `localOnly`: said where no remote model was to hear it. */
  | { w: 'user_message'; id: string; runId: string; text: string; localOnly?: true }
  | {
      w: 'assistant_message'
      id: string
      runId: string
      text: string
      provider: Provider
      model: string
      interrupted: boolean
      localOnly?: true
      seen?: Seen
      clock?: AnswerClock
      calls: NewCall[]
    }
  /** What was said in this run so far is for local models alone. */
  | { w: 'keep_local'; runId: string }
  | { w: 'settle_call'; callId: string; isError: boolean; content: string }
  | {
      w: 'approval'
      /** Of a gate or a plan: the approval's own id, under which a late answer finds it. */
      id: string
      targetType: 'tool_call' | 'gate' | 'plan'
      targetId: string
      /** What nobody decided counts as rejected. */
      decision: ApprovalDecision
      outcome: SettledOutcome
      reason?: string
    }
  /** `id` is for a fact that is new. */
  | { w: 'memory'; id: string; op: MemoryOp }
  | { w: 'plan'; id: string; version: number; content: string }
  | { w: 'plan_status'; id: string; status: 'approved' | 'rejected' }
  | { w: 'open_turn'; turnId: string; runId: string; turn: number }
  | { w: 'trace'; turnId: string; entries: TraceEntry[] }
  | { w: 'call'; turnId: string; call: CallRecord }
  /** Replaces the call that was noted before it left. */
  | { w: 'call_settled'; turnId: string; call: CallRecord }
  | {
      w: 'close_turn'
      turnId: string
      status: 'done' | 'failed' | 'superseded' | 'interrupted'
      outcome: TurnResponse | null
      /** The end of the turn is the end of its run. */
      runOutcome?: RunOutcome
    }
  /** A run ended while none of its turns was served: its last one is the newest that there is. */
  | { w: 'run_ended'; outcome: RunOutcome }
  /** The ciphertext of content whose row was stored without its text. */
  | {
      w: 'sealed'
      ref: ContentRef
      payload: EncryptedPayload
      /** What the text takes in a request that gives it back, in UTF-8 bytes; absent where nobody holds it. */
      weight?: number
    }
  /** Content that nobody sealed and nobody holds any more: what was stored for it goes. */
  | { w: 'dropped'; refs: ContentRef[] }
