import { DurableObject } from 'cloudflare:workers'
import { nextAlarm } from '../core/deadlines.ts'
import { admitDevice, admitUpgrade } from '../core/gateway/connections.ts'
import { errorName, errorTrace } from '../protocol/error-name.ts'
import type { Failure } from '../protocol/execution/errors.ts'
import {
  HANDSHAKE_TIMEOUT_MS,
  MAX_HANDSHAKE_BYTES,
  MAX_MESSAGE_BYTES,
  MAX_REQUEST_BYTES,
} from '../protocol/remote/limits.ts'
import type { RemoteSessionInfo } from '../protocol/remote/session-info.ts'
import type { Result } from '../protocol/result.ts'
import { openDatabase } from '../storage/d1/database.ts'
import { dropNote, noteRevocation } from '../storage/d1/gateways.ts'
import { loadIdentity, type StoredIdentity, saveIdentity } from '../storage/gateway/identity.ts'
import { migrateGateway } from '../storage/gateway/migrations.ts'
import { dropRequestSessions } from '../storage/gateway/request-sessions.ts'
import { byteLength } from '../storage/limits.ts'
import { makeSql } from '../storage/object-sql.ts'
import type { Sql } from '../storage/session/sql.ts'
import { assemble, type Running } from './assemble.ts'
import { REVOKED } from './devices.ts'
import type { GatewayParts } from './parts.ts'
import {
  type ConnectRequestRecord,
  type DeviceRecord,
  type EventPush,
  type GatewayIdentity,
  type GatewayRpc,
  type OpenedPairing,
  SOCKET_ORIGIN_HEADER,
  type SocketOrigin,
  type UnlistReason,
} from './rpc.ts'
import { newInstanceId } from './secrets.ts'
import type { ListedSession } from './session-calls.ts'
import {
  type DeviceSocket,
  type Farewell,
  grantedOf,
  isTokenActor,
  Sockets,
  tokenActor,
  type Unauthenticated,
} from './sockets.ts'

/** What the object needs of its deployment. */
export type GatewayEnv = { DB: D1Database; SESSION: DurableObjectNamespace }

/** What a client may send at any time, and is answered by the platform without waking the object (D36). */
const PING = '{"type":"ping"}'
const PONG = '{"type":"pong"}'

/** Frames that may have come while the first one is served: a client has no reason to send many. */
const MAX_WAITING_FRAMES = 32
const TOO_EARLY: Farewell = {
  code: 'invalid_frame',
  message: 'wait for the answer to the first frame before sending more',
}
const NOT_TEXT: Farewell = { code: 'invalid_frame', message: 'only text frames are understood' }
const TOKEN_RAN_OUT: Farewell = {
  code: 'access_expired',
  message: 'the token that this connection was opened with has run out; sign in again',
}
const STOPPING: Farewell = {
  code: 'shutting_down',
  message: 'the gateway is stopping; connect again in a moment',
}

/** What every socket of a token is told that was signed out. */
const SIGNED_OUT: Farewell = {
  code: 'revoked',
  message: 'this program was signed out; sign in again to use it',
}
const tooManyConnections = (): Response =>
  new Response('too many connections; try again later\n', {
    status: 503,
    headers: { 'Retry-After': '10' },
  })

/**
 * A user's gateway: the devices, their sockets and the live list. Its methods read: whose is it, who asks, let a part
 * decide, answer. Between two events nothing of it needs to be in memory: a silent device costs no time.
 */
export class Gateway extends DurableObject<GatewayEnv> implements GatewayRpc {
  readonly #sql: Sql
  readonly #sockets: Sockets
  #running: Running | null = null
  /** Undefined: what the platform has stored is not known yet. */
  #alarmAtMs: number | null | undefined
  /** Frames of a socket whose handshake is being served wait here for their turn. */
  readonly #greeted = new Map<WebSocket, { done: Promise<void>; waiting: number }>()

  constructor(ctx: DurableObjectState, env: GatewayEnv) {
    super(ctx, env)
    this.#sql = makeSql(ctx.storage)
    this.#sockets = new Sockets(ctx)
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(PING, PONG))
    // An object that nobody has used makes no tables: a stray id leaves nothing behind.
    if (this.#sql.rows("SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'").length > 0)
      this.#start()
  }

  #start(): Running {
    const { ctx } = this
    migrateGateway(this.#sql)
    const parts: GatewayParts = {
      sql: this.#sql,
      sockets: this.#sockets,
      identity: () => {
        const { gatewayId, ...identity } = this.#identity()
        if (gatewayId === null) throw new Error('invariant broken: a gateway that has not been named')
        return { ...identity, gatewayId }
      },
      saveIdentity: (change) => saveIdentity(this.#sql, { ...this.#identity(), ...change }),
      sync: () => ctx.storage.sync(),
      arm: () => this.#arm(),
      keepAlive: (work) => ctx.waitUntil(work),
      noteRevocation: (deviceId, reason) => {
        const { userId } = this.#identity()
        return noteRevocation(openDatabase(this.env.DB), { userId, deviceId, reason, nowMs: Date.now() })
      },
      dropNote: (deviceId) => dropNote(openDatabase(this.env.DB), this.#identity().userId, deviceId),
    }
    this.#running = assemble(parts, {
      db: this.env.DB,
      // The stub's generated type is too deep to spell out; the interface is what it serves.
      session: (sessionId) => this.env.SESSION.getByName(sessionId) as unknown as ListedSession,
      userId: () => this.#identity().userId,
    })
    const { list, catchUp } = this.#running
    // Whoever was to tell them may have ended before it did.
    if (list.owed.length > 0 || catchUp.nextAtMs !== null) this.#arm()
    return this.#running
  }

  #identity(): StoredIdentity {
    const identity = loadIdentity(this.#sql)
    if (identity === null) throw new Error('invariant broken: a gateway without its user')
    return identity
  }

  /** The parts, for this user. The first call makes the object that user's. */
  #open({ userId, gatewayId }: { userId: string; gatewayId?: string }): Running {
    const running = this.#running ?? this.#start()
    const known = loadIdentity(this.#sql)
    if (known !== null && known.userId !== userId)
      throw new Error('invariant broken: a gateway of another user')
    if (known === null || (gatewayId !== undefined && known.gatewayId !== gatewayId))
      saveIdentity(this.#sql, {
        userId,
        gatewayId: gatewayId ?? null,
        instanceId: known?.instanceId ?? newInstanceId(),
        listenUntilMs: known?.listenUntilMs ?? null,
      })
    return running
  }

  /** An upgrade that the Worker has let through. */
  override async fetch(request: Request): Promise<Response> {
    const header = request.headers.get(SOCKET_ORIGIN_HEADER)
    if (header === null) throw new Error('invariant broken: an upgrade that did not come through the Worker')
    const origin: SocketOrigin = JSON.parse(header)
    const { devices } = this.#open(origin)
    devices.applyNoted(origin.notedRevocations)
    if (origin.tokenId !== undefined) return this.#takeIn(origin, tokenActor(origin.tokenId))
    if (!admitUpgrade(this.#sockets.held(), this.#sockets.lingering(), origin.address))
      return new Response('too many connections that are not authenticated; try again later\n', {
        status: 503,
        headers: { 'Retry-After': '10' },
      })
    const { client, server } = socketPair()
    const { address, routes, hostName } = origin
    const greeting = { routes, hostName }
    this.#sockets.accept(server, { address, greeting, granted: grantedOf(origin) }, Date.now())
    this.#arm()
    return new Response(null, { status: 101, webSocket: client })
  }

  /** The socket of a program with the owner's token: the Worker has checked it (D38). */
  #takeIn(origin: SocketOrigin, deviceId: string): Response {
    const nowMs = Date.now()
    const admitted = admitDevice(this.#sockets.held(), deviceId, nowMs)
    if (!admitted.ok) return tooManyConnections()
    const { client, server } = socketPair()
    const { address, tokenExpiresAtMs: untilMs } = origin
    const known = { address, deviceId, untilMs, granted: grantedOf(origin) }
    this.#sockets.acceptKnown(server, known, { evict: admitted.evict, nowMs })
    this.#arm()
    return new Response(null, { status: 101, webSocket: client })
  }

  override webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): Promise<void> | void {
    const state = this.#sockets.stateOf(socket)
    // Whatever comes behind the end of a connection costs as little as it can.
    if (state.k === 'closed') return
    const before = this.#greeted.get(socket)
    if (before === undefined && state.k === 'device') return this.#receive(socket, message)
    if (before !== undefined && before.waiting >= MAX_WAITING_FRAMES)
      return this.#refuse(socket, state, TOO_EARLY)
    // A socket that is being greeted may have sent more already: one frame after the other.
    const done = before
      ? before.done.then(() => this.#receive(socket, message))
      : this.#receive(socket, message)
    const greeted = { done, waiting: (before?.waiting ?? 0) + 1 }
    this.#greeted.set(socket, greeted)
    return done.then(() => {
      if (this.#greeted.get(socket) === greeted) this.#greeted.delete(socket)
    })
  }

  override async webSocketClose(socket: WebSocket, code: number, reason: string): Promise<void> {
    this.#gone(socket)
    // Without the answer the peer waits for it until it gives up. Not every code may be sent back.
    try {
      socket.close(code, reason)
    } catch {
      socket.close()
    }
  }

  override async webSocketError(socket: WebSocket): Promise<void> {
    this.#gone(socket)
  }

  #gone(socket: WebSocket): void {
    const state = this.#sockets.gone(socket)
    this.#greeted.delete(socket)
    if (this.#running === null) return
    const { connect, devices } = this.#running
    if (state.k === 'asking') connect.withdraw(state.requestId)
    if (state.k === 'device') devices.seen(state.deviceId, Date.now())
  }

  /** One message, in the order of RF 3 and RF 9. Never throws: a fault of ours ends the connection with a reason. */
  async #receive(socket: WebSocket, message: string | ArrayBuffer): Promise<void> {
    const state = this.#sockets.stateOf(socket)
    if (state.k === 'closed') return
    try {
      if (typeof message !== 'string') return this.#refuse(socket, state, NOT_TEXT)
      const bytes = byteLength(message)
      if (state.k === 'device') await this.#request(socket, state, message, bytes)
      else await this.#greet(socket, state, message, bytes)
    } catch (error) {
      console.error('a frame could not be served:', errorTrace(error))
      this.#refuse(socket, this.#sockets.stateOf(socket), STOPPING)
    }
  }

  async #greet(socket: WebSocket, state: Unauthenticated, message: string, bytes: number): Promise<void> {
    const { pairing, connect, authentication } = this.#parts()
    if (bytes > MAX_HANDSHAKE_BYTES)
      return this.#refuse(socket, state, {
        code: 'frame_too_large',
        message: `a handshake frame may have ${MAX_HANDSHAKE_BYTES} bytes`,
      })
    if (state.k === 'asking' && !connect.isApproved(state.requestId))
      return this.#refuse(socket, state, {
        code: 'invalid_frame',
        message: 'nothing may be sent while the owner has not answered',
      })
    // Loaded when the first frame comes: it is no part of what starting the Worker costs.
    const { decodeHandshake } = await import('../protocol/remote/decode-handshake.ts')
    const decoded = decodeHandshake(message)
    if (!decoded.ok) return this.#refuse(socket, state, decoded.error)
    const { request } = decoded
    if (state.k === 'asking' && request.type !== 'pair')
      return this.#refuse(socket, state, {
        code: 'invalid_frame',
        message: 'after the approval only a pair frame may be sent',
      })
    switch (request.type) {
      case 'pair':
        await pairing.pair(socket, state, request)
        break
      case 'authenticate':
        await authentication.authenticate(socket, state, request)
        break
      case 'connect_request':
        if (state.k === 'new') await connect.ask(socket, state, request)
        break
    }
    this.#arm()
  }

  async #request(socket: WebSocket, state: DeviceSocket, message: string, bytes: number): Promise<void> {
    const { authentication, catchUp, devices, listPush, requests } = this.#parts()
    if (!isTokenActor(state.deviceId) && devices.paired(state.deviceId) === null)
      return this.#sockets.end(socket, REVOKED)
    if (state.untilMs !== undefined && Date.now() >= state.untilMs)
      return this.#sockets.end(socket, TOKEN_RAN_OUT)
    if (bytes > MAX_MESSAGE_BYTES)
      return this.#sockets.end(socket, {
        code: 'frame_too_large',
        message: `a message may have ${MAX_MESSAGE_BYTES} bytes`,
      })
    const goOn = () => {
      catchUp.heard(socket)
      listPush.retry()
    }
    if (this.#sockets.heard(socket, state, Date.now())) goOn()
    if (bytes > MAX_REQUEST_BYTES) return requests.refuseTooLarge(socket, state)
    const { decodeRequest } = await import('../protocol/remote/decode-request.ts')
    const now = this.#sockets.stateOf(socket)
    if (now.k !== 'device') return
    const names = now.threadNames ? 'thread' : 'session'
    const decoded = decodeRequest(message, names, now.acknowledges)
    switch (decoded.k) {
      case 'request':
        return requests.serve(socket, now, decoded.request)
      case 'refused':
        return requests.answer(socket, now, decoded.response)
      case 'token_ack':
        return authentication.acknowledge(now.deviceId, decoded.rotationId)
      case 'bad_token_ack':
        return this.#sockets.end(socket, {
          code: 'invalid_frame',
          message: 'token_ack names a rotation_id',
        })
      case 'flow_ack':
        this.#sockets.acknowledged(socket, decoded.bytes)
        return goOn()
      case 'bad_flow_ack':
        return this.#sockets.end(socket, {
          code: 'invalid_frame',
          message: 'flow_ack names how many bytes were read',
        })
    }
  }

  /** Ends a connection, and the connection request that waits on it. */
  #refuse(socket: WebSocket, state: ReturnType<Sockets['stateOf']>, farewell: Farewell): void {
    this.#sockets.end(socket, farewell)
    if (state.k === 'asking') this.#running?.connect.withdraw(state.requestId)
  }

  #parts(): Running {
    return this.#running ?? this.#start()
  }

  async openPairing(who: GatewayIdentity): Promise<OpenedPairing> {
    const { pairing } = this.#open(who)
    return pairing.open(await pairing.draw(), null)
  }

  async devices(who: GatewayIdentity): Promise<DeviceRecord[]> {
    return this.#open(who).devices.list()
  }

  async renameDevice(
    who: GatewayIdentity,
    deviceId: string,
    name: string,
  ): Promise<Result<DeviceRecord, Failure>> {
    return this.#open(who).devices.rename(deviceId, name)
  }

  async revokeDevice(who: GatewayIdentity, deviceId: string): Promise<Result<true, Failure>> {
    return this.#open(who).devices.revoke(deviceId, 'revoked')
  }

  async connectRequests(who: GatewayIdentity): Promise<ConnectRequestRecord[]> {
    return this.#open(who).connect.list(Date.now())
  }

  async listen(who: GatewayIdentity): Promise<number> {
    return this.#open(who).connect.listen()
  }

  async acceptRequest(
    who: GatewayIdentity,
    requestId: string,
  ): Promise<Result<{ code: string; expiresAtMs: number }, Failure>> {
    const accepted = await this.#open(who).connect.accept(requestId)
    this.#arm()
    return accepted
  }

  async denyRequest(who: GatewayIdentity, requestId: string): Promise<Result<true, Failure>> {
    return this.#open(who).connect.deny(requestId)
  }

  async remove(userId: string): Promise<void> {
    if (this.#running === null) return
    const { list } = this.#open({ userId })
    list.stop()
    for (const [socket] of this.#sockets.open()) this.#sockets.end(socket, REVOKED)
    this.#running = null
    await this.ctx.storage.deleteAlarm()
    await this.ctx.storage.deleteAll()
  }

  async putRow(userId: string, row: RemoteSessionInfo): Promise<boolean> {
    const listed = this.#open({ userId }).list.put(row, Date.now())
    this.#arm()
    return listed
  }

  async removeRow(
    userId: string,
    gone: { sessionId: string; registrationEpoch: number; reason: UnlistReason },
  ): Promise<void> {
    // Nothing of a session was ever listed in an object that nobody has used.
    if (this.#running !== null) this.#open({ userId }).list.remove(gone, Date.now())
  }

  async pushEvents(userId: string, push: EventPush): Promise<{ watched: boolean }> {
    // Nobody follows anything in an object that nobody has used.
    if (this.#running === null) return { watched: false }
    return { watched: this.#open({ userId }).fanOut.push(push) }
  }

  async closeToken(userId: string, tokenId: string): Promise<void> {
    if (this.#running === null) return
    this.#open({ userId })
    const deviceId = tokenActor(tokenId)
    dropRequestSessions(this.#sql, deviceId)
    for (const [socket] of this.#sockets.devices(deviceId)) this.#sockets.end(socket, SIGNED_OUT)
  }

  override async alarm(): Promise<void> {
    this.#alarmAtMs = null
    if (this.#running === null) return
    const { calls, catchUp, connect, devices, list, listPush } = this.#running
    const nowMs = Date.now()
    try {
      for (const [socket, state] of this.#sockets.open())
        if (state.k === 'new' && nowMs >= state.openedAtMs + HANDSHAKE_TIMEOUT_MS)
          this.#sockets.end(socket, {
            code: 'handshake_timeout',
            message: `no handshake frame came within ${HANDSHAKE_TIMEOUT_MS / 1000} s`,
          })
      for (const [socket, { untilMs }] of this.#sockets.devices())
        if (untilMs !== undefined && nowMs >= untilMs) this.#sockets.end(socket, TOKEN_RAN_OUT)
      connect.expire(nowMs)
      list.expire(nowMs)
      devices.retry()
      catchUp.resume(nowMs)
      listPush.retry()
      // Whatever sessions do, the next deadline is kept (D21).
      this.ctx.waitUntil(calls.ask(list.askWhom(nowMs)))
      if (list.owed.length > 0) this.ctx.waitUntil(calls.tellDelisted())
    } catch (error) {
      // A throw would make the platform repeat the alarm at its own pace; deadlines are ours to keep.
      console.error('alarm failed:', errorName(error))
    }
    this.#arm()
  }

  /** Sets the alarm to the earliest of what the object has to do by itself. */
  #arm(): void {
    if (this.#running === null) return
    const { calls, catchUp, connect, devices, list, listPush } = this.#running
    const openedAtMs = this.#sockets
      .open()
      .map(([, state]) => (state.k === 'new' ? state.openedAtMs : Infinity))
    const firstOpenedMs = Math.min(...openedAtMs)
    const firstUntilMs = Math.min(
      ...this.#sockets.devices().map(([, { untilMs }]) => untilMs ?? Number.POSITIVE_INFINITY),
    )
    const at = nextAlarm({
      handshakeAtMs: Number.isFinite(firstOpenedMs) ? firstOpenedMs + HANDSHAKE_TIMEOUT_MS : null,
      tokenAtMs: Number.isFinite(firstUntilMs) ? firstUntilMs : null,
      connectRequestAtMs: connect.nextExpiryMs,
      liveListAtMs: list.nextLookMs,
      revocationAtMs: devices.retryAtMs,
      delistingAtMs: calls.retryAtMs,
      eventsAtMs: catchUp.nextAtMs,
      listPushAtMs: listPush.nextAtMs,
    })
    // An alarm that rings too early finds nothing to do, and costs less than moving it each time.
    if (at !== null) this.ctx.waitUntil(this.#ringBy(at))
  }

  async #ringBy(atMs: number): Promise<void> {
    if (this.#alarmAtMs === undefined) {
      const storedAtMs = await this.ctx.storage.getAlarm()
      // Another call may have set it while this one asked.
      if (this.#alarmAtMs === undefined) this.#alarmAtMs = storedAtMs
    }
    if (this.#alarmAtMs !== null && this.#alarmAtMs <= atMs) return
    this.#alarmAtMs = atMs
    await this.ctx.storage.setAlarm(atMs)
  }
}

function socketPair(): { client: WebSocket; server: WebSocket } {
  const [client, server] = Object.values(new WebSocketPair())
  if (!client || !server) throw new Error('invariant broken: a pair of sockets has two ends')
  return { client, server }
}
