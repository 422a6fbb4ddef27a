import { errorTrace } from '../protocol/error-name.ts'
import type { RequestEnvelope } from '../protocol/remote/decode-request.ts'
import type { RemoteResponse } from '../protocol/remote/frame.ts'
import { MAX_FRAME_BYTES, MAX_REQUEST_BYTES, REMOTE_PROTOCOL_VERSION } from '../protocol/remote/limits.ts'
import { isMutation } from '../protocol/remote/operation-kinds.ts'
import type { ResumeCursor } from '../protocol/remote/operations.ts'
import type { ReceiptState, RemoteResult } from '../protocol/remote/results.ts'
import { toThreadNames } from '../protocol/remote/wire-names.ts'
import type { Actor } from '../session/rpc.ts'
import { byteLength } from '../storage/limits.ts'
import type { Attaching } from './attach.ts'
import type { ConnectRequests } from './connect-requests.ts'
import { type Answer, type Forward, tooMany } from './forward.ts'
import type { HostOperations } from './host/host.ts'
import { InFlight } from './in-flight.ts'
import type { ListPush } from './list-push.ts'
import type { LiveList } from './live-list.ts'
import { FLOW_ACK } from './manner.ts'
import type { GatewayParts } from './parts.ts'
import { misdirected, refusal } from './refusal.ts'
import type { RequestStatus } from './request-status.ts'
import type { DeviceSocket } from './sockets.ts'

export type RequestsDeps = {
  parts: GatewayParts
  list: LiveList
  listPush: ListPush
  connect: ConnectRequests
  attaching: Attaching
  forward: Forward
  status: RequestStatus
  host: HostOperations
}

/**
 * Requests of authenticated devices (remote protocol, "Session frames", "Operations"): each is answered exactly once, and
 * none waits for the answer to another.
 */
export class Requests {
  readonly #deps: RequestsDeps
  /** Host-wide operations wait for the database; they have places of their own. */
  readonly #atHost = new InFlight()

  constructor(deps: RequestsDeps) {
    this.#deps = deps
  }

  serve(socket: WebSocket, state: DeviceSocket, request: RequestEnvelope): void {
    const { operation, requestId } = request
    const respond = ({ receipt, result }: Answer): void =>
      this.answer(socket, state, responseTo(requestId, receipt, result))
    const failed = (error: unknown, { mayBeApplied }: { mayBeApplied: boolean }): void => {
      console.error(`serving ${operation.type} failed:`, errorTrace(error))
      const receipt = mayBeApplied ? 'unknown' : 'rejected'
      const result = refusal('internal', 'the router failed to serve this request')
      respond({ receipt: isMutation(operation.type) ? receipt : null, result })
    }
    let outcome: Answer | Promise<Answer> | null
    try {
      outcome = this.#outcome(socket, state, request)
    } catch (error) {
      failed(error, { mayBeApplied: false })
      return
    }
    if (outcome === null) return
    if (!(outcome instanceof Promise)) respond(outcome)
    // The frames behind it are served meanwhile (U12).
    else
      this.#deps.parts.keepAlive(
        outcome.then(respond, (error: unknown) => failed(error, { mayBeApplied: true })),
      )
  }

  /** Above the size of a request, and still a frame that can be answered. */
  refuseTooLarge(socket: WebSocket, state: DeviceSocket): void {
    const result = refusal('frame_too_large', `a request may have ${MAX_REQUEST_BYTES} bytes`)
    this.answer(socket, state, responseTo('', null, result))
  }

  answer(socket: WebSocket, { threadNames }: DeviceSocket, response: RemoteResponse): void {
    const { sockets } = this.#deps.parts
    const spoken = (frame: RemoteResponse) => JSON.stringify(threadNames ? toThreadNames(frame) : frame)
    const text = spoken(response)
    const bytes = byteLength(text)
    if (bytes <= MAX_FRAME_BYTES) sockets.sendText(socket, text, bytes)
    else
      sockets.sendText(
        socket,
        spoken({ ...response, result: refusal('internal', 'the answer does not fit in a frame') }),
      )
  }

  /** The answer, or when it will be there; null when it is given with what has to follow it. */
  #outcome(
    socket: WebSocket,
    state: DeviceSocket,
    request: RequestEnvelope,
  ): Answer | Promise<Answer> | null {
    const { parts, attaching, forward, status, host } = this.#deps
    const { operation, sessionId, registrationEpoch } = request
    switch (operation.type) {
      case 'list_sessions':
        return read(this.#sessions(socket, state, state.subscribed))
      case 'subscribe_sessions':
        parts.sockets.change(socket, { subscribed: true })
        return read(this.#sessions(socket, state, true))
      case 'attach_session':
        return this.#attach(socket, state, request, operation.resume)
      case 'detach_session':
        if (sessionId !== null) attaching.detach(socket, sessionId)
        return read({ type: 'detached' })
      case 'get_request_status': {
        const { deviceId } = state
        const target = operation.target_request_id
        return status.of({ deviceId, target, sessionId, registrationEpoch }).then(read)
      }
      case 'list_saved_sessions':
      case 'resume_session':
      case 'get_usage':
      case 'get_settings':
      case 'set_settings':
      case 'pin_thread':
      case 'unpin_thread':
      case 'settle_thread':
      case 'unsettle_thread':
        if (!this.#atHost.hasRoom(socket)) return refused(request, tooMany())
        return this.#atHost.during(socket, () => host.serve(actorOf(state), request))
      case 'create_session':
      case 'list_directories':
      case 'request_share':
        return refused(request, notServed(operation.type))
      default: {
        const why = forward.refuses(socket, request)
        if (why !== null) return refused(request, why)
        if (operation.type === 'get_changes') return refused(request, notServed(operation.type))
        return forward.serve(socket, actorOf(state), request, operation)
      }
    }
  }

  #attach(
    socket: WebSocket,
    state: DeviceSocket,
    { requestId, sessionId, registrationEpoch }: RequestEnvelope,
    resume: ResumeCursor | undefined,
  ): Answer | null {
    const { parts, list, attaching } = this.#deps
    const why = misdirected(sessionId === null ? null : list.row(sessionId), registrationEpoch)
    if (why !== null) return read(why)
    if (sessionId === null || registrationEpoch === null)
      throw new Error('invariant broken: a session is listed that is not named')
    attaching.attach(socket, state, { requestId, sessionId, registrationEpoch, resume }, (answer) => {
      if ('frame' in answer) parts.sockets.sendText(socket, answer.frame)
      else this.answer(socket, state, responseTo(requestId, null, answer.result))
    })
    return null
  }

  #sessions(socket: WebSocket, { acknowledges }: DeviceSocket, subscribed: boolean): RemoteResult {
    const { parts, list, listPush, connect, host } = this.#deps
    const sessions = list.rows
    listPush.answered(socket, sessions)
    const { gatewayId, instanceId } = parts.identity()
    return {
      type: 'sessions',
      gateway_id: gatewayId,
      instance_id: instanceId,
      subscribed,
      sessions,
      capabilities: [
        ...host.capabilities(),
        'token_rotation' as const,
        'desktops' as const,
        // Where it is not named, the frame is an unknown one.
        ...(acknowledges ? [FLOW_ACK] : []),
        ...(connect.isListening(Date.now()) ? (['connect_requests'] as const) : []),
      ],
    }
  }
}

const actorOf = ({ deviceId, deploymentProviders }: DeviceSocket): Actor => ({
  id: deviceId,
  // Not said of a socket that an older release took in; it learns it when it dials again.
  deploymentProviders: deploymentProviders ?? false,
})

const responseTo = (
  requestId: string,
  receipt: ReceiptState | null,
  result: RemoteResult,
): RemoteResponse => ({
  kind: 'response',
  protocol_version: REMOTE_PROTOCOL_VERSION,
  request_id: requestId,
  ...(receipt === null ? {} : { receipt }),
  result,
})

const read = (result: RemoteResult): Answer => ({ receipt: null, result })

/** Before it got to where it would be served: it leaves no receipt (RF 10). */
const refused = ({ operation }: RequestEnvelope, result: RemoteResult): Answer => ({
  receipt: isMutation(operation.type) ? 'rejected' : null,
  result,
})

const notServed = (type: RequestEnvelope['operation']['type']): RemoteResult =>
  refusal('unsupported_operation', `this router does not serve ${type}`)
