import {
  type Flow,
  fill,
  goesOnAtMs,
  isFull,
  isStuck,
  limitFor,
  newFlow,
  settle,
} from '../core/gateway/flow.ts'

/** How much each device may not have read yet (D35). In memory: what an object that slept has sent was read long ago. */
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

  /** A frame has come: what was sent before has been read. */
  heard(socket: WebSocket): void {
    this.#flows.delete(socket)
  }

  gone(socket: WebSocket): void {
    this.#flows.delete(socket)
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
