import type { Partial } from '../core/run/inputs.ts'
import type { CallRecord } from '../core/run/writes.ts'
import type { Access } from '../providers/access.ts'
import { TurnChannel } from './turn-channel.ts'

/** A turn that this object is serving: what exists in memory only, and is gone with it. */
export type LiveTurn = {
  turnId: string
  lease: string
  channel: TurnChannel
  abort: AbortController
  /** Replaced when the turn is over: keys live no longer than it (D06). */
  access: Access
  /** What the model has said so far in the call that is under way; null between calls. */
  partial: Partial | null
  /** The calls of this turn that have ended. */
  calls: CallRecord[]
}

export const makeLiveTurn = (turnId: string, lease: string, access: Access): LiveTurn => ({
  turnId,
  lease,
  channel: new TurnChannel(turnId),
  abort: new AbortController(),
  access,
  partial: null,
  calls: [],
})
