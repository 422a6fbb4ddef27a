import { errorTrace } from '../protocol/error-name.ts'
import type { RequestEnvelope, WireNames } from '../protocol/remote/decode-request.ts'
import type { RemoteErrorCode } from '../protocol/remote/errors.ts'
import type { RemoteResponse, RemoteSessionsFrame } from '../protocol/remote/frame.ts'
import { MAX_FRAME_BYTES, MAX_REQUEST_BYTES, REMOTE_PROTOCOL_VERSION } from '../protocol/remote/limits.ts'
import { isMutation, namesSession } from '../protocol/remote/operation-kinds.ts'
import type { RemoteResult } from '../protocol/remote/results.ts'
import type { RemoteSessionInfo } from '../protocol/remote/session-info.ts'
import { toThreadNames } from '../protocol/remote/wire-names.ts'
import { byteLength } from '../storage/limits.ts'
import type { ConnectRequests } from './connect-requests.ts'
import type { LiveList } from './live-list.ts'
import type { GatewayParts } from './parts.ts'
import type { DeviceSocket } from './sockets.ts'

/** Requests of authenticated devices (remote protocol, "Session frames", "Sessions"): each is answered exactly once. */
export class Requests {
  readonly #parts: GatewayParts
  readonly #list: LiveList
  readonly #connect: ConnectRequests

  constructor(parts: GatewayParts, list: LiveList, connect: ConnectRequests) {
    this.#parts = parts
    this.#list = list
    this.#connect = connect
  }

  serve(socket: WebSocket, state: DeviceSocket, request: RequestEnvelope): void {
    const { requestId, operation } = request
    let result: RemoteResult
    try {
      result = this.#resultOf(socket, state, request)
    } catch (error) {
      console.error(`serving ${operation.type} failed:`, errorTrace(error))
      result = refusal('internal', 'the router failed to serve this request')
    }
    const isRefusedMutation = result.type === 'error' && isMutation(operation.type)
    this.answer(socket, state, {
      kind: 'response',
      protocol_version: REMOTE_PROTOCOL_VERSION,
      request_id: requestId,
      ...(isRefusedMutation ? { receipt: 'rejected' } : {}),
      result,
    })
  }

  /** Above the size of a request, and still a frame that can be answered. */
  refuseTooLarge(socket: WebSocket, state: DeviceSocket): void {
    const result = refusal('frame_too_large', `a request may have ${MAX_REQUEST_BYTES} bytes`)
    this.answer(socket, state, {
      kind: 'response',
      protocol_version: REMOTE_PROTOCOL_VERSION,
      request_id: '',
      result,
    })
  }

  answer(socket: WebSocket, { threadNames }: DeviceSocket, response: RemoteResponse): void {
    const fits = byteLength(JSON.stringify(response)) <= MAX_FRAME_BYTES
    const fitting = fits
      ? response
      : { ...response, result: refusal('internal', 'the answer does not fit in a frame') }
    this.#parts.sockets.send(socket, threadNames ? toThreadNames(fitting) : fitting)
  }

  /** Tells every device that follows the list what it is now. */
  pushList(rows: RemoteSessionInfo[]): void {
    const { sockets, identity } = this.#parts
    const following = sockets.devices().filter(([, { subscribed }]) => subscribed)
    if (following.length === 0) return
    const { gatewayId, instanceId } = identity()
    const frame: RemoteSessionsFrame = {
      kind: 'sessions',
      protocol_version: REMOTE_PROTOCOL_VERSION,
      gateway_id: gatewayId,
      instance_id: instanceId,
      sessions: rows,
    }
    const texts: Partial<Record<WireNames, string>> = {}
    for (const [socket, { threadNames }] of following) {
      const names = threadNames ? 'thread' : 'session'
      texts[names] ??= JSON.stringify(threadNames ? toThreadNames(frame) : frame)
      // Rows are bounded so that all of them fit; a frame that does not must not leave (RF 1).
      if (byteLength(texts[names]) > MAX_FRAME_BYTES)
        throw new Error('invariant broken: a list beyond a frame')
      sockets.sendText(socket, texts[names])
    }
  }

  #resultOf(
    socket: WebSocket,
    state: DeviceSocket,
    { operation, sessionId, registrationEpoch }: RequestEnvelope,
  ): RemoteResult {
    switch (operation.type) {
      case 'list_sessions':
        return this.#sessions(state.subscribed)
      case 'subscribe_sessions':
        this.#parts.sockets.set(socket, { ...state, subscribed: true })
        return this.#sessions(true)
      // Nothing is attached and no receipt is kept yet, so these are the whole truth.
      case 'detach_session':
        return { type: 'detached' }
      case 'get_request_status':
        return {
          type: 'request_status',
          target_request_id: operation.target_request_id,
          receipt: 'unknown',
        }
      default:
        return (
          (namesSession(operation.type) ? this.#misdirected(sessionId, registrationEpoch) : null) ??
          refusal('unsupported_operation', `this router does not serve ${operation.type}`)
        )
    }
  }

  /** Why a request reaches no session (RF 10); null when it does. */
  #misdirected(sessionId: string | null, registrationEpoch: number | null): RemoteResult | null {
    const row = sessionId === null ? null : this.#list.row(sessionId)
    if (row === null) return refusal('not_found', 'no such session is shared now; list the sessions')
    return row.registration_epoch === registrationEpoch
      ? null
      : refusal('stale_session', 'the session was shared again; list the sessions for its new epoch')
  }

  #sessions(subscribed: boolean): RemoteResult {
    const { gatewayId, instanceId } = this.#parts.identity()
    return {
      type: 'sessions',
      gateway_id: gatewayId,
      instance_id: instanceId,
      subscribed,
      sessions: this.#list.rows,
      capabilities: [
        'token_rotation' as const,
        'desktops' as const,
        ...(this.#connect.isListening(Date.now()) ? (['connect_requests'] as const) : []),
      ],
    }
  }
}

const refusal = (code: RemoteErrorCode, message: string): Extract<RemoteResult, { type: 'error' }> => ({
  type: 'error',
  code,
  message,
})
