import { errorName } from '../protocol/error-name.ts'
import { ATTACH_TIMEOUT_MS } from '../protocol/remote/limits.ts'
import type { PullAnswer, Replay, SessionRpc } from '../session/rpc.ts'
import { withDeadline } from '../storage/d1/deadline.ts'
import { retryDelayMs } from '../storage/outbox.ts'
import { type Delivered, type Delivery, OversizeFrame } from './delivery.ts'
import { EventFrames } from './event-frames.ts'
import type { Farewell, Sockets } from './sockets.ts'
import type { Subscription, Subscriptions } from './subscriptions.ts'

export type CatchUpDeps = {
  sockets: Sockets
  subscriptions: Subscriptions
  delivery: Delivery
  session(sessionId: string): Pick<SessionRpc, 'attach' | 'pull'>
  userId(): string
  keepAlive(work: Promise<unknown>): void
  arm(): void
}

/** After so many failures in a row nothing is tried until the session says something again, or the device does. */
const MAX_FAILURES = 10

/** A session that is taken off the list says so within this many tries. */
const MAX_STALE = 3

const SLOW_CONSUMER: Farewell = {
  code: 'slow_consumer',
  message: 'this connection does not read what it is sent; connect again and resume',
}

/** Asks sessions for what devices lack, as soon as these may be sent it (D34, D35). */
export class CatchUp {
  readonly #deps: CatchUpDeps
  /** Questions that are open. Whoever lacks the same waits for the same answer. */
  readonly #pulls = new Map<string, Promise<PullAnswer>>()

  constructor(deps: CatchUpDeps) {
    this.#deps = deps
  }

  /** When a subscription goes on by itself; null when none waits. */
  get nextAtMs(): number | null {
    const times = this.#deps.subscriptions.waiting().flatMap(({ goesOnAtMs }) => goesOnAtMs ?? [])
    return times.length === 0 ? null : Math.min(...times)
  }

  /** Goes on with those whose time has come. */
  resume(nowMs: number): void {
    for (const subscription of this.#deps.subscriptions.waiting())
      if (subscription.goesOnAtMs !== null && subscription.goesOnAtMs <= nowMs) this.start(subscription)
  }

  /** The device has read all that it was sent: what waits for that goes on. */
  heard(socket: WebSocket): void {
    for (const subscription of this.#deps.subscriptions.ofSocket(socket))
      if (subscription.phase === 'waiting') this.start(subscription)
  }

  /** Something is missing: it is asked for, if the device can be sent it. */
  start(subscription: Subscription): void {
    const { subscriptions, sockets, keepAlive } = this.#deps
    if (sockets.readers.isFull(subscription.socket)) {
      this.waitForReader(subscription)
      return
    }
    subscription.phase = 'asking'
    subscription.goesOnAtMs = null
    subscriptions.save(subscription.socket)
    keepAlive(this.#run(subscription))
  }

  /** Sends what was told of the session without being asked for, and asks for the rest where it is not enough. */
  deliver(subscription: Subscription, told: Replay, frames: EventFrames): void {
    const { delivery, subscriptions } = this.#deps
    let delivered: Delivered
    try {
      delivered = delivery.replay(subscription, told, frames)
    } catch (error) {
      if (!(error instanceof OversizeFrame)) throw error
      // Asked for, it is found again, and replaced.
      delivered = 'gap'
    }
    const lacks = told.more || told.last > subscription.cursor || lacksWanted(subscription)
    if (delivered === 'full') this.waitForReader(subscription)
    else if (delivered === 'gap' || lacks) this.start(subscription)
    else {
      subscription.wanted = null
      subscriptions.save(subscription.socket)
    }
  }

  /** The device has to read before it gets more; its events wait in the session. */
  waitForReader(subscription: Subscription): void {
    const { sockets, subscriptions, arm } = this.#deps
    const { socket } = subscription
    if (sockets.readers.isStuck(socket)) {
      sockets.end(socket, SLOW_CONSUMER)
      return
    }
    subscription.phase = 'waiting'
    subscription.goesOnAtMs = sockets.readers.goesOnAtMs(socket)
    subscriptions.save(socket)
    arm()
  }

  /** Never rejects. */
  async #run(subscription: Subscription): Promise<void> {
    const { subscriptions } = this.#deps
    try {
      for (;;) {
        const before = subscription.cursor
        const answer = await this.#pull(subscription)
        if (!subscriptions.holds(subscription)) return
        // The session's word that it is not listed is on its way, if it is true.
        if (answer.k === 'stale') return this.#stale(subscription)
        const delivered = this.#deliver(subscription, answer)
        if (delivered === 'full') return this.waitForReader(subscription)
        const isWhole = delivered === 'all' && !(answer.k === 'replay' && answer.replay.more)
        // The same question again would get the same answer.
        if (!isWhole && subscription.cursor === before) return this.#failed(subscription, 'it tells nothing')
        subscription.failures = 0
        if (isWhole && !lacksWanted(subscription)) return this.#isLive(subscription)
      }
    } catch (error) {
      if (!subscriptions.holds(subscription)) return
      if (error instanceof OversizeFrame) return this.#replace(subscription, error)
      this.#failed(subscription, errorName(error))
    }
  }

  #deliver(subscription: Subscription, answer: Exclude<PullAnswer, { k: 'stale' }>): Delivered {
    const { delivery } = this.#deps
    const frames = new EventFrames(subscription.sessionId, subscription.epoch)
    if (answer.k === 'replay') return delivery.replay(subscription, answer.replay, frames)
    delivery.resync(subscription, answer.reason, answer.snapshot, frames)
    return 'all'
  }

  #pull(subscription: Subscription): Promise<PullAnswer> {
    const { sessionId, epoch, cursor, snapshotId } = subscription
    const key = JSON.stringify([sessionId, epoch, cursor, snapshotId])
    const open = this.#pulls.get(key)
    // It may have been asked before what is wanted happened: that stays wanted.
    if (open) return open
    // Whatever was pushed so far the session knows, and its answer holds.
    subscription.wanted = null
    const { session, userId } = this.#deps
    const request = { registrationEpoch: epoch, after: cursor, snapshotId }
    const asked = withDeadline(session(sessionId).pull(userId(), request), ATTACH_TIMEOUT_MS).finally(() =>
      this.#pulls.delete(key),
    )
    this.#pulls.set(key, asked)
    return asked
  }

  /** An event that cannot be sent is replaced by the state that it led to (RF 12). */
  async #replace(subscription: Subscription, error: OversizeFrame): Promise<void> {
    console.error(`${error.message}; the device gets a snapshot instead`)
    const { session, userId, delivery, subscriptions } = this.#deps
    const { sessionId, epoch } = subscription
    try {
      const request = { registrationEpoch: epoch, after: null, snapshotId: null }
      subscription.wanted = null
      const answer = await withDeadline(session(sessionId).attach(userId(), request), ATTACH_TIMEOUT_MS)
      if (!subscriptions.holds(subscription)) return
      if (answer.k !== 'attached') return this.#failed(subscription, 'it gives no snapshot')
      delivery.resync(subscription, 'sequence_gap', answer.snapshot, new EventFrames(sessionId, epoch))
      if (lacksWanted(subscription)) this.start(subscription)
      else this.#isLive(subscription)
    } catch (again) {
      if (subscriptions.holds(subscription)) this.#failed(subscription, errorName(again))
    }
  }

  #isLive(subscription: Subscription): void {
    subscription.phase = 'live'
    subscription.wanted = null
    subscription.goesOnAtMs = null
    this.#deps.subscriptions.save(subscription.socket)
  }

  /** Not listed under this epoch. The list should have said so by then, and with a reason. */
  #stale(subscription: Subscription): void {
    if (subscription.failures < MAX_STALE) {
      this.#failed(subscription, 'it is not listed')
      return
    }
    const { delivery, subscriptions } = this.#deps
    delivery.closed(subscription, 'owner_exited')
    subscriptions.remove(subscription)
  }

  #failed(subscription: Subscription, why: string): void {
    const { subscriptions, arm } = this.#deps
    console.warn(`session ${subscription.sessionId} could not be asked for its events: ${why}`)
    subscription.phase = 'waiting'
    subscription.failures++
    subscription.goesOnAtMs =
      subscription.failures < MAX_FAILURES ? Date.now() + retryDelayMs(subscription.failures) : null
    subscriptions.save(subscription.socket)
    arm()
  }
}

/** Whether something was pushed that it could not be sent then, and has not got since. */
export const lacksWanted = ({ wanted, cursor, snapshotId }: Subscription): boolean =>
  wanted !== null &&
  (wanted.sequence > cursor ||
    (wanted.sequence === cursor && wanted.snapshotId !== null && wanted.snapshotId !== snapshotId))
