/**
 * Whether a device reads what it is sent. The platform does not say how much of it still waits in this machine. A device
 * that acknowledges says it; of others it is estimated by a bucket per socket: what is sent fills it, time and signs of
 * life empty it (D35).
 */
export type Flow = {
  /** Bytes that may not have been read, at `atMs`. */
  level: number
  atMs: number
  /** The newest sign of life that has been counted; 0 for none. */
  heardAtMs: number
  /**
   * Since when the bucket has not been empty after it was full; null while it has not been full. Of a device that
   * acknowledges: since when it has not acknowledged anything more.
   */
  fullSinceMs: number | null
  /** UTF-8 bytes that were sent on the connection. */
  sentBytes: number
  /** The device has acknowledged: `level` is what it has not, and nothing but an acknowledgement lowers it. */
  acknowledges: boolean
}

/** What a device is taken to read in a second. */
const DRAIN_BYTES_PER_S = 256 * 1024
/** Above this, events for the device wait in their sessions. */
export const MAX_UNREAD_BYTES = 4 * 1024 * 1024
/** Over all sockets of a gateway; above it the fullest ones wait. */
export const MAX_UNREAD_BYTES_IN_ALL = 32 * 1024 * 1024
/** A device that waited goes on when there is room for so much: else it would wait again after each frame. */
const ROOM_TO_GO_ON_BYTES = 1024 * 1024
/** A device that takes in less than it is sent, and has said nothing for so long, has stopped reading. */
const STUCK_MS = 120_000
/** One that waits for room that only others can make is looked at this often. */
const OTHERS_READ_MS = 10_000

export const newFlow = (nowMs: number): Flow => ({
  level: 0,
  atMs: nowMs,
  heardAtMs: 0,
  fullSinceMs: null,
  sentBytes: 0,
  acknowledges: false,
})

/** The device has sent a frame: what was sent before has been read, unless it says itself how far it has come. */
export const heard = (flow: Flow, nowMs: number): Flow =>
  flow.acknowledges ? { ...flow, atMs: nowMs } : { ...newFlow(nowMs), sentBytes: flow.sentBytes }

/**
 * The device has read so much of what was sent. More than that counts as all of it, and less than it said before as
 * nothing new.
 * @param bytes since the connection began, as `sentBytes` counts them
 */
export function acknowledge(flow: Flow, bytes: number, nowMs: number): Flow {
  const level = Math.max(0, flow.sentBytes - bytes)
  if (flow.acknowledges && level >= flow.level) return { ...flow, atMs: nowMs }
  const fullSinceMs = level > MAX_UNREAD_BYTES ? nowMs : null
  return { ...flow, level, atMs: nowMs, fullSinceMs, acknowledges: true }
}

/**
 * The bucket as it stands now.
 * @param heardAtMs when the device last gave a sign of life, pings included: whoever sends has read what came before
 */
export function settle(flow: Flow, heardAtMs: number, nowMs: number): Flow {
  if (flow.acknowledges) return { ...flow, atMs: nowMs }
  if (heardAtMs > flow.heardAtMs) return { ...heard(flow, nowMs), heardAtMs }
  const drained = (Math.max(0, nowMs - flow.atMs) / 1000) * DRAIN_BYTES_PER_S
  const level = Math.max(0, flow.level - drained)
  return { ...flow, level, atMs: nowMs, fullSinceMs: level === 0 ? null : flow.fullSinceMs }
}

/** After so many bytes were sent. `flow` must be settled. */
export function fill(flow: Flow, bytes: number): Flow {
  const level = flow.level + bytes
  return {
    ...flow,
    level,
    sentBytes: flow.sentBytes + bytes,
    fullSinceMs: level > MAX_UNREAD_BYTES ? (flow.fullSinceMs ?? flow.atMs) : flow.fullSinceMs,
  }
}

/**
 * Up to where a bucket may be filled so that all of them together stay within their limit: the fullest are held back first.
 * @param levels of all buckets
 */
export function limitFor(levels: readonly number[]): number {
  const total = levels.reduce((sum, level) => sum + level, 0)
  if (total <= MAX_UNREAD_BYTES_IN_ALL) return MAX_UNREAD_BYTES
  // Buckets below the limit count whole; the rest of the room is shared evenly by those above it.
  let room = MAX_UNREAD_BYTES_IN_ALL
  const fromEmptiest = levels.toSorted((a, b) => a - b)
  for (const [n, level] of fromEmptiest.entries()) {
    const share = room / (fromEmptiest.length - n)
    if (level > share) return Math.min(share, MAX_UNREAD_BYTES)
    room -= level
  }
  return MAX_UNREAD_BYTES
}

/** Events for this device have to wait. `flow` must be settled. */
export const isFull = (flow: Flow, limit: number): boolean => flow.level > limit

/**
 * When a device that waits can go on, if nothing is heard of it before; of one that acknowledges, when it has stopped
 * reading, or the others may have made room. `flow` must be settled.
 */
export function goesOnAtMs(flow: Flow, limit: number): number {
  if (flow.acknowledges && flow.level > limit) {
    const nextLookMs = flow.atMs + OTHERS_READ_MS
    return flow.fullSinceMs === null ? nextLookMs : Math.max(nextLookMs, flow.fullSinceMs + STUCK_MS)
  }
  const surplus = flow.level - Math.max(0, limit - ROOM_TO_GO_ON_BYTES)
  return flow.atMs + Math.ceil((Math.max(0, surplus) / DRAIN_BYTES_PER_S) * 1000)
}

/** The device does not read any more, and its connection has to end. `flow` must be settled. */
export const isStuck = (flow: Flow): boolean =>
  flow.fullSinceMs !== null && flow.atMs - flow.fullSinceMs >= STUCK_MS
