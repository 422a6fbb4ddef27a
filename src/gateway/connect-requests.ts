import { takeRequest } from '../core/gateway/connect-requests.ts'
import { deviceKind, deviceName, platformLabel, stableId } from '../core/gateway/labels.ts'
import { type Failure, failure } from '../protocol/execution/errors.ts'
import type { ConnectRequest } from '../protocol/remote/handshake-request.ts'
import {
  CODE_LENGTH,
  CONNECT_DENIAL_MS,
  CONNECT_REQUEST_TTL_MS,
  LISTEN_WINDOW_MS,
} from '../protocol/remote/limits.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { digestOf } from '../storage/digest.ts'
import {
  loadDenials,
  loadRequests,
  type StoredRequest,
  saveDenial,
  saveRequest,
} from '../storage/gateway/pairing.ts'
import type { Pairing } from './pairing.ts'
import type { GatewayParts } from './parts.ts'
import type { ConnectRequestRecord } from './rpc.ts'
import { newShortId } from './secrets.ts'
import { type Farewell, grantedOf, type SocketState } from './sockets.ts'

const NOT_LISTENING: Farewell = {
  code: 'invalid_frame',
  message: 'connection requests are not taken here now; pair with a code',
}
const BUSY: Farewell = {
  code: 'connect_busy',
  message: 'too many connection requests are open, or one of this address is; try again later',
}

const noSuchRequest = (): Failure => ({
  ...failure('invalid_request', 'there is no such open connection request'),
  status: 404,
})

const secondsUntil = (atMs: number, nowMs: number): number => Math.max(1, Math.ceil((atMs - nowMs) / 1000))

/** Devices that ask the owner to let them pair (remote protocol, "Connection requests"). */
export class ConnectRequests {
  readonly #parts: GatewayParts
  readonly #pairing: Pairing

  constructor(parts: GatewayParts, pairing: Pairing) {
    this.#parts = parts
    this.#pairing = pairing
  }

  /** True while requests are taken. */
  isListening(nowMs: number): boolean {
    const until = this.#parts.identity().listenUntilMs
    return until !== null && nowMs < until
  }

  listen(): number {
    const until = Date.now() + LISTEN_WINDOW_MS
    this.#parts.saveIdentity({ listenUntilMs: until })
    return until
  }

  /** Takes a request, which from then on waits on its socket for the owner. */
  async ask(
    socket: WebSocket,
    state: Extract<SocketState, { k: 'new' }>,
    request: ConnectRequest,
  ): Promise<void> {
    const { sql, sockets } = this.#parts
    const installId = stableId(request.install_id)
    const hostId = stableId(request.host_id)
    const [installDigest, hostDigest] = await Promise.all([
      installId === null ? null : digestOf(installId),
      hostId === null ? null : digestOf(hostId),
    ])
    if (sockets.stateOf(socket).k === 'closed') return
    const nowMs = Date.now()
    const { address, id, greeting } = state
    const listenUntilMs = this.#parts.identity().listenUntilMs
    const asked = { address, installDigest, nowMs }
    const verdict = takeRequest(loadRequests(sql), loadDenials(sql), listenUntilMs, asked)
    switch (verdict.k) {
      case 'not_listening':
        return sockets.end(socket, NOT_LISTENING)
      case 'busy':
        return sockets.end(socket, BUSY)
      case 'rate_limited':
        return sockets.end(socket, {
          code: 'connect_rate_limited',
          message: `the request was denied; ask again in ${verdict.retryAfterSecs} s at the earliest`,
          retry_after_secs: verdict.retryAfterSecs,
        })
      case 'taken':
        if (verdict.replaces !== null) this.#expire(verdict.replaces)
    }
    const taken: StoredRequest = {
      requestId: newShortId(),
      address,
      installDigest,
      hostDigest,
      state: 'pending',
      expiresAtMs: nowMs + CONNECT_REQUEST_TTL_MS,
      deviceName: deviceName(request.device_name),
      deviceKind: deviceKind(request.device_kind),
      platform: platformLabel(request.platform),
      createdAtMs: nowMs,
    }
    saveRequest(sql, taken)
    const { requestId } = taken
    sockets.set(socket, { k: 'asking', id, address, requestId, greeting, ...grantedOf(state) })
    sockets.send(socket, {
      type: 'connect_pending',
      request_id: taken.requestId,
      expires_in_secs: secondsUntil(taken.expiresAtMs, nowMs),
    })
  }

  /** Whether the owner has accepted what waits on a socket: then it may send its `pair` frame. */
  isApproved(requestId: string): boolean {
    return this.#find(requestId)?.state === 'approved'
  }

  /** Those that wait for the owner. */
  list(nowMs: number): ConnectRequestRecord[] {
    return loadRequests(this.#parts.sql)
      .filter(({ state, expiresAtMs }) => state === 'pending' && nowMs < expiresAtMs)
      .map(({ requestId, deviceName: name, deviceKind: kind, platform, expiresAtMs }) => ({
        requestId,
        deviceName: name,
        deviceKind: kind,
        platform,
        expiresAtMs,
      }))
  }

  /** Opens a challenge that only the socket of this request can redeem. */
  async accept(requestId: string): Promise<Result<{ code: string; expiresAtMs: number }, Failure>> {
    const keys = await this.#pairing.draw()
    const { sql, sockets } = this.#parts
    // Nothing is waited for from here on: of two acceptances one counts.
    const request = this.#pending(requestId)
    const socket = sockets.ofRequest(requestId)
    if (request === null || socket === null) return err(noSuchRequest())
    const { code, expiresAtMs } = this.#pairing.open(keys, requestId)
    saveRequest(sql, { ...request, state: 'approved', expiresAtMs })
    sockets.send(socket, {
      type: 'connect_approved',
      request_id: requestId,
      code_length: CODE_LENGTH,
      expires_in_secs: secondsUntil(expiresAtMs, Date.now()),
    })
    return ok({ code, expiresAtMs })
  }

  deny(requestId: string): Result<true, Failure> {
    const request = this.#pending(requestId)
    if (request === null) return err(noSuchRequest())
    const { sql, sockets } = this.#parts
    const nowMs = Date.now()
    saveDenial(sql, request.address, nowMs + CONNECT_DENIAL_MS, nowMs)
    this.#pairing.withdraw(requestId)
    const socket = sockets.ofRequest(requestId)
    if (socket) sockets.end(socket, { type: 'connect_denied' })
    return ok(true)
  }

  /** The socket has closed: the request is withdrawn, and its code is destroyed. */
  withdraw(requestId: string): void {
    this.#pairing.withdraw(requestId)
  }

  /** Withdraws those whose sockets went without a word: a crash or a deploy closes them behind the object's back. */
  withdrawLost(): void {
    const { sql, sockets } = this.#parts
    for (const { requestId } of loadRequests(sql))
      if (sockets.ofRequest(requestId) === null) this.withdraw(requestId)
  }

  /** When the next request will have waited for too long. */
  get nextExpiryMs(): number | null {
    const times = loadRequests(this.#parts.sql).map(({ expiresAtMs }) => expiresAtMs)
    return times.length === 0 ? null : Math.min(...times)
  }

  /** Ends the requests whose time is over. */
  expire(nowMs: number): void {
    for (const { requestId, expiresAtMs } of loadRequests(this.#parts.sql))
      if (nowMs >= expiresAtMs) this.#expire(requestId)
  }

  #expire(requestId: string): void {
    const { sockets } = this.#parts
    this.#pairing.withdraw(requestId)
    const socket = sockets.ofRequest(requestId)
    if (socket) sockets.end(socket, { type: 'connect_expired' })
  }

  #find(requestId: string): StoredRequest | null {
    return loadRequests(this.#parts.sql).find((request) => request.requestId === requestId) ?? null
  }

  #pending(requestId: string): StoredRequest | null {
    const request = this.#find(requestId)
    return request?.state === 'pending' && Date.now() < request.expiresAtMs ? request : null
  }
}
