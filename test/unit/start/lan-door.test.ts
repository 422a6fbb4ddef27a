import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { admit, ownHostSet } from '../../../src/cli/start/lan/admission.ts'
import { DOOR_LIMITS, type Door, type DoorLimits, openDoor } from '../../../src/cli/start/lan/door.ts'
import { STRANGER_BYTES } from '../../../src/cli/start/lan/join.ts'
import { freePort } from '../../support/node/free-port.ts'
import { serverFrame } from './lan-frames.ts'

/** The door of `npm start -- --lan`, seen by raw sockets, in front of a scripted router (D42). */

type Seen = { method: string; target: string; headers: string[] }

let routerServer: Server
let routerPort: number
let seen: Seen[]
/** The router's ends of the connections that it agreed to. */
let upgraded: Duplex[]
/** What the router does with an upgrade. */
let onUpgrade: (request: IncomingMessage, socket: Duplex) => void
let door: Door
let port: number
let peers: Socket[]

const AGREED =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: abc=\r\n\r\n'
const GATEWAY = `/g/${'0123456789abcdef'.repeat(2)}`

beforeEach(async () => {
  seen = []
  upgraded = []
  peers = []
  onUpgrade = (_request, socket) => socket.write(AGREED)
  const note = ({ method = '', url = '', rawHeaders }: IncomingMessage) =>
    seen.push({ method, target: url, headers: rawHeaders })
  routerServer = createServer((request, response) => {
    note(request)
    response.end('the API')
  })
  routerServer.on('upgrade', (request, socket) => {
    note(request)
    upgraded.push(socket)
    socket.on('error', () => {})
    onUpgrade(request, socket)
  })
  routerPort = await listening(routerServer)
  await open()
})

afterEach(async () => {
  for (const peer of peers) peer.destroy()
  await door.close()
  for (const socket of upgraded) socket.destroy()
  routerServer.closeAllConnections()
  routerServer.close()
})

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function open(limits: Partial<DoorLimits> = {}): Promise<void> {
  port = await freePort()
  door = await openDoor({
    hosts: ['127.0.0.1'],
    names: ['studio.local'],
    port,
    routerPort,
    limits: { ...DOOR_LIMITS, ...limits },
  })
  expect(door).toMatchObject({ listening: ['127.0.0.1'], refused: [] })
}

async function reopen(limits: Partial<DoorLimits>): Promise<void> {
  await door.close()
  await open(limits)
}

function dial(): Socket {
  const peer = connect({ host: '127.0.0.1', port })
  peer.setEncoding('utf8').on('error', () => {})
  peers.push(peer)
  return peer
}

/** A head that the door lets through, unless something in it is replaced. */
function head({
  line = 'GET / HTTP/1.1',
  host = `127.0.0.1:${port}`,
  upgrade = 'websocket',
  more = [] as string[],
} = {}) {
  return [
    line,
    `Host: ${host}`,
    `Upgrade: ${upgrade}`,
    'Connection: Upgrade',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ...more,
    '',
    '',
  ].join('\r\n')
}

/** All that comes until the other side has ended. */
async function untilClosed(peer: Socket): Promise<string> {
  let text = ''
  peer.on('data', (piece: string) => {
    text += piece
  })
  if (!peer.closed) await once(peer, 'close')
  return text
}

/** Reads until `enough` is there. */
async function readUntil(peer: Socket, enough: string): Promise<string> {
  let text = ''
  while (!text.includes(enough)) text += (await once(peer, 'data'))[0]
  return text
}

async function exchange(text: string): Promise<string> {
  const peer = dial()
  peer.write(text)
  return untilClosed(peer)
}

/** Lets in and waits for the router's agreement. */
async function enter(text = head()): Promise<Socket> {
  const peer = dial()
  peer.write(text)
  const answer = await readUntil(peer, '\r\n\r\n')
  expect(answer).toBe(AGREED)
  return peer
}

/** One of each: status line and a sentence in the shape of the API's errors. */
function expectRefused(answer: string): void {
  expect(answer.split('\r\n', 1)).toEqual(['HTTP/1.1 403 Forbidden'])
  expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toEqual({
    error: { code: 'forbidden', message: expect.stringMatching(/^[a-z].{10,}[^.]$/) },
  })
  expect(seen).toEqual([])
}

describe('[D42] what the door lets through', () => {
  test.each(['/', GATEWAY])('an upgrade at %s, whole and both ways', async (target) => {
    const peer = await enter(head({ line: `GET ${target} HTTP/1.1` }))
    expect(seen.map(({ method, target }) => ({ method, target }))).toEqual([{ method: 'GET', target }])
    peer.write('from the device')
    expect(String((await once(upgraded[0] as Duplex, 'data'))[0])).toBe('from the device')
    upgraded[0]?.write('from the router')
    expect(await readUntil(peer, 'router')).toBe('from the router')
  })

  test.each(['websocket', 'WebSocket', 'WEBSOCKET'])(
    'Upgrade: %s, however it is written',
    async (upgrade) => {
      await enter(head({ upgrade }))
      expect(seen).toHaveLength(1)
    },
  )

  test.each(['127.0.0.1', 'studio.local', 'STUDIO.local'])('%s as the host', async (name) => {
    await enter(head({ host: `${name}:${port}` }))
    expect(seen).toHaveLength(1)
  })

  test('the handshake headers go on as they came; the peer is named by the door, and nothing else passes, compression neither', async () => {
    await enter(
      head({
        more: [
          'Origin: rustcode-mobile://app',
          'User-Agent: phone/1',
          'Sec-WebSocket-Extensions: permessage-deflate',
          'Sec-WebSocket-Protocol: a, b',
          'CF-Connecting-IP: 192.168.9.9',
          'cf-connecting-ip: 192.168.9.8',
          'X-Forwarded-For: 192.168.9.9',
          'X-Forwarded-Proto: https',
          'X-Real-IP: 192.168.9.9',
          'Forwarded: for=192.168.9.9',
          'X-Switchyard-Socket-Origin: {}',
          'MF-Original-URL: http://127.0.0.1/api/v1/auth/bootstrap',
          'MF-Route-Override: other',
          'Authorization: Bearer x',
          'Cookie: a=b',
        ],
      }),
    )
    expect(seen[0]?.headers).toEqual([
      ...['Host', `127.0.0.1:${routerPort}`, 'Connection', 'Upgrade', 'Upgrade', 'websocket'],
      ...['CF-Connecting-IP', '127.0.0.1'],
      ...['Sec-WebSocket-Version', '13', 'Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ=='],
      ...['Origin', 'rustcode-mobile://app', 'User-Agent', 'phone/1'],
      ...['Sec-WebSocket-Protocol', 'a, b'],
    ])
  })
})

test('[D42] an IPv6 address is one host in every spelling, and port 80 may be left unsaid', () => {
  const asked = (host: string, ...own: string[]) => {
    const rawHeaders = ['Host', host, 'Upgrade', 'websocket', 'Connection', 'keep-alive, Upgrade']
    return admit({ method: 'GET', target: '/', httpVersion: '1.1', rawHeaders, early: 0 }, ownHostSet(own)).ok
  }
  expect(asked('[fd7a:115c:a1e0:0:0:0:0:5]:8787', '[fd7a:115c:a1e0::5]:8787')).toBe(true)
  expect(asked('[FD7A:115C:A1E0::5]:8787', '[fd7a:115c:a1e0::5]:8787')).toBe(true)
  expect(asked('[fd7a:115c:a1e0::6]:8787', '[fd7a:115c:a1e0::5]:8787')).toBe(false)
  expect(asked('10.0.0.1', '10.0.0.1:80')).toBe(true)
  expect(asked('10.0.0.1', '10.0.0.1:8787')).toBe(false)
})

describe('[D42] what the door refuses, without asking the router', () => {
  test.each([
    'POST / HTTP/1.1',
    'OPTIONS / HTTP/1.1',
    'CONNECT 127.0.0.1:80 HTTP/1.1',
    'GET / HTTP/1.0',
    'GET / HTTP/2.0',
    'GET http://127.0.0.1/ HTTP/1.1',
    'GET // HTTP/1.1',
    'GET /? HTTP/1.1',
    'GET /# HTTP/1.1',
    'GET /api/v1/auth/bootstrap HTTP/1.1',
    'GET /g/../api/v1/sessions HTTP/1.1',
    'GET /./ HTTP/1.1',
    'GET /g/ HTTP/1.1',
    `GET ${GATEWAY}/ HTTP/1.1`,
    `GET ${GATEWAY}?a=b HTTP/1.1`,
    `GET ${GATEWAY}0 HTTP/1.1`,
    `GET ${GATEWAY.toUpperCase()} HTTP/1.1`,
    `GET ${GATEWAY.replace('/g/', '/%67/')} HTTP/1.1`,
    `GET ${GATEWAY.replace('/g/', '/g%2f')} HTTP/1.1`,
    `GET ${GATEWAY.replace('/g/', '//g/')} HTTP/1.1`,
    'GET * HTTP/1.1',
    'nonsense',
  ])('%s', async (line) => {
    expectRefused(await exchange(head({ line })))
  })

  test.each(['h2c', 'websocket, h2c', 'web socket', ''])('Upgrade: %j', async (upgrade) => {
    expectRefused(await exchange(head({ upgrade })))
  })

  test.each([
    ['no Upgrade', 'Upgrade: websocket\r\n', ''],
    ['no Connection', 'Connection: Upgrade\r\n', ''],
    ['another Connection', 'Connection: Upgrade', 'Connection: keep-alive'],
    ['no Host', /Host: .*\r\n/, ''],
    ['an empty Host', /Host: .*\r\n/, 'Host:\r\n'],
    ['two Hosts', 'Upgrade: websocket', 'Host: evil.example\r\nUpgrade: websocket'],
    ['two Upgrades', 'Upgrade: websocket', 'Upgrade: websocket\r\nUpgrade: h2c'],
    ['a body', 'Upgrade: websocket', 'Content-Length: 4\r\nUpgrade: websocket'],
    ['a body of unknown length', 'Upgrade: websocket', 'Transfer-Encoding: chunked\r\nUpgrade: websocket'],
    ['both lengths', 'Upgrade: w', 'Content-Length: 4\r\nTransfer-Encoding: chunked\r\nUpgrade: w'],
    ['a folded header', 'Upgrade: websocket', 'X-A: b\r\n c: d\r\nUpgrade: websocket'],
    ['a line end alone', 'Upgrade: websocket', 'X-A: b\nMF-Op: c\r\nUpgrade: websocket'],
    ['a space before the colon', 'Upgrade: websocket', 'X-A : b\r\nUpgrade: websocket'],
    ['a NUL', 'Upgrade: websocket', 'X-A: \0\r\nUpgrade: websocket'],
    ['an expectation', 'GET /', 'POST /api'],
  ])('%s', async (_what, from, to) => {
    expectRefused(await exchange(head().replace(from, to)))
  })

  test.each(['100-continue', 'anything'])('Expect: %s', async (expectation) => {
    expectRefused(
      await exchange(`POST /api HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nExpect: ${expectation}\r\n\r\n`),
    )
  })

  test.each([
    'evil.example',
    `evil.example:PORT`,
    'localhost:PORT',
    '127.0.0.2:PORT',
    '127.0.0.1',
    '127.0.0.1:1',
    'user@127.0.0.1:PORT',
    '127.0.0.1:PORT/x',
    '127.0.0.1:PORT, evil.example',
    'studio.local.evil.example:PORT',
  ])('a page that rebound its name: Host %s', async (host) => {
    expectRefused(await exchange(head({ host: host.replace('PORT', String(port)) })))
  })

  test('a second request right behind the head of an upgrade', async () => {
    const second = `GET /api/v1/sessions HTTP/1.1\r\nHost: 127.0.0.1:${routerPort}\r\n\r\n`
    expectRefused(await exchange(head() + second))
  })

  test('an upgrade behind a request that was refused', async () => {
    const answer = await exchange(`GET /status HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n${head()}`)
    expectRefused(answer)
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1)
  })

  test('a head that is too long', async () => {
    expectRefused(await exchange(head({ more: [`X-Long: ${'a'.repeat(DOOR_LIMITS.headBytes)}`] })))
  })
})

describe('[D42] a refusal by the router', () => {
  const NOT_FOUND =
    'HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nX-Inner: 1\r\nContent-Length: 12\r\nConnection: keep-alive\r\n\r\n{"error":{}}'

  test('is told to the peer, and ends the connection', async () => {
    onUpgrade = (_request, socket) => socket.write(NOT_FOUND)
    expect(await exchange(head())).toBe(
      'HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{"error":{}}',
    )
  })

  test('leaves no way in: what follows the upgrade never reaches the router', async () => {
    const asked = Promise.withResolvers<Duplex>()
    onUpgrade = (_request, socket) => asked.resolve(socket)
    const peer = dial()
    peer.write(head())
    const router = await asked.promise
    let received = ''
    router.on('data', (piece) => {
      received += piece
    })
    peer.write(
      `POST /api/v1/auth/bootstrap HTTP/1.1\r\nHost: 127.0.0.1:${routerPort}\r\nContent-Length: 0\r\n\r\n`,
    )
    router.write(NOT_FOUND)
    expect(await untilClosed(peer)).toMatch(/^HTTP\/1\.1 404 /)
    if (!router.readableEnded) await once(router, 'end')
    expect(received).toBe('')
    expect(seen).toHaveLength(1)
  })

  test('a router that is not there is a 502', async () => {
    routerServer.close()
    await once(routerServer, 'close')
    const answer = await exchange(head())
    expect(answer).toMatch(/^HTTP\/1\.1 502 Bad Gateway\r\n/)
    expect(answer).toContain('{"error":{"code":"router_unreachable","message":"the router does not answer"}}')
  })

  test('a router that hangs up without an answer is a 502', async () => {
    onUpgrade = (_request, socket) => socket.destroy()
    expect(await exchange(head())).toMatch(/^HTTP\/1\.1 502 /)
  })
})

describe('[D42] ends', () => {
  test('the router ends: the peer has what was said last, and the end, at once', async () => {
    const peer = await enter()
    upgraded[0]?.end('goodbye')
    expect(await untilClosed(peer)).toBe('goodbye')
  })

  test('the router dies: the peer sees the end', async () => {
    const peer = await enter()
    upgraded[0]?.destroy()
    expect(await untilClosed(peer)).toBe('')
  })

  test('the peer ends or dies: so does the connection to the router', async () => {
    for (const leave of ['end', 'resetAndDestroy'] as const) {
      const peer = await enter()
      const router = upgraded.at(-1) as Duplex
      router.resume()
      const gone = once(router, 'end')
      peer[leave]()
      await gone
    }
    expect(upgraded).toHaveLength(2)
  })

  test('a peer that leaves while the router thinks: the router learns it', async () => {
    const asked = Promise.withResolvers<Duplex>()
    onUpgrade = (_request, socket) => asked.resolve(socket)
    const peer = dial()
    peer.write(head())
    const router = await asked.promise
    router.resume()
    const gone = once(router, 'end')
    peer.resetAndDestroy()
    await gone
  })

  test('closing the door ends every connection, and nobody gets in after', async () => {
    const inside = await enter()
    const waiting = dial()
    await once(waiting, 'connect')
    // Answered, so it has been accepted after the one that says nothing.
    expectRefusedStatus(await exchange(head({ host: 'evil.example' })))
    const ends = Promise.all([untilClosed(inside), untilClosed(waiting)])
    await door.close()
    expect(await ends).toEqual(['', ''])
    const late = dial()
    const [error] = await once(late, 'error').catch((thrown) => [thrown])
    expect(error).toMatchObject({ code: 'ECONNREFUSED' })
  })
})

const expectRefusedStatus = (answer: string) => expect(answer).toMatch(/^HTTP\/1\.1 403 /)

describe('[D42] after a Close of the router', () => {
  const ERROR = serverFrame(1, '{"type":"error"}')
  const CLOSE = serverFrame(8, '\x03\xe8bye')

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  /** Lets in a peer that answers nothing, not even the end of the connection, and reads until the Close is there. */
  async function enterAndBeClosed(): Promise<Socket> {
    const peer = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
    peers.push(peer)
    peer.setEncoding('latin1').on('error', () => {})
    peer.write(head())
    await readUntil(peer, '\r\n\r\n')
    upgraded.at(-1)?.write(Buffer.concat([ERROR, CLOSE]))
    expect(await readUntil(peer, 'bye')).toBe(Buffer.concat([ERROR, CLOSE]).toString('latin1'))
    return peer
  }

  test('a peer that does not answer it is hung up on within a second, on both sides', async () => {
    const peer = await enterAndBeClosed()
    const router = upgraded[0] as Duplex
    router.resume()
    const ends = Promise.all([once(peer, 'end'), once(router, 'end')])
    await vi.advanceTimersByTimeAsync(999)
    expect({ peer: peer.readableEnded, timers: vi.getTimerCount() }).toEqual({ peer: false, timers: 1 })
    await vi.advanceTimersByTimeAsync(1)
    await ends
  })

  test('a peer that ignores the end as well loses its place', async () => {
    await reopen({ connections: 1 })
    const peer = await enterAndBeClosed()
    const end = once(peer, 'end')
    await vi.advanceTimersByTimeAsync(1_000)
    await end
    expect(await exchange(head())).toBe('')
    await vi.advanceTimersByTimeAsync(5_000)
    await enter()
  })

  test('the answer of the peer still goes to the router, and both sides end though the router does not', async () => {
    const peer = await enterAndBeClosed()
    const router = upgraded[0] as Duplex
    peer.write('answer')
    expect(String((await once(router, 'data'))[0])).toBe('answer')
    const ends = Promise.all([once(peer, 'end'), once(router, 'end')])
    await vi.advanceTimersByTimeAsync(1_000)
    await ends
  })

  test('it is no more than an answer that still goes to the router', async () => {
    const peer = await enterAndBeClosed()
    const received = bytesOf(upgraded[0] as Duplex)
    peer.write(Buffer.alloc(STRANGER_BYTES))
    peer.write('x')
    expect(await received).toBeLessThanOrEqual(STRANGER_BYTES)
  })

  test('what looks like one inside of a frame is none', async () => {
    const peer = await enter()
    const frame = serverFrame(2, CLOSE.toString('latin1').repeat(20_000))
    upgraded[0]?.write(frame)
    upgraded[0]?.write(serverFrame(1, 'the end'))
    await readUntil(peer, 'the end')
    expect(vi.getTimerCount()).toBe(0)
    // The control: one that is.
    upgraded[0]?.write(CLOSE)
    await readUntil(peer, 'bye')
    expect(vi.getTimerCount()).toBe(1)
  })

  test('one that came in the same breath as the agreement counts', async () => {
    onUpgrade = (_request, socket) => socket.write(Buffer.concat([Buffer.from(AGREED), CLOSE]))
    const peer = dial()
    peer.write(head())
    await readUntil(peer, 'bye')
    const gone = once(peer, 'end')
    await vi.advanceTimersByTimeAsync(1_000)
    await gone
  })
})

/** How many come until the other side has ended. */
async function bytesOf(socket: Duplex): Promise<number> {
  let count = 0
  socket.on('data', (piece: Buffer) => {
    count += piece.length
  })
  await once(socket, 'end')
  return count
}

describe('[D42] before the router has said a word', () => {
  async function received(router: Duplex, count: number): Promise<void> {
    for (let got = 0; got < count; ) got += (await once(router, 'data'))[0].length
  }

  test('a peer may send 16 KiB, and is cut with the next byte', async () => {
    const peer = await enter()
    const router = upgraded[0] as Duplex
    peer.write(Buffer.alloc(STRANGER_BYTES))
    await received(router, STRANGER_BYTES)
    const more = bytesOf(router)
    const ended = untilClosed(peer)
    peer.write('x')
    expect(await more).toBe(0)
    expect(await ended).toBe('')
  })

  test('what the peer sent before it was let in counts', async () => {
    const asked = Promise.withResolvers<Duplex>()
    onUpgrade = (_request, socket) => asked.resolve(socket)
    const peer = dial()
    peer.write(head())
    const router = await asked.promise
    const count = bytesOf(router)
    peer.write(Buffer.alloc(STRANGER_BYTES + 1))
    router.write(AGREED)
    expect(await untilClosed(peer)).toBe(AGREED)
    expect(await count).toBeLessThanOrEqual(STRANGER_BYTES)
  })

  test.each([
    ['a ping', 9],
    ['a pong', 10],
    ['a binary frame', 2],
  ])('%s of the router is no word', async (_what, opcode) => {
    const peer = await enter()
    upgraded[0]?.write(serverFrame(opcode, 'hello'))
    await readUntil(peer, 'hello')
    const count = bytesOf(upgraded[0] as Duplex)
    peer.write(Buffer.alloc(STRANGER_BYTES + 1))
    await untilClosed(peer)
    expect(await count).toBeLessThanOrEqual(STRANGER_BYTES)
  })

  test('after a text frame of the router a peer may send what it likes', async () => {
    const peer = await enter()
    peer.write(Buffer.alloc(STRANGER_BYTES))
    await received(upgraded[0] as Duplex, STRANGER_BYTES)
    upgraded[0]?.write(serverFrame(1, 'paired'))
    await readUntil(peer, 'paired')
    const much = 40 * STRANGER_BYTES
    peer.write(Buffer.alloc(much))
    await received(upgraded[0] as Duplex, much)
  })
})

test('[D42] each side is read only as fast as the other reads', async () => {
  const peer = await enter()
  const router = upgraded[0] as Duplex
  peer.pause()
  // More than all buffers between the two can take; the system's grow to some megabytes.
  const piece = serverFrame(1, 'a'.repeat(1024 * 1024))
  const total = 64
  const written = Array.from({ length: total }, () => new Promise((resolve) => router.write(piece, resolve)))
  const all = Promise.all(written).then(() => 'taken')
  // The door has had many turns by the time it has answered others.
  for (let asked = 0; asked < 20; asked++) await exchange(head({ host: 'evil.example' }))
  expect(await Promise.race([all, Promise.resolve('waiting')])).toBe('waiting')
  expect(router.writableLength).toBeGreaterThan(0)
  let got = 0
  peer.on('data', (text: string) => {
    got += Buffer.byteLength(text)
  })
  peer.resume()
  expect(await all).toBe('taken')
  router.end()
  await once(peer, 'end')
  // The encoding of the test's socket makes three bytes of one that is no text.
  expect(got).toBeGreaterThanOrEqual(total * 1024 * 1024)
})

describe('[D42] strangers who only occupy it', () => {
  test.each(['', 'GET / HTTP/1.1\r\nHost: '])('are cut when the head does not come: %j', async (begun) => {
    await reopen({ headMs: 100 })
    const peer = dial()
    peer.write(begun)
    expect(await untilClosed(peer)).toBe('')
  })

  test('a connection that is in stays for longer than a head may take', async () => {
    await reopen({ headMs: 100 })
    const inside = await enter()
    // It is cut after this one was let in, by the same clock.
    expect(await untilClosed(dial())).toBe('')
    upgraded[0]?.write('still here')
    expect(await readUntil(inside, 'here')).toBe('still here')
  })

  test.each([
    ['of one address', { connectionsPerAddress: 2 }],
    ['in all', { connections: 2 }],
  ])('connections %s are bounded, and a place becomes free again', async (_what, limits) => {
    await reopen(limits)
    const first = await enter()
    await enter()
    expect(await exchange(head())).toBe('')
    const left = once(upgraded[0] as Duplex, 'end')
    upgraded[0]?.resume()
    first.destroy()
    await left
    await enter()
  })

  test('an address that cannot be had is named, and the others are open', async () => {
    const taken = createServer()
    const takenPort = await listening(taken)
    const other = await openDoor({
      hosts: ['127.0.0.1', '192.0.2.250'],
      names: [],
      port: takenPort,
      routerPort,
    })
    expect(other).toMatchObject({
      listening: [],
      refused: [
        { host: '127.0.0.1', code: 'EADDRINUSE' },
        { host: '192.0.2.250', code: 'EADDRNOTAVAIL' },
      ],
    })
    await other.close()
    taken.close()
  })
})
