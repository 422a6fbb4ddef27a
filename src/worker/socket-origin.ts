import { addressKind, plainAddress } from '../core/gateway/addresses.ts'
import { SOCKET_ORIGIN_HEADER, type SocketOrigin } from '../gateway/rpc.ts'

/** The request wants to become a WebSocket. */
export const isSocketUpgrade = (request: Request): boolean =>
  request.headers.get('Upgrade')?.toLowerCase() === 'websocket'

/** Where a request comes from when nobody says so. */
const UNKNOWN_PEER = 'unknown'

/**
 * The network address of the peer. Locally, without the header that the platform sets, only this machine can be the one
 * that asks.
 */
export function peerAddress(request: Request, isLocal: boolean): string {
  const stated = request.headers.get('CF-Connecting-IP')
  if (stated !== null && stated !== '') return plainAddress(stated)
  return isLocal ? '127.0.0.1' : UNKNOWN_PEER
}

/**
 * Whether a token would cross a network that others may read (D42): an unencrypted upgrade, unless it comes from this
 * machine, a local network or an overlay network. What is no address counts as public.
 */
export const isExposed = (scheme: string, peer: string): boolean =>
  scheme === 'http:' && (addressKind(peer) ?? 'public') === 'public'

/** The upgrade as the gateway gets it: a header of that name that a client sent is overwritten. */
export function withSocketOrigin(request: Request, origin: SocketOrigin): Request {
  const headers = new Headers(request.headers)
  headers.set(SOCKET_ORIGIN_HEADER, inAscii(JSON.stringify(origin)))
  return new Request(request, { headers })
}

/** JSON that a header can hold: a host may be named in any script. */
const inAscii = (json: string): string =>
  json.replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
