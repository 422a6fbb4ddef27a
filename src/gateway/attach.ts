import { errorName } from '../protocol/error-name.ts'
import type { ResyncReason } from '../protocol/remote/events.ts'
import type { RemoteResponse } from '../protocol/remote/frame.ts'
import { ATTACH_TIMEOUT_MS, MAX_FRAME_BYTES, REMOTE_PROTOCOL_VERSION } from '../protocol/remote/limits.ts'
import type { ResumeCursor } from '../protocol/remote/operations.ts'
import type { RemoteResult } from '../protocol/remote/results.ts'
import type { RemoteSnapshot } from '../protocol/remote/snapshot.ts'
import { toThreadNames } from '../protocol/remote/wire-names.ts'
import type { AttachAnswer, HeldSnapshot, Replay, SessionRpc } from '../session/rpc.ts'
import { withDeadline } from '../storage/d1/deadline.ts'
import { byteLength } from '../storage/limits.ts'
import { type CatchUp, lacksWanted } from './catch-up.ts'
import { EventFrames } from './event-frames.ts'
import type { GatewayParts } from './parts.ts'
import { refusal, staleSession } from './refusal.ts'
import type { DeviceSocket } from './sockets.ts'
import { MAX_SUBSCRIPTIONS, type Subscription, type Subscriptions } from './subscriptions.ts'

/** Answers the request, once: with a result, or with a whole frame in the connection's own names. */
export type Respond = (answer: { result: RemoteResult } | { frame: string }) => void

export type AttachDeps = {
  parts: GatewayParts
  subscriptions: Subscriptions
  catchUp: CatchUp
  session(sessionId: string): Pick<SessionRpc, 'attach'>
}

/** A request to attach that has got this far: its session is listed under its epoch. */
export type AttachTo = {
  requestId: string
  sessionId: string
  registrationEpoch: number
  resume: ResumeCursor | undefined
}

/** With what the session was asked, and what the answer to the device has to say besides. */
type Asked = {
  requestId: string
  after: number | null
  snapshotId: string | null
  resync: ResyncReason | null
}

/**
 * `attach_session` and `detach_session` (remote protocol, "Attaching, ordering and resuming"). The subscription stands
 * before the session is asked, so that whatever is pushed from its answer on is noticed; nothing of it is sent before the
 * answer (D34).
 */
export class Attaching {
  readonly #deps: AttachDeps
  /** How to answer the requests whose sessions are being asked. */
  readonly #open = new Map<Subscription, Respond>()

  constructor(deps: AttachDeps) {
    this.#deps = deps
  }

  /** Subscribes the connection in place of what it followed of this session, and asks the session from where on. */
  attach(socket: WebSocket, { threadNames }: DeviceSocket, to: AttachTo, respond: Respond): void {
    const { parts, subscriptions } = this.#deps
    const { sessionId, registrationEpoch: epoch } = to
    const before = subscriptions.get(socket, sessionId)
    if (before === null && subscriptions.ofSocket(socket).length >= MAX_SUBSCRIPTIONS) {
      const result = refusal('rate_limited', `a connection may follow ${MAX_SUBSCRIPTIONS} sessions`)
      respond({ result })
      return
    }
    if (before !== null) this.#overtaken(before)
    const subscription: Subscription = {
      socket,
      sessionId,
      epoch,
      threadNames,
      cursor: 0,
      snapshotId: null,
      phase: 'attaching',
      wanted: null,
      goesOnAtMs: null,
      failures: 0,
    }
    this.#open.set(subscription, respond)
    subscriptions.put(subscription)
    parts.keepAlive(this.#ask(subscription, to))
  }

  /** The connection follows the session no more. */
  detach(socket: WebSocket, sessionId: string): void {
    const { subscriptions } = this.#deps
    const before = subscriptions.get(socket, sessionId)
    if (before === null) return
    this.#overtaken(before)
    subscriptions.remove(before)
  }

  /** The session left the list while it was asked (RF 11). */
  ended(subscription: Subscription): void {
    this.#give(subscription, { result: staleSession() })
  }

  /**
   * A later request of the connection takes the place of one that waits. That one still has its answer: `owner_unavailable`
   * is what a client expects of an attach that its session did not answer, and it follows nothing by it.
   */
  #overtaken(before: Subscription): void {
    const message =
      'a later request of this connection took the place of this one before the session answered'
    this.#give(before, { result: refusal('owner_unavailable', message) })
  }

  /** Answers a request that is open; nothing when it has been answered. */
  #give(subscription: Subscription, answer: Parameters<Respond>[0]): void {
    const respond = this.#open.get(subscription)
    this.#open.delete(subscription)
    respond?.(answer)
  }

  /** Never rejects. */
  async #ask(subscription: Subscription, { requestId, registrationEpoch, resume }: AttachTo): Promise<void> {
    const { parts, session, subscriptions } = this.#deps
    const { gatewayId, instanceId, userId } = parts.identity()
    // A cursor of another gateway says nothing here (RF 12).
    const isOurs =
      resume?.gateway_id === gatewayId &&
      (resume.instance_id === undefined || resume.instance_id === instanceId)
    const after = isOurs ? resume.last_sequence : null
    const snapshotId = isOurs ? (resume.snapshot_id ?? null) : null
    try {
      const asked = session(subscription.sessionId).attach(userId, { registrationEpoch, after, snapshotId })
      const answer = await withDeadline(asked, ATTACH_TIMEOUT_MS)
      if (!subscriptions.holds(subscription)) return
      this.#answered(subscription, answer, {
        requestId,
        after,
        snapshotId,
        resync: resume !== undefined && !isOurs ? 'gateway_restarted' : null,
      })
    } catch (error) {
      console.warn(`session ${subscription.sessionId} could not be attached to:`, errorName(error))
      this.#refuse(subscription, refusal('owner_unavailable', 'the session did not answer; try again'))
    } finally {
      this.#open.delete(subscription)
    }
  }

  #answered(
    subscription: Subscription,
    answer: AttachAnswer,
    { requestId, after, snapshotId, resync }: Asked,
  ): void {
    switch (answer.k) {
      case 'stale':
        this.#refuse(subscription, staleSession())
        break
      case 'attached':
        this.#begin(subscription, requestId, answer.snapshot, resync ?? answer.resync)
        break
      case 'resumed':
        if (after === null) throw new Error('invariant broken: resumed without a cursor')
        subscription.cursor = after
        subscription.snapshotId = snapshotId
        this.#resume(subscription, answer.replay)
    }
  }

  #begin(
    subscription: Subscription,
    requestId: string,
    snapshot: HeldSnapshot,
    resync: ResyncReason | null,
  ): void {
    const { subscriptions, catchUp } = this.#deps
    const frame = this.#attached(subscription, requestId, snapshot, resync)
    if (byteLength(frame) > MAX_FRAME_BYTES) {
      this.#refuse(subscription, refusal('internal', 'the snapshot does not fit in a frame'))
      return
    }
    this.#give(subscription, { frame })
    subscription.cursor = snapshot.sequence
    subscription.snapshotId = snapshot.id
    subscription.phase = 'live'
    subscriptions.save(subscription.socket)
    if (lacksWanted(subscription)) catchUp.start(subscription)
  }

  #resume(subscription: Subscription, replay: Replay): void {
    const { parts, catchUp } = this.#deps
    const { gatewayId: gateway_id, instanceId: instance_id } = parts.identity()
    const next_sequence = subscription.cursor + 1
    this.#give(subscription, { result: { type: 'resumed', gateway_id, instance_id, next_sequence } })
    subscription.phase = 'live'
    catchUp.deliver(subscription, replay, new EventFrames(subscription.sessionId, subscription.epoch))
  }

  #refuse(subscription: Subscription, why: RemoteResult): void {
    this.#give(subscription, { result: why })
    if (this.#deps.subscriptions.holds(subscription)) this.#deps.subscriptions.remove(subscription)
  }

  /** The answer with its snapshot, which comes as JSON and is read only where it has to be translated. */
  #attached(
    { threadNames }: Subscription,
    requestId: string,
    { body }: HeldSnapshot,
    resync: ResyncReason | null,
  ): string {
    const { gatewayId: gateway_id, instanceId: instance_id } = this.#deps.parts.identity()
    const head = {
      type: 'attached' as const,
      gateway_id,
      instance_id,
      ...(resync === null ? {} : { resync }),
    }
    const response = {
      kind: 'response' as const,
      protocol_version: REMOTE_PROTOCOL_VERSION,
      request_id: requestId,
    } satisfies Partial<RemoteResponse>
    if (threadNames) {
      const snapshot: RemoteSnapshot = JSON.parse(body)
      return JSON.stringify(toThreadNames({ ...response, result: { ...head, snapshot } }))
    }
    const result = `${JSON.stringify(head).slice(0, -1)},"snapshot":${body}}`
    return `${JSON.stringify(response).slice(0, -1)},"result":${result}}`
  }
}
