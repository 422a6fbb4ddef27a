import { describe, expect, test } from 'vitest'
import { SOCKET_ORIGIN_HEADER, type SocketOrigin } from '../../../src/gateway/rpc.ts'
import { parseRoutes } from '../../../src/worker/lan-routes.ts'
import { allowedOrigins, mayOpenSocket } from '../../../src/worker/origins.ts'
import { parseShortId } from '../../../src/worker/short-id.ts'
import {
  isExposed,
  isSocketUpgrade,
  peerAddress,
  withSocketOrigin,
} from '../../../src/worker/socket-origin.ts'

const asking = (headers: Record<string, string> = {}) => new Request('http://localhost/', { headers })

describe('who may open a socket', () => {
  const where = {
    ownOrigin: 'https://r.example',
    allowed: allowedOrigins(' https://a.example, null,,http://b.example:81 '),
  }

  test.each([
    undefined,
    'rustcode-mobile://app',
    'https://r.example',
    'https://a.example',
    'http://b.example:81',
  ])('[U34] from %s: yes', (origin) => {
    expect(mayOpenSocket(origin, where)).toBe(true)
  })

  test.each([
    '',
    'null',
    'http://r.example',
    'https://r.example:8443',
    'https://R.example',
    'https://r.example/',
    'https://r.example.evil.example',
    'https://evil.example',
    'rustcode-mobile://app/',
    'rustcode-mobile://other',
    'RUSTCODE-MOBILE://APP',
    'rustcode-mobile://app, https://evil.example',
    'https://a.example, https://evil.example',
    'http://b.example',
    '*',
  ])('[U34] from %j: no', (origin) => {
    expect(mayOpenSocket(origin, where)).toBe(false)
  })
})

describe('where a socket comes from', () => {
  test('[D41] the platform says it, and one peer has one spelling', () => {
    expect(peerAddress(asking({ 'CF-Connecting-IP': '::ffff:192.168.1.20' }), false)).toBe('192.168.1.20')
  })

  test('[D42] where nobody says it, only a local router takes that for this machine', () => {
    expect(peerAddress(asking(), true)).toBe('127.0.0.1')
    expect(peerAddress(asking(), false)).toBe('unknown')
    expect(peerAddress(asking({ 'CF-Connecting-IP': '' }), false)).toBe('unknown')
  })

  test.each([
    ['http:', '8.8.8.8', true],
    ['http:', '2001:db8:0:0:0:0:0:1', true],
    ['http:', 'unknown', true],
    ['http:', '127.0.0.1', false],
    ['http:', '192.168.1.20', false],
    ['http:', '100.92.13.44', false],
    ['http:', 'fe80:0:0:0:0:0:0:1', false],
    ['http:', 'fd00:0:0:0:0:0:0:1', false],
    ['https:', '8.8.8.8', false],
    ['https:', 'unknown', false],
  ])('[D42] over %s from %s a token would be readable on its way: %s', (scheme, peer, exposed) => {
    expect(isExposed(scheme, peer)).toBe(exposed)
  })

  test('an upgrade to anything else than a WebSocket is none', () => {
    expect(isSocketUpgrade(asking({ Upgrade: 'WebSocket' }))).toBe(true)
    expect(isSocketUpgrade(asking({ Upgrade: 'h2c' }))).toBe(false)
    expect(isSocketUpgrade(asking())).toBe(false)
  })
})

test('[D41] what a client says of its own socket is overwritten, and any host name travels', () => {
  const origin: SocketOrigin = {
    userId: 'u',
    gatewayId: 'g',
    address: '127.0.0.1',
    routes: [],
    hostName: 'Ada’s 🚂\u007f',
    notedRevocations: [],
  }
  const forged = asking({ [SOCKET_ORIGIN_HEADER]: '{"userId":"other"}', 'X-Other': 'kept' })
  const { headers } = withSocketOrigin(forged, origin)
  const header = headers.get(SOCKET_ORIGIN_HEADER) ?? ''
  expect(header).toMatch(/^[\x20-\x7e]+$/)
  expect(JSON.parse(header)).toEqual(origin)
  expect(headers.get('X-Other')).toBe('kept')
})

describe('the routes of the local network', () => {
  const good = { address: '192.168.1.20:8787', kind: 'lan' }
  const overlay = { address: '100.92.13.44:8787', kind: 'overlay', provider: 'tailscale' }

  test('[D42] are read in their order', () => {
    expect(parseRoutes(JSON.stringify([overlay, good]))).toEqual([overlay, good])
  })

  test.each([undefined, '', 'no JSON', '{}', 'null', '"text"', '[]'])('[D42] %j gives none', (text) => {
    expect(parseRoutes(text)).toEqual([])
  })

  test('[D42] what is no route is left out', () => {
    const bad = [
      null,
      'x',
      {},
      { ...good, kind: 'vpn' },
      { ...good, address: '' },
      { ...good, provider: 'x' },
    ]
    expect(parseRoutes(JSON.stringify([...bad, good]))).toEqual([good])
  })
})

test('[EC 1] ids of devices are 16 hex digits in any case', () => {
  expect(parseShortId('0011AABBccddeeff')).toBe('0011aabbccddeeff')
  for (const text of ['', '0011aabbccddeef', '0011aabbccddeefff', '0011aabbccddeefg', '../../0011aabbcc']) {
    expect(parseShortId(text)).toBeNull()
  }
})
