import type { WireNames } from '../protocol/remote/decode-request.ts'
import type { RemoteSessionsFrame } from '../protocol/remote/frame.ts'
import { MAX_FRAME_BYTES, REMOTE_PROTOCOL_VERSION } from '../protocol/remote/limits.ts'
import type { RemoteSessionInfo } from '../protocol/remote/session-info.ts'
import { toThreadNames } from '../protocol/remote/wire-names.ts'
import { byteLength } from '../storage/limits.ts'
import type { GatewayParts } from './parts.ts'
import type { DeviceSocket } from './sockets.ts'

/** The whole list, to every device that follows it (RF 11). One that has no room gets the latest list when it has read. */
export class ListPush {
  readonly #parts: GatewayParts
  readonly #rows: () => RemoteSessionInfo[]
  readonly #owed = new Set<WebSocket>()
  /** The list that each device saw last, as JSON: one that has not changed for it is not pushed (RF 11). */
  readonly #seen = new WeakMap<WebSocket, string>()

  constructor(parts: GatewayParts, rows: () => RemoteSessionInfo[]) {
    this.#parts = parts
    this.#rows = rows
  }

  /** When a device that had no room is tried again; null when none waits. */
  get nextAtMs(): number | null {
    const { sockets } = this.#parts
    const times = [...this.#owed].map((socket) => sockets.readers.goesOnAtMs(socket))
    return times.length === 0 ? null : Math.min(...times)
  }

  /** A device was given the list in an answer. */
  answered(socket: WebSocket, rows: readonly RemoteSessionInfo[]): void {
    this.#seen.set(socket, JSON.stringify(rows))
  }

  /** The list has changed; since a device saw it last it may have changed back. */
  changed(): void {
    this.#send(this.#parts.sockets.devices())
  }

  /** Sends the list to those that had no room, if they have it now. */
  retry(): void {
    if (this.#owed.size === 0) return
    const owed = [...this.#owed]
    this.#owed.clear()
    this.#send(this.#parts.sockets.devices().filter(([socket]) => owed.includes(socket)))
  }

  #send(devices: [WebSocket, DeviceSocket][]): void {
    const { sockets, identity, arm } = this.#parts
    const following = devices.filter(([, { subscribed }]) => subscribed)
    if (following.length === 0) return
    const { gatewayId, instanceId } = identity()
    const sessions = this.#rows()
    const listed = JSON.stringify(sessions)
    const frame: RemoteSessionsFrame = {
      kind: 'sessions',
      protocol_version: REMOTE_PROTOCOL_VERSION,
      gateway_id: gatewayId,
      instance_id: instanceId,
      sessions,
    }
    const texts: Partial<Record<WireNames, string>> = {}
    for (const [socket, { threadNames }] of following) {
      if (this.#seen.get(socket) === listed) {
        this.#owed.delete(socket)
        continue
      }
      if (sockets.readers.isFull(socket)) {
        this.#owed.add(socket)
        continue
      }
      const names = threadNames ? 'thread' : 'session'
      texts[names] ??= JSON.stringify(threadNames ? toThreadNames(frame) : frame)
      const bytes = byteLength(texts[names])
      // Rows are bounded so that all of them fit; a frame that does not must not leave (RF 1).
      if (bytes > MAX_FRAME_BYTES) throw new Error('invariant broken: a list beyond a frame')
      this.#owed.delete(socket)
      this.#seen.set(socket, listed)
      sockets.sendText(socket, texts[names], bytes)
    }
    if (this.#owed.size > 0) arm()
  }
}
