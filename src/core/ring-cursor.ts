import type { ResyncReason } from '../protocol/remote/events.ts'

/** Where a device stopped: the last event that it applied, and the snapshot it had begun with. */
export type RingCursor = { after: number; snapshotId: string | null }

/** What the ring holds when somebody asks. */
export type RingExtent = {
  /** The newest number that was given out. */
  last: number
  /** Nothing up to here is held any more. */
  floor: number
  /** Every event up to here was lost with the object that had it in memory, or is another registration's; 0 for none. */
  lost: number
  /** The newest change that no event tells. */
  cut: { sequence: number; id: string }
  holds(sequence: number): boolean
}

/** From here on: the events behind the cursor, and a snapshot after them if they do not tell everything. */
export type RingVerdict = { k: 'resumed'; withSnapshot: boolean } | { k: 'resync'; reason: ResyncReason }

/**
 * Whether a device can go on where it stopped (remote protocol, "Attaching, ordering and resuming"; RF 12). It can as long
 * as every event behind its cursor is held. A change that no event tells is told by a snapshot after them; exactly at such
 * a change only the snapshot's id says whether the device has seen it.
 */
export function judgeCursor({ after, snapshotId }: RingCursor, ring: RingExtent): RingVerdict {
  const { last, floor, lost, cut } = ring
  if (after > last) return { k: 'resync', reason: 'sequence_gap' }
  if (after < lost) return { k: 'resync', reason: 'sequence_gap' }
  if (after < floor) return { k: 'resync', reason: 'lagged' }
  // Numbers that an object gave out and took with it when it died: what they told is not known.
  if (after > floor && !ring.holds(after)) return { k: 'resync', reason: 'sequence_gap' }
  if (after === cut.sequence && snapshotId !== cut.id) return { k: 'resync', reason: 'sequence_gap' }
  // A device that stopped between such a change and its snapshot still has the older one.
  const isOlder = snapshotId !== null && snapshotId !== cut.id
  return { k: 'resumed', withSnapshot: cut.sequence > after || isOlder }
}
