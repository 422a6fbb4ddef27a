import type { HeldSocket } from '../core/gateway/connections.ts'
import { assertNever } from '../protocol/assert.ts'
import type { Route } from '../protocol/remote/handshake-request.ts'
import type { BareError, HandshakeResponse } from '../protocol/remote/handshake-response.ts'
import { byteLength } from '../storage/limits.ts'
import type { Manner } from './manner.ts'
import { newShortId } from './secrets.ts'
import { type KeptFlow, SlowReaders } from './slow-readers.ts'

/** A frame is heard about once in this time: noting each would cost more than serving it. */
const HEARD_EVERY_MS = 5_000

/** What a socket that is not authenticated yet will have to be told. */
export type Greeting = { routes: Route[]; hostName: string | null }

/**
 * A session that a socket follows, as it is kept with it: the session, its epoch, the last sequence that was sent, the
 * newest snapshot that was sent, and whether there is more that waits to be sent. Short, for all of them share one
 * attachment.
 */
export type KeptSubscription = [
  sessionId: string,
  epoch: number,
  cursor: number,
  snapshotId: string | null,
  isBehind: boolean,
]

/** What the Worker said of the socket's user that its requests will need; absent with an older release. */
type Granted = { deploymentProviders?: boolean }

export const grantedOf = ({ deploymentProviders }: Granted): Granted =>
  deploymentProviders === undefined ? {} : { deploymentProviders }

/** Where a socket stands. It is kept with the socket, so that it outlives the object's sleep. */
export type SocketState =
  | ({ k: 'new'; id: string; address: string; openedAtMs: number; greeting: Greeting } & Granted)
  | ({ k: 'asking'; id: string; address: string; requestId: string; greeting: Greeting } & Granted)
  | ({
      k: 'device'
      id: string
      address: string
      /** Of a program with the owner's token: `tokenActor` of that token (D38). */
      deviceId: string
      threadNames: boolean
      subscribed: boolean
      heardAtMs: number
      /** When the token runs out that it was opened with. Absent: a device's. */
      untilMs?: number
      /** Sessions that it follows. Absent: none. */
      attached?: KeptSubscription[]
      /** It may acknowledge what it reads, so what it is sent is counted over sleeps, too (D35). */
      acknowledges?: true
    } & Granted)
  /** It has been told why, or has gone; nothing that it still sends counts. */
  | { k: 'closed'; address: string }

export type DeviceSocket = Extract<SocketState, { k: 'device' }>
export type OpenState = Exclude<SocketState, { k: 'closed' }>
export type Unauthenticated = Exclude<OpenState, DeviceSocket>

/** How the state is kept with its socket. Sockets outlive the release that took them in (D32). */
type Kept = { v: 1; state: SocketState; flow?: KeptFlow }

/** Of `BareError`, what the caller knows. */
export type Farewell = Omit<BareError, 'type'>

const TOKEN_PREFIX = 'token:'
/** Under which id a program with this token acts. No device has such an id. */
export const tokenActor = (tokenId: string): string => `${TOKEN_PREFIX}${tokenId}`
export const isTokenActor = (deviceId: string): boolean => deviceId.startsWith(TOKEN_PREFIX)

export const BUSY_CONNECTIONS: Farewell = { code: 'busy', message: 'too many connections; try again later' }
/** What a socket is told that has been silent the longest when another one needs its place (D36). */
const MADE_ROOM: Farewell = {
  code: 'idle_timeout',
  message: 'nothing was heard on this connection for long, and another one needed its place',
}

/** The sockets of one gateway, which the platform holds while the object sleeps. */
export class Sockets {
  readonly #ctx: DurableObjectState
  /** A copy of what is kept with each socket; the platform's is the one that counts. */
  readonly #states = new WeakMap<WebSocket, SocketState>()
  /** Sockets that were sent something since what was sent on them was kept. */
  readonly #uncounted = new Set<WebSocket>()

  /** How much of what was sent may not have been read. */
  readonly readers: SlowReaders

  constructor(ctx: DurableObjectState) {
    this.#ctx = ctx
    this.readers = new SlowReaders((socket) => this.#pingedAtMs(socket))
  }

  /** Takes a socket in; its peer has said nothing yet. */
  accept(
    socket: WebSocket,
    { address, greeting, granted = {} }: { address: string; greeting: Greeting; granted?: Granted },
    nowMs: number,
  ): void {
    this.#ctx.acceptWebSocket(socket)
    this.set(socket, { k: 'new', id: newShortId(), address, openedAtMs: nowMs, greeting, ...granted })
  }

  /** Takes the socket of a program in that the Worker knows: it needs no handshake (D38). */
  acceptKnown(
    socket: WebSocket,
    {
      address,
      deviceId,
      untilMs,
      granted,
    }: { address: string; deviceId: string; untilMs: number | undefined; granted: Granted },
    { evict, nowMs }: { evict: readonly string[]; nowMs: number },
  ): void {
    this.#makeRoom(evict)
    this.#ctx.acceptWebSocket(socket)
    this.set(socket, {
      k: 'device',
      id: newShortId(),
      address,
      deviceId,
      threadNames: false,
      subscribed: false,
      heardAtMs: nowMs,
      acknowledges: true,
      ...(untilMs === undefined ? {} : { untilMs }),
      ...granted,
    })
  }

  stateOf(socket: WebSocket): SocketState {
    const known = this.#states.get(socket)
    if (known) return known
    const kept: Kept | null = socket.deserializeAttachment()
    const state: SocketState = kept?.v === 1 ? kept.state : { k: 'closed', address: '' }
    this.#states.set(socket, state)
    if (state.k !== 'closed' && kept?.flow) this.readers.restore(socket, kept.flow)
    return state
  }

  set(socket: WebSocket, state: SocketState): void {
    this.#states.set(socket, state)
    this.#keep(socket, state)
  }

  #keep(socket: WebSocket, state: SocketState): void {
    this.#uncounted.delete(socket)
    const flow = state.k === 'device' && state.acknowledges ? { flow: this.readers.kept(socket) } : {}
    socket.serializeAttachment({ v: 1, state, ...flow } satisfies Kept)
  }

  /** Keeps what was sent and acknowledged with the socket, once for all that happens in one go. */
  #count(socket: WebSocket): void {
    const state = this.stateOf(socket)
    if (state.k !== 'device' || !state.acknowledges) return
    if (this.#uncounted.size === 0)
      queueMicrotask(() => {
        for (const counted of this.#uncounted) this.#keep(counted, this.stateOf(counted))
      })
    this.#uncounted.add(socket)
  }

  /** The socket is a device's from here on; those that have to make room are told so. */
  enter(
    socket: WebSocket,
    { id, address, ...granted }: Unauthenticated,
    { deviceId, threadNames, acknowledges }: Manner & { deviceId: string },
    { evict, nowMs }: { evict: readonly string[]; nowMs: number },
  ): void {
    this.#makeRoom(evict)
    // What it has read is counted from the answer to this on.
    this.readers.gone(socket)
    this.set(socket, {
      k: 'device',
      id,
      address,
      deviceId,
      threadNames,
      subscribed: false,
      heardAtMs: nowMs,
      ...(acknowledges ? { acknowledges } : {}),
      ...grantedOf(granted),
    })
  }

  #makeRoom(evict: readonly string[]): void {
    for (const [other, state] of this.open()) if (evict.includes(state.id)) this.end(other, MADE_ROOM)
  }

  /** Changes what is kept of a device's socket; of one that has closed nothing is. */
  change(
    socket: WebSocket,
    change: Partial<Pick<DeviceSocket, 'subscribed' | 'heardAtMs' | 'attached'>>,
  ): void {
    const state = this.stateOf(socket)
    if (state.k === 'device') this.set(socket, { ...state, ...change })
  }

  /** Open sockets with their states. */
  open(): [WebSocket, OpenState][] {
    return this.#ctx.getWebSockets().flatMap((socket): [WebSocket, OpenState][] => {
      const state = this.stateOf(socket)
      return state.k === 'closed' || !this.isOpen(socket) ? [] : [[socket, state]]
    })
  }

  isOpen(socket: WebSocket): boolean {
    return socket.readyState === WebSocket.OPEN
  }

  /** The sockets of devices, or of this one. */
  devices(deviceId?: string): [WebSocket, DeviceSocket][] {
    return this.open().flatMap(([socket, state]): [WebSocket, DeviceSocket][] =>
      state.k === 'device' && (deviceId === undefined || state.deviceId === deviceId)
        ? [[socket, state]]
        : [],
    )
  }

  /** The socket on which a connection request waits. */
  ofRequest(requestId: string): WebSocket | null {
    const found = this.open().find(([, state]) => state.k === 'asking' && state.requestId === requestId)
    return found?.[0] ?? null
  }

  /** What is decided from when another wants in (D36, D41). */
  held(): HeldSocket[] {
    return this.open().map(([socket, state]) => ({
      id: state.id,
      deviceId: state.k === 'device' ? state.deviceId : null,
      address: state.address,
      lastHeardAtMs: this.lastHeardMs(socket, state),
    }))
  }

  /** The addresses of sockets that were told their end: the platform holds them until the peer has answered. */
  lingering(): string[] {
    return this.#ctx.getWebSockets().flatMap((socket) => {
      const state = this.stateOf(socket)
      return state.k === 'closed' ? [state.address] : []
    })
  }

  /** Frames count, and so do the pings that the platform answers while the object sleeps. */
  lastHeardMs(socket: WebSocket, state: OpenState): number {
    const pingedAtMs = this.#pingedAtMs(socket)
    switch (state.k) {
      case 'new':
        return Math.max(state.openedAtMs, pingedAtMs)
      case 'asking':
        return pingedAtMs
      case 'device':
        return Math.max(state.heardAtMs, pingedAtMs)
      default:
        return assertNever(state)
    }
  }

  #pingedAtMs(socket: WebSocket): number {
    return this.#ctx.getWebSocketAutoResponseTimestamp(socket)?.getTime() ?? 0
  }

  /** @returns whether what was sent before is known to be read by that */
  heard(socket: WebSocket, state: DeviceSocket, nowMs: number): boolean {
    const hasRead = this.readers.heard(socket)
    if (nowMs - state.heardAtMs >= HEARD_EVERY_MS) this.change(socket, { heardAtMs: nowMs })
    return hasRead
  }

  /** The device says how much it has read. */
  acknowledged(socket: WebSocket, bytes: number): void {
    this.readers.acknowledged(socket, bytes)
    this.#count(socket)
  }

  /** Sends a frame; false when the socket has gone. */
  send(socket: WebSocket, frame: unknown): boolean {
    return this.sendText(socket, JSON.stringify(frame))
  }

  /** @param bytes of the text, where the caller knows them */
  sendText(socket: WebSocket, text: string, bytes = byteLength(text)): boolean {
    try {
      socket.send(text)
      this.readers.sent(socket, bytes)
      this.#count(socket)
      return true
    } catch {
      // It has closed, and its close event tells the rest.
      return false
    }
  }

  /** The last frame of a connection, then its end. The first reason is the one that is told (RF 3). */
  end(
    socket: WebSocket,
    farewell: Farewell | Extract<HandshakeResponse, { type: 'connect_denied' | 'connect_expired' }>,
  ): void {
    const { k, address } = this.stateOf(socket)
    if (k === 'closed') return
    this.set(socket, { k: 'closed', address })
    this.send(socket, 'type' in farewell ? farewell : ({ type: 'error', ...farewell } satisfies BareError))
    // Without a code: the reason is in the frame alone (RF 3).
    socket.close()
    this.readers.gone(socket)
  }

  /** The peer has gone. */
  gone(socket: WebSocket): SocketState {
    const state = this.stateOf(socket)
    this.set(socket, { k: 'closed', address: state.address })
    this.readers.gone(socket)
    return state
  }
}
