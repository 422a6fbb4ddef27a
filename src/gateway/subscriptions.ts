import type { DeviceSocket, KeptSubscription, Sockets } from './sockets.ts'

/** A session that a socket follows, from when it asked to. */
export type Subscription = {
  readonly socket: WebSocket
  readonly sessionId: string
  readonly epoch: number
  readonly threadNames: boolean
  /** The last sequence that was sent, or is contained in what was sent. */
  cursor: number
  /** The newest snapshot that was sent. */
  snapshotId: string | null
  /**
   * `attaching`: the answer to its request is on its way, and nothing may go before it. `live`: whatever is pushed is
   * sent. `asking`: it lacks something, and the session has been asked for it. `waiting`: it lacks something, and the
   * device has to read first, or the session to be reached.
   */
  phase: 'attaching' | 'live' | 'asking' | 'waiting'
  /** The newest that was pushed and not sent: whatever the session was asked before may not hold it. */
  wanted: { sequence: number; snapshotId: string | null } | null
  /** While it waits: when it goes on by itself; null when only the next word of session or device helps. */
  goesOnAtMs: number | null
  /** Questions to the session that failed, one after the other. */
  failures: number
}

/** One connection may follow so many sessions; no more are listed at once. */
export const MAX_SUBSCRIPTIONS = 32

/** Who follows what (D34). In memory, and kept with each socket after every change, so that it outlives a sleep. */
export class Subscriptions {
  readonly #sockets: Sockets
  readonly #of = new Map<WebSocket, Map<string, Subscription>>()

  constructor(sockets: Sockets) {
    this.#sockets = sockets
    for (const [socket, state] of sockets.devices()) this.#restore(socket, state)
  }

  get(socket: WebSocket, sessionId: string): Subscription | null {
    return this.#ofSocket(socket)?.get(sessionId) ?? null
  }

  /** Whether it still is what its connection follows: another one may have taken its place, or the connection ended. */
  holds(subscription: Subscription): boolean {
    return this.get(subscription.socket, subscription.sessionId) === subscription
  }

  /** In place of any other of the same connection and session. */
  put(subscription: Subscription): void {
    const { socket, sessionId } = subscription
    const ofSocket = this.#of.get(socket) ?? new Map<string, Subscription>()
    this.#of.set(socket, ofSocket.set(sessionId, subscription))
    this.save(socket)
  }

  remove({ socket, sessionId }: Subscription): void {
    this.#of.get(socket)?.delete(sessionId)
    this.save(socket)
  }

  ofSocket(socket: WebSocket): Subscription[] {
    return [...(this.#ofSocket(socket)?.values() ?? [])]
  }

  ofSession(sessionId: string): Subscription[] {
    return [...this.#of.keys()].flatMap((socket) => this.get(socket, sessionId) ?? [])
  }

  waiting(): Subscription[] {
    return [...this.#of.keys()].flatMap((socket) =>
      this.ofSocket(socket).filter(({ phase }) => phase === 'waiting'),
    )
  }

  /** Subscriptions end with their connection, and it may end anywhere. */
  #ofSocket(socket: WebSocket): Map<string, Subscription> | undefined {
    if (this.#sockets.stateOf(socket).k !== 'device') this.#of.delete(socket)
    return this.#of.get(socket)
  }

  /** Keeps with the socket what it follows. It costs no write: the platform holds it beside the connection. */
  save(socket: WebSocket): void {
    const attached = this.ofSocket(socket)
      // A request that is lost with the object's memory was lost with its connection, too.
      .filter(({ phase }) => phase !== 'attaching')
      .map(
        ({ sessionId, epoch, cursor, snapshotId, phase }): KeptSubscription => [
          sessionId,
          epoch,
          cursor,
          snapshotId,
          phase !== 'live',
        ],
      )
    this.#sockets.change(socket, { attached })
  }

  #restore(socket: WebSocket, { attached = [], threadNames }: DeviceSocket): void {
    if (attached.length === 0) return
    const restored = attached.map(
      ([sessionId, epoch, cursor, snapshotId, isBehind]): [string, Subscription] => [
        sessionId,
        {
          socket,
          sessionId,
          epoch,
          threadNames,
          cursor,
          snapshotId,
          phase: isBehind ? 'waiting' : 'live',
          wanted: null,
          goesOnAtMs: isBehind ? Date.now() : null,
          failures: 0,
        },
      ],
    )
    this.#of.set(socket, new Map(restored))
  }
}
