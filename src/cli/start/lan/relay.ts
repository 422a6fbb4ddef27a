import { type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import type { Admitted } from './admission.ts'
import { endSoon } from './end-soon.ts'
import { join } from './join.ts'

/** How long the router may take to answer an upgrade. It is on this machine, and a device gives up by then. */
const ROUTER_ANSWER_MS = 10_000
/** After this silence the system asks whether the peer is still there: a phone that left the house says no goodbye. */
const KEEP_ALIVE_MS = 30_000
const ROUTER_HOST = '127.0.0.1'

export type Relay = {
  peer: Socket
  peerAddress: string
  admitted: Admitted
  routerPort: number
  /** Answers the peer when the router does not. */
  onUnreachable: () => void
}

/**
 * Asks the router for the upgrade and joins the two connections when it agrees. Until then not a byte of the peer goes
 * on: after any other answer the router would take what follows for a next request, one that nobody has looked at.
 */
export function relay({ peer, peerAddress, admitted, routerPort, onUnreachable }: Relay): void {
  const asked = request({
    host: ROUTER_HOST,
    port: routerPort,
    path: admitted.path,
    agent: false,
    headers: [
      ...['Host', `${ROUTER_HOST}:${routerPort}`, 'Connection', 'Upgrade', 'Upgrade', 'websocket'],
      ...['CF-Connecting-IP', peerAddress],
      ...admitted.headers,
    ],
  })
  let answered = false
  const giveUp = () => asked.destroy()
  asked.setTimeout(ROUTER_ANSWER_MS, giveUp)
  peer.once('close', giveUp)
  asked.on('error', () => {
    if (!answered) onUnreachable()
  })
  asked.once('upgrade', (answer, _stream, first) => {
    answered = true
    peer.off('close', giveUp)
    const router = answer.socket
    router.setTimeout(0)
    peer.setKeepAlive(true, KEEP_ALIVE_MS)
    peer.write(headOf(answer, answer.rawHeaders))
    join(peer, router, first)
  })
  asked.once('response', (answer) => {
    answered = true
    const type = answer.headers['content-type']
    peer.write(headOf(answer, [...(type === undefined ? [] : ['Content-Type', type]), 'Connection', 'close']))
    answer.on('error', () => peer.destroy())
    answer.once('end', () => endSoon(peer))
    answer.pipe(peer)
  })
  asked.end()
}

function headOf({ statusCode, statusMessage }: IncomingMessage, rawHeaders: readonly string[]): string {
  const lines = [`HTTP/1.1 ${statusCode} ${statusMessage}`]
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}
