import type { Socket } from 'node:net'

/** How long one half of a connection may outlive the other, so that what was said last still arrives. */
const LINGER_MS = 5_000

const ending = new WeakSet<Socket>()

/** Sends what is still to be sent and ends; a peer that does not end its half is cut. */
export function endSoon(socket: Socket, last?: string): void {
  if (socket.destroyed || ending.has(socket)) return
  ending.add(socket)
  if (last === undefined) socket.end()
  else if (!socket.writableEnded) socket.end(last)
  // Unread bytes would hide that the peer has ended.
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
}

/** A lost connection is told by its `close`; the reason helps nobody here. */
export const ignored = (): void => {}
