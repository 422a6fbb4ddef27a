import type { RemoteEvent, ResyncReason, SessionCloseReason } from '../protocol/remote/events.ts'
import type { HeldSnapshot, Replay } from '../session/rpc.ts'
import { EventFrames, type FrameText, fitsFrame } from './event-frames.ts'
import type { Sockets } from './sockets.ts'
import type { Subscription } from './subscriptions.ts'

/** How far what was to be sent has come. `full`: the device has to read first. `gap`: there is something missing before it. */
export type Delivered = 'all' | 'full' | 'gap'

/** Puts a session's events on the sockets that follow it: each once, in order, and no more than they read (D34, D35). */
export class Delivery {
  readonly #sockets: Sockets

  constructor(sockets: Sockets) {
    this.#sockets = sockets
  }

  /** Sends what of it the device lacks. Where it stops, the cursor stands. */
  replay(
    to: Subscription,
    { first, events, snapshot }: Omit<Replay, 'more'>,
    frames: EventFrames,
  ): Delivered {
    for (const [n, event] of events.entries()) {
      const sequence = first + n
      if (sequence <= to.cursor) continue
      if (sequence !== to.cursor + 1) return 'gap'
      if (this.#sockets.readers.isFull(to.socket)) return 'full'
      this.#send(to, frames.frame(sequence, sequence, event, namesOf(to)))
      to.cursor = sequence
    }
    if (snapshot === null || !isNews(to, snapshot)) return 'all'
    if (this.#sockets.readers.isFull(to.socket)) return 'full'
    this.#snapshot(to, snapshot, frames)
    return 'all'
  }

  /** What the device holds cannot be continued: it is told why, and what stands for it (RF 12). */
  resync(to: Subscription, reason: ResyncReason, snapshot: HeldSnapshot, frames: EventFrames): void {
    const event: RemoteEvent = { type: 'resync_required', reason }
    const key = `resync ${reason} ${snapshot.sequence}`
    this.#send(to, frames.frame(key, snapshot.sequence, JSON.stringify(event), namesOf(to)))
    this.#snapshot(to, snapshot, frames)
  }

  /** The end of a subscription. It does not wait for the device to read. */
  closed(to: Subscription, reason: SessionCloseReason): void {
    const event: RemoteEvent = { type: 'session_closed', reason }
    const frames = new EventFrames(to.sessionId, to.epoch)
    this.#send(to, frames.frame('closed', to.cursor, JSON.stringify(event), namesOf(to)))
  }

  #snapshot(to: Subscription, snapshot: HeldSnapshot, frames: EventFrames): void {
    const event = `{"type":"snapshot","snapshot":${snapshot.body}}`
    const key = `snapshot ${snapshot.id} ${snapshot.sequence}`
    this.#send(to, frames.frame(key, snapshot.sequence, event, namesOf(to)))
    to.cursor = snapshot.sequence
    to.snapshotId = snapshot.id
  }

  #send({ socket, sessionId }: Subscription, frame: FrameText): void {
    if (!fitsFrame(frame)) throw new OversizeFrame(`an event of session ${sessionId} beyond a frame`)
    this.#sockets.sendText(socket, frame.text, frame.bytes)
  }
}

/** An event that must not leave (RF 1): its session bounds what it makes, so this is a fault of ours. */
export class OversizeFrame extends Error {
  override name = 'OversizeFrame'
}

/** One that is older than what the device holds would take it back. */
export const isNews = (
  { cursor, snapshotId }: Pick<Subscription, 'cursor' | 'snapshotId'>,
  snapshot: HeldSnapshot,
): boolean => snapshot.sequence > cursor || (snapshot.sequence === cursor && snapshot.id !== snapshotId)

const namesOf = ({ threadNames }: Subscription) => (threadNames ? 'thread' : 'session')
