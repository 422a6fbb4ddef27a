import type { ExecuteRequest } from '../protocol/execution/execute.ts'
import type { MemoryFact } from './memory.ts'
import type { TranscriptMessage } from './transcript.ts'

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
  /** Oldest first; the messages of the current run are the last ones. */
  transcript: readonly TranscriptMessage[]
  /** Messages that are not in `transcript` because there are too many. */
  olderMessages: number
  /** All that is remembered, in any order; `recall` picks what may be shown (EC 16). */
  memories: readonly MemoryFact[]
}
