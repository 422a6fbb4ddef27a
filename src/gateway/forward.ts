import { errorName } from '../protocol/error-name.ts'
import type { RequestEnvelope } from '../protocol/remote/decode-request.ts'
import { MAX_IN_FLIGHT, OWNER_TIMEOUT_MS } from '../protocol/remote/limits.ts'
import { isMutation } from '../protocol/remote/operation-kinds.ts'
import type { ReceiptState, RemoteResult } from '../protocol/remote/results.ts'
import type { Actor, SessionOperation, SessionRpc } from '../session/rpc.ts'
import { withDeadline } from '../storage/d1/deadline.ts'
import { saveRequestSession } from '../storage/gateway/request-sessions.ts'
import type { Sql } from '../storage/session/sql.ts'
import { InFlight } from './in-flight.ts'
import type { LiveList } from './live-list.ts'
import { misdirected, refusal } from './refusal.ts'
import { requestDigest } from './request-digest.ts'

/** `receipt` is null for what changes nothing. */
export type Answer = { receipt: ReceiptState | null; result: RemoteResult }

export type ForwardDeps = {
  sql: Sql
  list: LiveList
  session(sessionId: string): Pick<SessionRpc, 'operate'>
  userId(): string
}

/** Hands operations on a session to it (remote protocol, "Operations", "Receipts"). Whether they apply is its to say. */
export class Forward {
  readonly #deps: ForwardDeps
  readonly #inFlight = new InFlight()
  /** Of each connection: when the request before has gone to its session. */
  readonly #order = new WeakMap<WebSocket, Promise<unknown>>()

  constructor(deps: ForwardDeps) {
    this.#deps = deps
  }

  /** Why a request is refused before it gets to its session (RF 10), which leaves no receipt; null when it is not. */
  refuses(socket: WebSocket, { sessionId, registrationEpoch }: RequestEnvelope): RemoteResult | null {
    if (!this.#inFlight.hasRoom(socket)) return tooMany()
    return misdirected(sessionId === null ? null : this.#deps.list.row(sessionId), registrationEpoch)
  }

  /** Hands a request on that `refuses` had nothing against; both are called in one go. Never rejects. */
  serve(
    socket: WebSocket,
    actor: Actor,
    request: RequestEnvelope,
    operation: SessionOperation,
  ): Promise<Answer> {
    return this.#inFlight.during(socket, () =>
      this.#operate(actor, request, operation, this.#digest(socket, request)),
    )
  }

  /** The digest of a request, when those of the requests before it are there: in that order they go on. */
  #digest(socket: WebSocket, request: RequestEnvelope): Promise<string> {
    const inOrder = Promise.all([requestDigest(request), this.#order.get(socket)])
    this.#order.set(
      socket,
      inOrder.catch(() => {}),
    )
    return inOrder.then(([digest]) => digest)
  }

  async #operate(
    actor: Actor,
    request: RequestEnvelope,
    operation: SessionOperation,
    digesting: Promise<string>,
  ): Promise<Answer> {
    const { sql, session, userId } = this.#deps
    const { requestId, sessionId, registrationEpoch: epoch } = request
    if (sessionId === null || epoch === null)
      throw new Error('invariant broken: an operation on a session that names none')
    const isReceipted = isMutation(operation.type)
    try {
      // Noted before it goes: from then on it may have been applied (D29).
      if (isReceipted) saveRequestSession(sql, actor.id, requestId, { sessionId, epoch }, Date.now())
    } catch (error) {
      console.error(`where a request goes could not be noted:`, errorName(error))
      return { receipt: 'rejected', result: refusal('internal', 'the router failed to store this request') }
    }
    try {
      const digest = await digesting
      const asked = session(sessionId).operate(userId(), actor, {
        requestId,
        registrationEpoch: epoch,
        digest,
        operation,
      })
      return await withDeadline(asked, OWNER_TIMEOUT_MS)
    } catch (error) {
      console.warn(`session ${sessionId} did not answer to ${operation.type}:`, errorName(error))
      const message = isReceipted
        ? 'the session did not answer; ask for the status of the request before you send another'
        : 'the session did not answer; try again'
      return { receipt: isReceipted ? 'unknown' : null, result: refusal('owner_unavailable', message) }
    }
  }
}

export const tooMany = (): RemoteResult =>
  refusal('rate_limited', `${MAX_IN_FLIGHT} requests of this connection wait for answers; try again later`)
