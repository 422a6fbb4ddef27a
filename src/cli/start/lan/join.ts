import type { Socket } from 'node:net'
import { endSoon, ignored } from './end-soon.ts'
import { CLOSE_FRAME, ServerFrames, TEXT_FRAME } from './server-frames.ts'

/**
 * What a peer may send before the router has said its first word, and again after its last. The first frame of a device
 * has at most 8 KiB (remote protocol, "Handshake frames"); the rest is for frame headers and pings.
 */
export const STRANGER_BYTES = 16 * 1024
/** A device answers a Close at once; the code has then arrived, and nothing is lost by hanging up. */
const AFTER_CLOSE_MS = 1_000

/**
 * Joins two connections once the router has agreed to an upgrade: bytes go both ways untouched, each side as fast as
 * the other reads, and when one has ended or broken, so does the other.
 *
 * Two things are bounded, for whoever is at the other end may be a stranger:
 * - The router waits without limit for the answer to its Close, and with it the peer would keep its place in the door.
 *   So the router's frames are followed, and soon after a Close both sides end, whether the peer answers or not.
 * - Each frame costs the router work, an empty one too. So a peer to whom the router has said nothing yet (an answer to
 *   a handshake is a text frame), or has said goodbye, is cut after as many bytes as a device needs at most.
 * @param first what the router sent right behind its agreement
 */
export function join(peer: Socket, router: Socket, first: Uint8Array): void {
  const frames = new ServerFrames()
  let peerMaySend = STRANGER_BYTES
  let hangUp: NodeJS.Timeout | undefined
  const endBoth = () => {
    endSoon(peer)
    endSoon(router)
  }
  peer.once('close', () => clearTimeout(hangUp))

  const onFrame = (opcode: number) => {
    if (hangUp !== undefined) return
    if (opcode === TEXT_FRAME) peerMaySend = Number.POSITIVE_INFINITY
    if (opcode !== CLOSE_FRAME) return
    peerMaySend = STRANGER_BYTES
    hangUp = setTimeout(endBoth, AFTER_CLOSE_MS)
  }
  const fromRouter = (chunk: Uint8Array) => {
    pass(router, chunk, peer)
    for (const opcode of frames.follow(chunk)) onFrame(opcode)
  }
  const fromPeer = (chunk: Uint8Array) => {
    peerMaySend -= chunk.length
    if (peerMaySend < 0) endBoth()
    else pass(peer, chunk, router)
  }

  flow(peer, router, fromPeer)
  flow(router, peer, fromRouter)
  // What has been read since comes with a later turn.
  if (first.length > 0) fromRouter(first)
}

function flow(from: Socket, to: Socket, onChunk: (chunk: Uint8Array) => void): void {
  from.setNoDelay(true)
  from.on('error', ignored)
  from.once('end', () => {
    endSoon(from)
    to.end()
  })
  from.once('close', () => endSoon(to))
  from.on('data', onChunk)
  from.resume()
}

function pass(from: Socket, chunk: Uint8Array, to: Socket): void {
  // Reading goes on after the end, so that the other side's end is seen; what comes then is for nobody.
  if (to.destroyed || to.writableEnded || to.write(chunk)) return
  from.pause()
  to.once('drain', () => from.resume())
}
