import type { ExecuteRequest } from '../protocol/execution/execute.ts'
import type { MemoryFact } from './memory.ts'
import type { Driver } from './run/state.ts'
import type { TranscriptCall, TranscriptMessage } from './transcript.ts'

/** What `execute` brought; later turns of the run are resolved from it again (EC 5.1). */
export type RunInput = ExecuteRequest

/** Everything that a turn is decided from. */
export type TurnView = {
  runInput: RunInput
  runId: string
  /** No earlier turn of this run has reached its end: an explicit command still counts (EC 7.1). */
  firstTurn: boolean
  planning: boolean
  planApproved: boolean
  /** The user declined to disclose anything to a remote model in this run. */
  remoteDeclined: boolean
  /** Who runs the tools of the run (D05); absent: the client that asks. */
  driver?: Driver
  /** The user declined to let local models see anything in this run (mode `ask` of `privacy.local`). */
  localDeclined?: boolean
  /** Oldest first; the messages of the current run are the last ones, and what the user said in it is among them. */
  transcript: readonly TranscriptMessage[]
  /** Messages that are not in `transcript` because there are too many, or too long ones (D28). */
  olderMessages: number
  /**
   * The run that the transcript begins with may have begun before: the calls that it made in messages that are left out,
   * oldest first. Their paths count as those of its other calls do (D11, EC 9); an empty result stands for what they gave.
   */
  pastCalls?: readonly TranscriptCall[]
  /** All that is remembered, in any order; `recall` picks what may be shown (EC 16). */
  memories: readonly MemoryFact[]
}

/** What is known of the calls of a run that are not in the transcript. */
export const pastCallsOf = (
  { transcript, pastCalls = [] }: TurnView,
  runId: string,
): readonly TranscriptCall[] => (transcript[0]?.runId === runId ? pastCalls : [])
