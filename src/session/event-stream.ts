import type { Feed } from './feed.ts'
import type { EventCursor, HeldSnapshot, Replay } from './rpc.ts'

/** What a follower needs of the session's events. */
export type EventFeed = Pick<Feed, 'attach' | 'onChange' | 'pull'>

/** An open response keeps the object awake: after so long without an event it ends, and whoever wants comes back (D38). */
export const IDLE_MS = 5 * 60_000
/** When whoever was sent away for that comes back by itself. */
const RETRY_MS = 15_000
/** A comment this often keeps proxies from closing a silent stream. */
const KEEP_ALIVE_MS = 15_000
/** To send a piece costs more than the piece: small events go together. */
const PIECE_UNITS = 64 * 1024

/** What came next, and the place behind it. */
type Part = {
  /** In their order; the first has the sequence `first`. */
  events: readonly string[]
  first: number
  /** Stands for everything up to it, and comes behind the events. */
  snapshot: HeldSnapshot | null
  /** Why what the cursor lacks cannot be told; the snapshot stands for it. */
  resync: string | null
  next: EventCursor
  more: boolean
}

/**
 * What is behind a cursor as one JSON text: at once when there is something, else as soon as there is, else empty after
 * `waitMs`. Without a cursor it is the state as it is now.
 */
export async function eventPage(
  feed: EventFeed,
  cursor: EventCursor | null,
  waitMs: number,
): Promise<string> {
  let part = nextPart(feed, cursor)
  const untilMs = Date.now() + waitMs
  while (isEmpty(part)) {
    const leftMs = untilMs - Date.now()
    if (leftMs <= 0 || !(await changedWithin(feed, leftMs))) break
    part = nextPart(feed, part.next)
  }
  return pageText(part)
}

/**
 * The events behind a cursor as server-sent events, and those to come. Without a cursor the state comes first. It ends
 * after five minutes without an event, and when the session is not there any more.
 */
export function eventStream(
  feed: EventFeed,
  start: EventCursor | null,
  isThere: () => boolean,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let cursor = start
  let pieces: string[] = []
  let lastEventMs = Date.now()
  let isCancelled = false
  let stopWaiting: (() => void) | null = null
  return new ReadableStream(
    {
      type: 'bytes',
      pull: async (controller) => {
        while (pieces.length === 0) {
          if (isCancelled) return
          if (!isThere()) return controller.close()
          const part = nextPart(feed, cursor)
          cursor = part.next
          if (!isEmpty(part)) {
            lastEventMs = Date.now()
            pieces = inPieces(framesOf(part))
            break
          }
          const leftMs = lastEventMs + IDLE_MS - Date.now()
          if (leftMs <= 0) {
            controller.enqueue(encoder.encode(`retry: ${RETRY_MS}\n\n`))
            return controller.close()
          }
          const wait = new Promise<void>((resolve) => {
            stopWaiting = resolve
          })
          const isChanged = await changedWithin(feed, Math.min(leftMs, KEEP_ALIVE_MS), wait)
          stopWaiting = null
          if (!isChanged) pieces = [': keep-alive\n\n']
        }
        const piece = pieces.shift()
        if (!isCancelled && piece !== undefined) controller.enqueue(encoder.encode(piece))
      },
      cancel: () => {
        isCancelled = true
        pieces = []
        stopWaiting?.()
      },
    },
    { highWaterMark: 0 },
  )
}

function nextPart(feed: EventFeed, cursor: EventCursor | null): Part {
  if (cursor === null) return snapshotPart(feed.attach(), null)
  const pulled = feed.pull(cursor.after, cursor.snapshotId)
  if (pulled.k === 'replay') return replayPart(pulled.replay, cursor)
  // Whoever lacks no event has missed nothing: a change that no event tells is told by the snapshot alone.
  const isMissing = pulled.snapshot.sequence !== cursor.after
  return snapshotPart(pulled.snapshot, isMissing ? pulled.reason : null)
}

const snapshotPart = (snapshot: HeldSnapshot, resync: string | null): Part => ({
  events: [],
  first: snapshot.sequence + 1,
  snapshot,
  resync,
  next: behind(snapshot),
  more: false,
})

const replayPart = ({ first, events, last, more, snapshot }: Replay, cursor: EventCursor): Part => ({
  events,
  first,
  snapshot,
  resync: null,
  // A place behind newer events needs no snapshot to be known by.
  next:
    snapshot !== null
      ? behind(snapshot)
      : events.length === 0
        ? cursor
        : { after: last, snapshotId: cursor.snapshotId },
  more,
})

const behind = ({ sequence, id }: HeldSnapshot): EventCursor => ({ after: sequence, snapshotId: id })

const isEmpty = ({ events, snapshot }: Part): boolean => events.length === 0 && snapshot === null

/** False: nothing happened in this time. `stopped` ends the waiting early. */
async function changedWithin(feed: EventFeed, ms: number, stopped?: Promise<void>): Promise<boolean> {
  let forget = (): void => {}
  let timer: ReturnType<typeof setTimeout> | null = null
  const changed = new Promise<boolean>((resolve) => {
    forget = feed.onChange(() => resolve(true))
    timer = setTimeout(() => resolve(false), ms)
  })
  try {
    return await Promise.race([changed, ...(stopped ? [stopped.then(() => true)] : [])])
  } finally {
    forget()
    if (timer !== null) clearTimeout(timer)
  }
}

/** The place as `after` and `Last-Event-ID` name it. */
const placeText = ({ after, snapshotId }: EventCursor): string =>
  snapshotId === null ? String(after) : `${after}.${snapshotId}`

function pageText({ events, first, snapshot, resync, next, more }: Part): string {
  const numbered = events.map((event, index) => `{"sequence":${first + index},"event":${event}}`)
  const fields = [
    `"events":[${numbered.join(',')}]`,
    `"next_after":${JSON.stringify(placeText(next))}`,
    ...(more ? ['"more":true'] : []),
    ...(resync === null ? [] : [`"resync":${JSON.stringify(resync)}`]),
    ...(snapshot === null ? [] : [`"snapshot":${snapshot.body}`]),
  ]
  return `{${fields.join(',')}}`
}

function framesOf({ events, first, snapshot, resync, next }: Part): string[] {
  const frames = events.map((event, index) => `id: ${first + index}\ndata: ${event}\n\n`)
  if (resync !== null)
    frames.push(`event: resync\ndata: ${JSON.stringify({ type: 'resync_required', reason: resync })}\n\n`)
  if (snapshot !== null)
    frames.push(`id: ${placeText(next)}\ndata: {"type":"snapshot","snapshot":${snapshot.body}}\n\n`)
  return frames
}

function inPieces(frames: readonly string[]): string[] {
  const pieces: string[] = []
  for (const frame of frames) {
    const last = pieces.at(-1)
    if (last !== undefined && last.length + frame.length <= PIECE_UNITS)
      pieces[pieces.length - 1] = last + frame
    else pieces.push(frame)
  }
  return pieces
}
