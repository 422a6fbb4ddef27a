import { judgeCursor } from '../core/ring-cursor.ts'
import { errorName } from '../protocol/error-name.ts'
import type { RemoteEvent, ResyncReason } from '../protocol/remote/events.ts'
import { byteLength } from '../storage/limits.ts'
import type { SnapshotCut } from '../storage/session/checkpoint.ts'
import type { RingStore } from '../storage/session/ring-segments.ts'
import { type EventGateway, EventPusher } from './event-pusher.ts'
import { Ring, type RingStart } from './ring.ts'
import type { HeldSnapshot, PullAnswer, Replay } from './rpc.ts'
import { type TextClock, TextGatherer } from './text-gatherer.ts'

/** Text is stored at the latest after this long … (D33). */
export const RING_FLUSH_MS = 1_000
/** … or when events of so many bytes wait (D33). */
const RING_FLUSH_BYTES = 8 * 1024
/** While somebody follows, text leaves after this long: slower than a model speaks, faster than one reads (D33). */
const GATHER_MS = 75
/** Events in one answer; the rest is pulled. */
const MAX_REPLAY_BYTES = 1024 * 1024

/** What is known of the events when the object comes up. */
export type FeedStart = RingStart & {
  /** Every event up to here was lost, or is another registration's; 0 for none. */
  lost: number
  cut: SnapshotCut
  watched: boolean
}

export type FeedDeps = {
  store: RingStore
  gateway(userId: string): EventGateway
  registration(): { userId: string; sessionId: string; epoch: number } | null
  /** The state as it is now, whole. Every event that was given a number is in it. */
  snapshot(at: SnapshotCut): HeldSnapshot
  clock(): TextClock
  /** Calls `store` in a transaction that stores `record` as well. */
  save(store: () => void): void
  /** The last number that is reserved by what is stored. */
  reserved(): number
  newId(): string
  /** The gateway could not be told: the object has to wake at `retryAtMs`. */
  failed(): void
  keepAlive(work: Promise<unknown>): void
}

/** What the checkpoint keeps of the feed. */
export type FeedRecord = { ringReserved: number; lost: number; cut: SnapshotCut; watched: boolean }

/**
 * The session's events, as devices follow them: numbered once, kept in the ring, told to the gateway while somebody
 * follows. Text goes out in bits and is stored a moment later; everything else is stored before it is seen (D33).
 */
export class Feed {
  readonly #deps: FeedDeps
  #ring: Ring
  #cut: SnapshotCut
  #lost: number
  readonly #text = new TextGatherer()
  readonly #pusher: EventPusher
  #flushTimer: ReturnType<typeof setTimeout> | null = null
  #gatherTimer: ReturnType<typeof setTimeout> | null = null
  readonly #waiters = new Set<() => void>()

  constructor(deps: FeedDeps, start: FeedStart) {
    this.#deps = deps
    this.#ring = new Ring(deps.store, start)
    this.#cut = start.cut
    this.#lost = start.lost
    this.#pusher = new EventPusher(
      {
        gateway: () => {
          const registration = deps.registration()
          if (registration === null)
            throw new Error('invariant broken: events of a session that is not listed')
          return deps.gateway(registration.userId)
        },
        registration: deps.registration,
        head: () => ({ last: this.#ring.last, cutId: this.#cut.id }),
        after: (sequence) => this.#ring.after(sequence),
        settle: () => this.#closeText(),
        snapshot: () => this.#snapshot(),
        unwatched: () => this.#stopGathering(),
        failed: deps.failed,
        keepAlive: deps.keepAlive,
      },
      start.watched,
    )
  }

  get record(): FeedRecord {
    return {
      ringReserved: this.#ring.reserved,
      lost: this.#lost,
      cut: this.#cut,
      watched: this.#pusher.watched,
    }
  }

  /** The newest number that was given out. */
  get last(): number {
    return this.#ring.last
  }

  /** A bit of what the model says. */
  text(delta: string): void {
    const due = this.#text.text(delta)
    if (due === 'full' || (due === 'first' && this.#pusher.watched)) this.#closeText()
    else if (this.#pusher.watched) this.#gatherTimer ??= setTimeout(() => this.#closeText(), GATHER_MS)
    this.#flushSoon()
  }

  /** The model is thinking: its clocks have moved. */
  thought(): void {
    this.#text.thought()
    if (this.#pusher.watched) this.#gatherTimer ??= setTimeout(() => this.#closeText(), GATHER_MS)
    this.#flushSoon()
  }

  /** Before a step is stored: what was said until then comes before it. Inside the step's transaction. */
  closeForStep(): void {
    for (const event of this.#text.close(this.#deps.clock)) this.#ring.push(JSON.stringify(event))
  }

  /**
   * Gives the events of a step their numbers and stores them. Inside the step's transaction, which stores `record` as
   * well. `cutId` names the state that the step leads to, where no event tells of it (RF 13).
   */
  storeStep(events: readonly RemoteEvent[], cutId: string | null): void {
    for (const event of events) this.#ring.push(JSON.stringify(event))
    this.#ring.store()
    if (cutId !== null) this.#cut = { sequence: this.#ring.last, id: cutId }
  }

  /** The step is stored. `ended`: no turn is served now. */
  stepStored({ ended }: { ended: boolean }): void {
    this.#stopGathering()
    this.#stopFlushTimer()
    if (ended) this.#text.forget()
    else this.#text.begin()
    this.#told()
  }

  /** The session is listed anew: cursors of before say nothing any more (D03). */
  registered(): void {
    this.closeForStep()
    this.#lost = Math.max(this.#lost, this.#ring.last)
  }

  /** What should have been stored was not: the events end at `last` again, and a snapshot tells where that has led. */
  reset(last: number): void {
    const { store, reserved, newId } = this.#deps
    store.truncate(last)
    this.#ring = new Ring(store, { next: last + 1, reserved: reserved() })
    this.#cut = { sequence: last, id: newId() }
  }

  /** When the object's alarm has to announce again; null when it need not. */
  get retryAtMs(): number | null {
    return this.#pusher.retryAtMs
  }

  /** Somebody may have missed something: after the object came up, and when its alarm rings. */
  announce(): void {
    this.#told()
  }

  /** Calls once, when there is something behind what was there before; whoever is not interested any more calls what is returned. */
  onChange(call: () => void): () => void {
    this.#waiters.add(call)
    return () => this.#waiters.delete(call)
  }

  /** From now on devices are told of events. True: that is new, and has to be stored. */
  watch(): boolean {
    const isNew = !this.#pusher.watched
    this.#pusher.watch()
    return isNew
  }

  /** The state at this moment. */
  attach(): HeldSnapshot {
    this.#closeText()
    return this.#snapshot()
  }

  /** What is behind a cursor, or why that cannot be told any more. */
  pull(after: number, snapshotId: string | null): Exclude<PullAnswer, { k: 'stale' }> {
    this.#closeText()
    const { last, floor } = this.#ring
    const verdict = judgeCursor(
      { after, snapshotId },
      { last, floor, lost: this.#lost, cut: this.#cut, holds: (sequence) => this.#ring.holds(sequence) },
    )
    return verdict.k === 'resync'
      ? this.#resync(verdict.reason)
      : { k: 'replay', replay: this.#replay(after, snapshotId, verdict.withSnapshot) }
  }

  close(): void {
    this.#stopGathering()
    this.#stopFlushTimer()
    this.#pusher.close()
    this.#wake()
  }

  #resync(reason: ResyncReason): PullAnswer & { k: 'resync' } {
    return { k: 'resync', reason, snapshot: this.#snapshot() }
  }

  #replay(after: number, snapshotId: string | null, withSnapshot: boolean): Replay {
    const held = this.#ring.after(after)
    const events: string[] = []
    let bytes = 0
    for (const { seq, json } of held) {
      // Behind a hole only a snapshot leads on.
      if (seq !== after + events.length + 1) break
      bytes += byteLength(json)
      if (bytes > MAX_REPLAY_BYTES && events.length > 0) break
      events.push(json)
    }
    const last = after + events.length
    // Whoever names no snapshot is not known to lack one once it is behind the change: it has to come now, for the rest as well.
    const isForgotten = withSnapshot && snapshotId === null && last >= this.#cut.sequence
    const more = !isForgotten && held[events.length]?.seq === last + 1
    const isShort = !more && last < this.#ring.last
    return {
      first: after + 1,
      events,
      last,
      more,
      snapshot: !more && (withSnapshot || isShort) ? this.#snapshot() : null,
    }
  }

  #snapshot(): HeldSnapshot {
    return this.#deps.snapshot({ sequence: this.#ring.last, id: this.#cut.id })
  }

  #closeText(): void {
    this.#stopGathering()
    const events = this.#text.close(this.#deps.clock)
    if (events.length === 0) return
    let isReserved = true
    for (const event of events) isReserved = this.#ring.push(JSON.stringify(event)) && isReserved
    if (!isReserved || this.#ring.unstoredBytes >= RING_FLUSH_BYTES) this.#flush()
    else this.#flushSoon()
    this.#told()
  }

  #told(): void {
    this.#pusher.changed()
    this.#wake()
  }

  #wake(): void {
    const waiting = [...this.#waiters]
    this.#waiters.clear()
    for (const wake of waiting) wake()
  }

  #flushSoon(): void {
    this.#flushTimer ??= setTimeout(() => {
      this.#flushTimer = null
      this.#closeText()
      this.#flush()
    }, RING_FLUSH_MS)
  }

  #flush(): void {
    this.#stopFlushTimer()
    if (this.#ring.unstoredBytes === 0) return
    try {
      this.#deps.save(() => this.#ring.store())
    } catch (error) {
      // Nobody waits for this: the turn goes on, and whoever follows gets a snapshot for what is not held now.
      console.error('text could not be stored:', errorName(error))
      // What lies beyond what is reserved was told to nobody.
      this.reset(Math.min(this.#ring.last, this.#deps.reserved()))
    }
  }

  #stopFlushTimer(): void {
    if (this.#flushTimer !== null) clearTimeout(this.#flushTimer)
    this.#flushTimer = null
  }

  #stopGathering(): void {
    if (this.#gatherTimer !== null) clearTimeout(this.#gatherTimer)
    this.#gatherTimer = null
  }
}
