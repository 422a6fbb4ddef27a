import type { MemoryFact } from '../core/memory.ts'
import type { Partial } from '../core/run/inputs.ts'
import type { CallRecord } from '../core/run/writes.ts'
import { type Access, NO_ACCESS } from '../providers/access.ts'
import { NO_THINKING, type Thinking } from './thinking.ts'
import { TurnChannel } from './turn-channel.ts'

/** A turn that this object is serving: what exists in memory only, and is gone with it. */
export type LiveTurn = {
  turnId: string
  lease: string
  channel: TurnChannel
  abort: AbortController
  /** Replaced when the turn is over: keys live no longer than it (D06). */
  access: Access
  /** What is remembered of the user: as D1 told it, with what this session changed since. Goes with the access. */
  facts: readonly MemoryFact[]
  /** What the model has said so far in the call that is under way; null between calls. */
  partial: Partial | null
  /** The calls of this turn that have ended. */
  calls: CallRecord[]
  /** The thinking of the call under way (RF 13). */
  thinking: Thinking
  /** When the call under way was made. */
  calledAtMs: number
  /** An earlier answer of this turn put text into the stream. */
  spoke: boolean
}

export const makeLiveTurn = (
  turnId: string,
  lease: string,
  access: Access,
  facts: readonly MemoryFact[],
): LiveTurn => ({
  turnId,
  lease,
  channel: new TurnChannel(turnId),
  abort: new AbortController(),
  access,
  facts,
  partial: null,
  calls: [],
  thinking: NO_THINKING,
  calledAtMs: 0,
  spoke: false,
})

/** The turn is over: what came with its request is forgotten (D06). */
export function forgetRequest(live: LiveTurn): void {
  live.access = NO_ACCESS
  live.facts = []
}
