import { MAX_IN_FLIGHT } from '../protocol/remote/limits.ts'

/** How many requests of each connection wait for an answer (RF 10). */
export class InFlight {
  readonly #counts = new Map<WebSocket, number>()

  hasRoom(socket: WebSocket): boolean {
    return (this.#counts.get(socket) ?? 0) < MAX_IN_FLIGHT
  }

  /** Counts a request for as long as the work takes. */
  async during<T>(socket: WebSocket, work: () => Promise<T>): Promise<T> {
    this.#counts.set(socket, (this.#counts.get(socket) ?? 0) + 1)
    try {
      return await work()
    } finally {
      const left = (this.#counts.get(socket) ?? 1) - 1
      if (left === 0) this.#counts.delete(socket)
      else this.#counts.set(socket, left)
    }
  }
}
