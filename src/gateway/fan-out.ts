import type { SessionCloseReason } from '../protocol/remote/events.ts'
import type { Attaching } from './attach.ts'
import type { CatchUp } from './catch-up.ts'
import type { Delivery } from './delivery.ts'
import { EventFrames } from './event-frames.ts'
import type { EventPush } from './rpc.ts'
import type { Subscription, Subscriptions } from './subscriptions.ts'

export type FanOutDeps = {
  subscriptions: Subscriptions
  delivery: Delivery
  catchUp: CatchUp
  attaching: Attaching
}

/** What sessions say of their own accord, to all who follow them. */
export class FanOut {
  readonly #deps: FanOutDeps

  constructor(deps: FanOutDeps) {
    this.#deps = deps
  }

  /** Events of a session. False: nobody follows it under this registration. */
  push(push: EventPush): boolean {
    const { subscriptions, catchUp } = this.#deps
    const following = subscriptions
      .ofSession(push.sessionId)
      .filter(({ epoch }) => epoch === push.registrationEpoch)
    const frames = new EventFrames(push.sessionId, push.registrationEpoch)
    for (const subscription of following) {
      subscription.wanted = newer(subscription.wanted, push)
      if (subscription.phase === 'live') {
        // Events that were left out are asked for: a snapshot does not stand for them (D34).
        if (push.events.length === 0 && push.last > subscription.cursor) catchUp.start(subscription)
        else catchUp.deliver(subscription, { ...push, more: false }, frames)
      }
      // One that has given up on its session hears that it is there; others go on when their time has come.
      else if (subscription.phase === 'waiting' && subscription.goesOnAtMs === null)
        catchUp.start(subscription)
    }
    return following.length > 0
  }

  /** A registration has ended: so have the subscriptions to it (RF 11). */
  ended(sessionId: string, epoch: number, reason: SessionCloseReason): void {
    const { subscriptions, delivery, attaching } = this.#deps
    for (const subscription of subscriptions.ofSession(sessionId)) {
      if (subscription.epoch > epoch) continue
      if (subscription.phase === 'attaching') attaching.ended(subscription)
      else delivery.closed(subscription, reason)
      subscriptions.remove(subscription)
    }
  }
}

function newer(
  wanted: Subscription['wanted'],
  { last, snapshot }: Pick<EventPush, 'last' | 'snapshot'>,
): Subscription['wanted'] {
  const sequence = Math.max(last, snapshot?.sequence ?? 0, wanted?.sequence ?? 0)
  if (snapshot?.sequence === sequence) return { sequence, snapshotId: snapshot.id }
  return wanted?.sequence === sequence ? wanted : { sequence, snapshotId: null }
}
