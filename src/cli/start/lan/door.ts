import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { Socket } from 'node:net'
import { plainAddress } from '../../../core/gateway/addresses.ts'
import { admit, ONLY_DEVICES, ownHostSet } from './admission.ts'
import { endSoon, ignored } from './end-soon.ts'
import { relay } from './relay.ts'
import { hostAndPort } from './routes.ts'

/**
 * The one thing of a local router that other machines reach: it listens on the addresses of the local network, lets
 * upgrades to a gateway through to the router on 127.0.0.1 and answers everything else itself (D42). The HTTP API, with
 * its open sign-up, is never on the network.
 */
export type Door = {
  /** The addresses that could be had; may be none. */
  listening: string[]
  /** The others, with the system's code for the reason. */
  refused: { host: string; code: string }[]
  /** Cuts every connection and listens no more. */
  close(): Promise<void>
}

export type DoorOptions = {
  /** Addresses to listen on, IPv6 without brackets. */
  hosts: readonly string[]
  /** Names of the machine that a device may dial as well. */
  names: readonly string[]
  port: number
  /** The router's, on 127.0.0.1. */
  routerPort: number
  limits?: DoorLimits
}

export type DoorLimits = {
  /** For the whole head of a request, from the moment the connection is there. */
  headMs: number
  headBytes: number
  connections: number
  connectionsPerAddress: number
}

/** A gateway serves 64 connections; strangers who only occupy sockets leave as many for devices. */
export const DOOR_LIMITS: DoorLimits = {
  // The gateway gives a handshake frame the same time.
  headMs: 10_000,
  headBytes: 16 * 1024,
  connections: 128,
  // A household behind one overlay gateway shares an address.
  connectionsPerAddress: 16,
}

/** Opens the door on every address that can be had. */
export async function openDoor(options: DoorOptions): Promise<Door> {
  const { hosts, names, port, limits = DOOR_LIMITS } = options
  const entrance: Entrance = {
    ownHosts: ownHostSet([...hosts, ...names].map((host) => hostAndPort(host, port))),
    routerPort: options.routerPort,
    limits,
    peers: new Set(),
  }
  const opened = await Promise.all(
    hosts.map(async (host) => {
      const server = makeServer(entrance)
      return { host, server, code: await listen(server, host, port) }
    }),
  )
  const servers = opened.filter(({ code }) => code === undefined).map(({ server }) => server)
  return {
    listening: opened.filter(({ code }) => code === undefined).map(({ host }) => host),
    refused: opened.flatMap(({ host, code }) => (code === undefined ? [] : [{ host, code }])),
    close: async () => {
      const closed = servers.map((server) => new Promise((resolve) => server.close(resolve)))
      for (const peer of entrance.peers) peer.destroy()
      await Promise.all(closed)
    },
  }
}

/** What all listening addresses share. */
type Entrance = {
  ownHosts: ReadonlySet<string>
  routerPort: number
  limits: DoorLimits
  peers: Set<Socket>
}

/** @returns the system's code for why not; undefined: it listens */
function listen(server: Server, host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ host, port, exclusive: true }, () => {
      // Accepting can fail for want of file handles; the next one may succeed.
      server.on('error', ignored)
      resolve(undefined)
    })
  })
}

function makeServer(entrance: Entrance): Server {
  const { limits, peers } = entrance
  const server = createServer({
    headersTimeout: limits.headMs,
    requestTimeout: limits.headMs,
    connectionsCheckingInterval: Math.min(1000, limits.headMs),
    maxHeaderSize: limits.headBytes,
    // A missing or second host is refused here with the same sentence as a wrong one.
    requireHostHeader: false,
  })
  server.on('connection', (peer: Socket) => {
    if (isFull(entrance, peer)) {
      peer.destroy()
      return
    }
    peers.add(peer)
    peer.on('error', ignored)
    peer.once('close', () => peers.delete(peer))
  })
  server.on('upgrade', (request, _stream, early) => enter(entrance, request, early))
  // Whatever else a request may want: none is served.
  server.on('request', ({ socket }: IncomingMessage) => refuse(socket, ONLY_DEVICES))
  server.on('checkContinue', ({ socket }: IncomingMessage) => refuse(socket, ONLY_DEVICES))
  server.on('checkExpectation', ({ socket }: IncomingMessage) => refuse(socket, ONLY_DEVICES))
  server.on('connect', ({ socket }: IncomingMessage) => refuse(socket, ONLY_DEVICES))
  server.on('clientError', (error: NodeJS.ErrnoException, stream) => {
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' || !stream.writable) stream.destroy()
    else stream.end(answerOf(403, 'forbidden', ONLY_DEVICES), () => stream.destroy())
  })
  return server
}

function isFull({ peers, limits }: Entrance, { remoteAddress }: Socket): boolean {
  if (peers.size >= limits.connections) return true
  const same = [...peers].filter((peer) => peer.remoteAddress === remoteAddress).length
  return same >= limits.connectionsPerAddress
}

function enter({ ownHosts, routerPort }: Entrance, request: IncomingMessage, early: Buffer): void {
  const peer = request.socket
  const { remoteAddress } = peer
  if (remoteAddress === undefined || peer.writableEnded) {
    // It has left already, or asked for something else before.
    peer.destroy()
    return
  }
  const { method = '', url = '', httpVersion, rawHeaders } = request
  const admitted = admit({ method, target: url, httpVersion, rawHeaders, early: early.length }, ownHosts)
  if (!admitted.ok) refuse(peer, admitted.error)
  else {
    relay({
      peer,
      peerAddress: plainAddress(remoteAddress),
      admitted: admitted.value,
      routerPort,
      onUnreachable: () => endSoon(peer, answerOf(502, 'router_unreachable', 'the router does not answer')),
    })
  }
}

const refuse = (peer: Socket, sentence: string): void => endSoon(peer, answerOf(403, 'forbidden', sentence))

function answerOf(status: 403 | 502, code: string, message: string): string {
  const body = JSON.stringify({ error: { code, message } })
  return [
    `HTTP/1.1 ${status} ${status === 403 ? 'Forbidden' : 'Bad Gateway'}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}
