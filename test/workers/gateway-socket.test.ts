import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { Gateway } from '../../src/gateway/gateway.ts'
import type { SocketOrigin } from '../../src/gateway/rpc.ts'
import { SOCKET_ORIGIN_HEADER } from '../../src/gateway/rpc.ts'
import { markUserDeleted } from '../../src/storage/d1/accounts.ts'
import { openDatabase } from '../../src/storage/d1/database.ts'
import { findFirstGateway, noteRevocation } from '../../src/storage/d1/gateways.ts'
import { breakD1 } from '../support/workers/d1-faults.ts'
import { eachCase } from '../support/workers/each-case.ts'
import {
  type DialOptions,
  dial,
  openPairing,
  pairDevice,
  upgrade,
} from '../support/workers/gateway-device.ts'
import { type Client, makeClient, refused, send, sendWith } from '../support/workers/router.ts'

/** The first account of this deployment, and its gateway. */
let first: Client
let gatewayId: string
beforeAll(async () => {
  first = await makeClient()
  gatewayId = (await openPairing(first)).gateway_id
})

const APP = { Origin: 'rustcode-mobile://app' }
const db = () => openDatabase(env.DB)
const gatewayOf = async (userId: string) =>
  env.DB.prepare('SELECT gateway_id FROM gateways WHERE user_id = ?').bind(userId).first<string>('gateway_id')

/** What the gateway gets with an upgrade. */
async function originOf(path: string, options: DialOptions = {}): Promise<SocketOrigin> {
  const spy = vi.spyOn(Gateway.prototype, 'fetch')
  const socket = await dial(path, options)
  const header = spy.mock.calls[0]?.[0].headers.get(SOCKET_ORIGIN_HEADER) ?? 'null'
  spy.mockRestore()
  socket.hangUp()
  return JSON.parse(header)
}

/** What D1 is asked during some work. */
async function tripsOf(work: () => Promise<unknown>): Promise<number> {
  const spies = [vi.spyOn(env.DB, 'prepare'), vi.spyOn(env.DB, 'batch')] as const
  await work()
  const trips = spies[0].mock.calls.length + spies[1].mock.calls.length
  for (const spy of spies) spy.mockRestore()
  return trips
}

/** Nothing of the gateway's object may run for these. */
async function refusedAtTheDoor(answer: () => Promise<Response>) {
  const spy = vi.spyOn(Gateway.prototype, 'fetch')
  const response = await answer()
  expect(spy).not.toHaveBeenCalled()
  spy.mockRestore()
  return refused(response)
}

describe('where a device dials', () => {
  it('[D42] `/` is the gateway of the first account, and `/g/…` that of any', async () => {
    const second = await makeClient()
    const other = (await openPairing(second)).gateway_id
    expect(other).not.toBe(gatewayId)
    expect(await originOf('/')).toMatchObject({ userId: first.userId, gatewayId })
    expect(await originOf(`/g/${gatewayId}`)).toMatchObject({ userId: first.userId, gatewayId })
    expect(await originOf(`/g/${other}`)).toMatchObject({ userId: second.userId, gatewayId: other })
  })

  it('[D41] a socket takes one trip to D1, and a stranger’s id none of an object', async () => {
    expect(await tripsOf(async () => (await dial(`/g/${gatewayId}`)).hangUp())).toBe(1)
    expect(await tripsOf(async () => (await dial('/')).hangUp())).toBe(1)
    const unknown = () => refusedAtTheDoor(() => upgrade(`/g/${'0'.repeat(32)}`))
    expect(await unknown()).toMatchObject({ status: 404, code: 'invalid_request' })
    expect(await tripsOf(unknown)).toBe(1)
  })

  eachCase(
    ['x', '0'.repeat(31), '0'.repeat(33), 'A'.repeat(32), `${'0'.repeat(31)}g`],
    (id) => `[D41] ${id} is no gateway id, and D1 is not asked`,
    async (id) => {
      const ask = () => refusedAtTheDoor(() => upgrade(`/g/${id}`))
      expect(await ask()).toMatchObject({ status: 404, code: 'invalid_request' })
      expect(await tripsOf(ask)).toBe(0)
    },
  )

  it('[D53] who opens no socket sees a page at `/`, and is told at `/g/…` what is served there', async () => {
    for (const headers of [{}, { Upgrade: 'h2c' }]) {
      const page = await send('GET', '/', undefined, headers)
      expect(page.status).toBe(200)
      expect(await page.text()).toContain('Switchyard')
      const answer = await send('GET', `/g/${gatewayId}`, undefined, headers)
      expect(answer.headers.get('Upgrade')).toBe('websocket')
      expect(await refused(answer)).toMatchObject({ status: 426, code: 'invalid_request' })
    }
  })

  it('[D49] another method is refused in the error shape', async () => {
    expect((await refused(await send('POST', `/g/${gatewayId}`))).status).toBe(404)
    expect((await refused(await send('POST', '/'))).status).toBe(404)
  })

  it('[EC 1] a database that does not answer is a storage error, and the next try is served', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const broken = breakD1('lost', /gateways/)
    const answer = await refused(await upgrade(`/g/${gatewayId}`))
    broken.repair()
    expect(answer).toMatchObject({ status: 502, code: 'storage_error' })
    ;(await dial(`/g/${gatewayId}`)).hangUp()
  })
})

describe('who may open a socket', () => {
  const ALLOWED = { ALLOWED_ORIGINS: 'https://app.example, null' }
  const GRANTED: { from: string; options: DialOptions }[] = [
    { from: 'no origin at all', options: {} },
    { from: 'the app', options: { headers: APP } },
    { from: 'the router itself', options: { headers: { Origin: 'http://localhost' } } },
    { from: 'a configured origin', options: { headers: { Origin: 'https://app.example' }, vars: ALLOWED } },
  ]
  const REFUSED: { from: string; options: DialOptions }[] = [
    { from: 'another web site', options: { headers: { Origin: 'https://evil.example' } } },
    { from: '`null`', options: { headers: { Origin: 'null' }, vars: ALLOWED } },
    { from: 'an origin that is not configured', options: { headers: { Origin: 'https://app.example' } } },
    { from: 'another scheme', options: { headers: { Origin: 'https://localhost' } } },
    { from: 'another port', options: { headers: { Origin: 'http://localhost:1' } } },
    { from: 'an app of another name', options: { headers: { Origin: 'rustcode-mobile://app2' } } },
  ]

  for (const path of ['/', '/g/']) {
    const to = () => (path === '/' ? '/' : `/g/${gatewayId}`)
    eachCase(
      GRANTED,
      ({ from }) => `[U34] ${path} from ${from}: granted`,
      async ({ options }) => {
        const response = await upgrade(to(), options)
        expect(response.status).toBe(101)
        response.webSocket?.accept()
        response.webSocket?.close()
      },
    )
    eachCase(
      REFUSED,
      ({ from }) => `[U34] ${path} from ${from}: refused before anything is looked up`,
      async ({ options }) => {
        const ask = () => refusedAtTheDoor(() => upgrade(to(), options))
        expect(await ask()).toMatchObject({ status: 403, code: 'forbidden' })
        expect(await tripsOf(ask)).toBe(0)
      },
    )
  }

  it('[U34] a preflight grants no socket', async () => {
    const headers = { Origin: 'https://app.example', 'Access-Control-Request-Method': 'GET' }
    const preflight = await sendWith(ALLOWED, 'OPTIONS', `/g/${gatewayId}`, undefined, headers)
    expect(preflight.status).toBe(204)
    const evil = { Origin: 'https://evil.example' }
    expect((await upgrade(`/g/${gatewayId}`, { headers: evil, vars: ALLOWED })).status).toBe(403)
  })

  it('[D43] a local router serves loopback names only, to devices as well', async () => {
    const answer = await refusedAtTheDoor(() => upgrade('/', { at: 'http://router.example' }))
    expect(answer).toMatchObject({ status: 403, code: 'forbidden' })
  })

  it('[EC 1.2] credentials in the query are refused', async () => {
    const answer = await refusedAtTheDoor(() => upgrade(`/g/${gatewayId}?token=x`))
    expect(answer).toMatchObject({ status: 400, code: 'credentials_in_query' })
  })
})

describe('an unencrypted connection', () => {
  const from = (address: string) => ({ 'CF-Connecting-IP': address })
  const DEPLOYED = { LOCAL_DEV: undefined }
  const HTTP = 'http://router.example'

  eachCase(
    ['127.0.0.1', '192.168.1.20', '::ffff:10.0.0.7', '100.92.13.44', 'fe80::1', 'fd00::7'],
    (address) => `[D42] from ${address} is served`,
    async (address) => {
      ;(await dial('/', { headers: from(address), vars: DEPLOYED, at: HTTP })).hangUp()
    },
  )

  eachCase(
    ['8.8.8.8', '2606:4700::1', '100.128.0.1', 'not-an-address'],
    (address) => `[D42] from ${address} is refused, with a sentence that says what to use`,
    async (address) => {
      const options = { headers: from(address), vars: DEPLOYED, at: HTTP }
      const ask = () => refusedAtTheDoor(() => upgrade('/', options))
      expect(await ask()).toMatchObject({
        status: 403,
        code: 'forbidden',
        message: expect.stringContaining('wss://'),
      })
      expect(await tripsOf(ask)).toBe(0)
      // The same, encrypted.
      ;(await dial('/', { ...options, at: 'https://router.example' })).hangUp()
    },
  )

  it('[D42] whose address nobody states counts as public, except on a local router', async () => {
    expect((await upgrade('/', { vars: DEPLOYED, at: HTTP })).status).toBe(403)
    ;(await dial('/', { vars: DEPLOYED, at: 'https://router.example' })).hangUp()
    ;(await dial('/')).hangUp()
  })

  it('[U34] a foreign origin is told that first', async () => {
    const headers = { ...from('8.8.8.8'), Origin: 'https://evil.example' }
    const answer = await refused(await upgrade('/', { headers, vars: DEPLOYED, at: HTTP }))
    expect(answer.message).not.toContain('wss://')
  })
})

describe('what the gateway is told of a socket', () => {
  it('[D42] its peer, and where this router is reached', async () => {
    const routes = [{ address: '100.92.13.44:8787', kind: 'overlay', provider: 'netbird' }]
    const vars = { LAN_ROUTES: JSON.stringify(routes), HOST_NAME: 'Ada’s 🚂' }
    const headers = { 'CF-Connecting-IP': '::ffff:192.168.1.20' }
    expect(await originOf('/', { vars, headers })).toEqual({
      userId: first.userId,
      gatewayId,
      address: '192.168.1.20',
      routes,
      hostName: 'Ada’s 🚂',
      notedRevocations: [],
      deploymentProviders: true,
    })
    expect(await originOf('/')).toMatchObject({ address: '127.0.0.1', routes: [], hostName: null })
  })

  it('[D41] a client cannot say it in the Worker’s place', async () => {
    const forged = JSON.stringify({ userId: 'other', gatewayId: 'x', address: '10.0.0.1', routes: [] })
    const told = await originOf(`/g/${gatewayId}`, { headers: { [SOCKET_ORIGIN_HEADER]: forged } })
    expect(told).toMatchObject({ userId: first.userId, gatewayId, address: '127.0.0.1' })
  })

  it('[U32] the revocations that were noted for it, of this account alone, in the same trip', async () => {
    const second = await makeClient()
    const other = (await openPairing(second)).gateway_id
    const one = { deviceId: '00000000000000a1', reason: 'revoked' as const }
    const two = { deviceId: '00000000000000a2', reason: 'token_replayed' as const }
    for (const note of [one, two])
      await noteRevocation(db(), { userId: second.userId, nowMs: Date.now(), ...note })
    expect((await originOf(`/g/${gatewayId}`)).notedRevocations).toEqual([])
    const spy = vi.spyOn(Gateway.prototype, 'fetch')
    expect(await tripsOf(async () => (await upgrade(`/g/${other}`)).webSocket?.accept())).toBeGreaterThan(0)
    const header = spy.mock.calls[0]?.[0].headers.get(SOCKET_ORIGIN_HEADER) ?? ''
    spy.mockRestore()
    expect(JSON.parse(header).notedRevocations).toEqual([one, two])
  })
})

it('[D04] a gateway has one instance, also after its object has died', async () => {
  const before = (await pairDevice(first)).frame.instance_id
  expect(before).toMatch(/^[0-9a-f]{32}$/)
  const gateway = env.GATEWAY.getByName(first.userId)
  await runInDurableObject(gateway, (_object, state) => state.abort('crashed by the test')).catch(() => {})
  expect((await pairDevice(first)).frame.instance_id).toBe(before)
  const other = await makeClient()
  expect((await pairDevice(other)).frame.instance_id).not.toBe(before)
})

describe('an account that ends', () => {
  it('[D41] its gateway is known no more, and its sockets are closed', async () => {
    const other = await makeClient()
    const { socket, frame } = await pairDevice(other)
    const path = `/g/${frame.gateway_id}`
    await other.send('DELETE', '/api/v1/auth/me', undefined, { 'X-Smista-Api-Key': other.key })
    expect((await refused(await upgrade(path))).status).toBe(404)
    expect(await socket.next()).toMatchObject({ type: 'error', code: 'revoked' })
    await socket.untilClosed()
    expect(await gatewayOf(other.userId)).toBeNull()
  })

  // The last test of this file: nothing of the first account answers after it.
  it('[D42] `/` passes to nobody when the first account goes', async () => {
    await makeClient()
    await markUserDeleted(db(), first.userId, Date.now())
    expect(await findFirstGateway(db())).toBeNull()
    expect(await refusedAtTheDoor(() => upgrade('/'))).toMatchObject({ status: 404, code: 'invalid_request' })
  })
})
