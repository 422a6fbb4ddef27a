import {
  acknowledge,
  type Flow,
  fill,
  goesOnAtMs,
  heard,
  isFull,
  isStuck,
  limitFor,
  newFlow,
  settle,
} from '../core/gateway/flow.ts'

/** What has to outlive a sleep of a connection that may acknowledge: `unread` is null while it has not. */
export type KeptFlow = [sentBytes: number, unread: number | null, fullSinceMs: number | null]

/**
 * How much each device may not have read yet (D35). In memory: what an object that slept has sent was read long ago,
 * unless the device says otherwise.
 */
export class SlowReaders {
  readonly #flows = new Map<WebSocket, Flow>()
  readonly #pingedAtMs: (socket: WebSocket) => number

  /** @param pingedAtMs when the platform last answered a ping on the socket; 0 for never */
  constructor(pingedAtMs: (socket: WebSocket) => number) {
    this.#pingedAtMs = pingedAtMs
  }

  sent(socket: WebSocket, bytes: number): void {
    this.#flows.set(socket, fill(this.#settled(socket), bytes))
  }

  /**
   * A frame has come: what was sent before has been read.
   * @returns false when it says nothing of that, since the device acknowledges what it reads
   */
  heard(socket: WebSocket): boolean {
    const flow = this.#settled(socket)
    this.#flows.set(socket, heard(flow, flow.atMs))
    return !flow.acknowledges
  }

  /** @param bytes that the device has read since its connection began */
  acknowledged(socket: WebSocket, bytes: number): void {
    const flow = this.#settled(socket)
    this.#flows.set(socket, acknowledge(flow, bytes, flow.atMs))
  }

  gone(socket: WebSocket): void {
    this.#flows.delete(socket)
  }

  /** What has to be kept with the socket. */
  kept(socket: WebSocket): KeptFlow {
    const { sentBytes, acknowledges, level, fullSinceMs } = this.#settled(socket)
    return acknowledges ? [sentBytes, level, fullSinceMs] : [sentBytes, null, null]
  }

  /** What was kept, after a sleep. */
  restore(socket: WebSocket, [sentBytes, unread, fullSinceMs]: KeptFlow): void {
    const acknowledges = unread !== null
    this.#flows.set(socket, {
      ...newFlow(Date.now()),
      sentBytes,
      acknowledges,
      level: unread ?? 0,
      fullSinceMs,
    })
  }

  isFull(socket: WebSocket): boolean {
    return isFull(this.#settled(socket), this.#limit())
  }

  isStuck(socket: WebSocket): boolean {
    return isStuck(this.#settled(socket))
  }

  goesOnAtMs(socket: WebSocket): number {
    return goesOnAtMs(this.#settled(socket), this.#limit())
  }

  #limit(): number {
    const nowMs = Date.now()
    return limitFor([...this.#flows.values()].map((flow) => settle(flow, 0, nowMs).level))
  }

  #settled(socket: WebSocket): Flow {
    const nowMs = Date.now()
    const flow = settle(this.#flows.get(socket) ?? newFlow(nowMs), this.#pingedAtMs(socket), nowMs)
    this.#flows.set(socket, flow)
    return flow
  }
}
