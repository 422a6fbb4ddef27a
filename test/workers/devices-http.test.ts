import { env } from 'cloudflare:workers'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { Gateway } from '../../src/gateway/gateway.ts'
import {
  AcceptConnectRequestResponse,
  DenyConnectRequestResponse,
  ListConnectRequestsResponse,
  ListDevicesResponse,
  ListenResponse,
  OpenPairingResponse,
  RenameDeviceResponse,
  RevokeDeviceResponse,
} from '../../src/protocol/execution/devices.ts'
import { openDatabase } from '../../src/storage/d1/database.ts'
import { noteRevocation } from '../../src/storage/d1/gateways.ts'
import { failStatements } from '../support/workers/d1.ts'
import { FAULT_TEXT } from '../support/workers/d1-faults.ts'
import { eachCase } from '../support/workers/each-case.ts'
import { askToConnect, dial, openPairing, pairDevice } from '../support/workers/gateway-device.ts'
import { until } from '../support/workers/hold.ts'
import {
  type Client,
  type Headers,
  makeClient,
  parsed,
  refused,
  sendWith,
} from '../support/workers/router.ts'

let owner: Client
beforeEach(async () => {
  vi.restoreAllMocks()
  console.info = () => {}
  owner = await makeClient()
})

const DEVICES = '/api/v1/devices'
const REQUESTS = '/api/v1/connect-requests'
const bearer = (who = owner): Headers => ({ Authorization: `Bearer ${who.token}` })
const list = async (who = owner) =>
  (await parsed(await who.send('GET', DEVICES), ListDevicesResponse)).devices
const rename = (id: string, name: unknown, who = owner) => who.send('PUT', `${DEVICES}/${id}`, { name })
const revoke = (id: string, who = owner) => who.send('DELETE', `${DEVICES}/${id}`)
const isRevoked = async (response: Response) => (await parsed(response, RevokeDeviceResponse)).revoked
const waiting = async (who = owner) =>
  (await parsed(await who.send('GET', REQUESTS), ListConnectRequestsResponse)).requests
const listen = async () => parsed(await owner.send('POST', `${REQUESTS}/listen`), ListenResponse)
const notes = async (who = owner) =>
  (
    await env.DB.prepare('SELECT device_id, reason FROM device_revocations WHERE user_id = ?')
      .bind(who.userId)
      .all()
  ).results
const silence = () => vi.spyOn(console, 'error').mockImplementation(() => {})

/** The gateway fails to store a revocation, as often as it is asked to. */
const breakGateway = () =>
  vi.spyOn(Gateway.prototype, 'revokeDevice').mockRejectedValue(new Error('the storage is full'))

describe('pairing', () => {
  it('[U31] gives a code, a credential and what a QR code carries, for two minutes', async () => {
    const before = Date.now()
    const { only_by_url: _, ...opened } = await openPairing(owner)
    expect(opened).toEqual({
      code: expect.stringMatching(/^\d{4}-\d{4}$/),
      credential: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      gateway_id: expect.stringMatching(/^[0-9a-f]{32}$/),
      qr: {
        protocol_version: 1,
        address: 'localhost:80',
        gateway_id: opened.gateway_id,
        credential: opened.credential,
        url: `ws://localhost/g/${opened.gateway_id}`,
      },
      expires_at: expect.any(String),
    })
    expect(Date.parse(opened.expires_at) - before).toBeGreaterThanOrEqual(120_000)
    expect(Date.parse(opened.expires_at) - Date.now()).toBeLessThanOrEqual(120_000)
    const again = await openPairing(owner)
    expect(again.gateway_id).toBe(opened.gateway_id)
    expect(again.credential).not.toBe(opened.credential)
  })

  it('[D42] of any account but the first says that the address alone leads elsewhere', async () => {
    const stranger = await makeClient()
    expect((await openPairing(stranger)).only_by_url).toBe(true)
    await env.DB.prepare('UPDATE users SET created_at = 0 WHERE id = ?').bind(stranger.userId).run()
    expect(await openPairing(stranger)).not.toHaveProperty('only_by_url')
    await env.DB.prepare('UPDATE users SET created_at = ? WHERE id = ?')
      .bind(Date.now(), stranger.userId)
      .run()
  })

  const asked = async (vars: Record<string, string | undefined>, url: string) => {
    const response = await sendWith(vars, 'POST', url, undefined, bearer())
    return (await parsed(response, OpenPairingResponse, 201)).qr
  }
  const DEPLOYED = { LOCAL_DEV: undefined, BOOTSTRAP_TOKEN: 'x' }

  eachCase(
    [
      { at: 'https://r.example', address: 'r.example:443', url: 'wss://r.example' },
      { at: 'https://r.example:8443', address: 'r.example:8443', url: 'wss://r.example:8443' },
      { at: 'http://r.example', address: 'r.example:80', url: 'ws://r.example' },
      { at: 'http://127.0.0.1:8787', address: '127.0.0.1:8787', url: 'ws://127.0.0.1:8787' },
      { at: 'http://[::1]:8787', address: '[::1]:8787', url: 'ws://[::1]:8787' },
    ],
    ({ at }) => `[D42] asked at ${at}, a device dials there`,
    async ({ at, address, url }) => {
      const qr = await asked(DEPLOYED, `${at}/api/v1/pairing`)
      expect(qr).toMatchObject({ address, url: `${url}/g/${qr.gateway_id}` })
      expect(qr).not.toHaveProperty('alternates')
      expect(qr).not.toHaveProperty('host_name')
    },
  )

  it('[D42] on a local network a device dials the addresses of that, under the name of the machine', async () => {
    const addresses = [
      '100.92.13.44:8787',
      '192.168.1.20:8787',
      '[fd00::20]:8787',
      'studio.local:8787',
      '10.0.0.1:1',
    ]
    const routes = [...addresses, '10.0.0.2:2'].map((address) => ({ address, kind: 'lan' }))
    const vars = { LAN_ROUTES: JSON.stringify(routes), HOST_NAME: 'A studio with a very long name' }
    const qr = await asked(vars, '/api/v1/pairing')
    expect(qr).toEqual({
      protocol_version: 1,
      address: addresses[0],
      gateway_id: qr.gateway_id,
      credential: qr.credential,
      host_name: 'A studio with a very lon',
      alternates: addresses.slice(1),
      url: `ws://${addresses[0]}/g/${qr.gateway_id}`,
    })
  })

  it('[D32] an account that an older release made has a gateway from then on', async () => {
    await env.DB.prepare('DELETE FROM gateways WHERE user_id = ?').bind(owner.userId).run()
    const { gateway_id } = await openPairing(owner)
    expect((await openPairing(owner)).gateway_id).toBe(gateway_id)
    expect((await pairDevice(owner)).frame).toMatchObject({ gateway_id })
  })
})

describe('devices', () => {
  it('[U32] are listed with what they said of themselves, the newest first', async () => {
    expect(await list()).toEqual([])
    const old = await pairDevice(owner, { device_name: '  Ada’s\n phone ' })
    const rotating = await pairDevice(owner, {
      device_name: 'PC',
      device_kind: 'desktop',
      platform: 'windows',
      capabilities: ['token_rotation'],
    })
    expect(await list()).toEqual([
      {
        device_id: rotating.deviceId,
        device_name: 'PC',
        device_kind: 'desktop',
        platform: 'windows',
        paired_at: expect.any(String),
        last_seen_at: expect.any(String),
        online: true,
      },
      {
        device_id: old.deviceId,
        device_name: expect.stringMatching(/^Ada’s ?phone$/),
        device_kind: 'phone',
        paired_at: expect.any(String),
        last_seen_at: expect.any(String),
        online: true,
        expires_at: expect.any(String),
      },
    ])
    old.socket.hangUp()
    await until(async () => (await list()).some(({ online }) => !online))
    expect((await list()).map(({ online }) => online)).toEqual([true, false])
  })

  it('[U34] of another account are not seen, named or revoked', async () => {
    const { deviceId } = await pairDevice(owner)
    const other = await makeClient()
    expect(await list(other)).toEqual([])
    expect(await refused(await rename(deviceId, 'mine', other))).toMatchObject({ status: 404 })
    expect(await refused(await revoke(deviceId, other))).toMatchObject({ status: 404 })
    expect((await list()).map(({ device_name }) => device_name)).toEqual(['A phone'])
  })

  it('[U32] are renamed, to the name as it is stored', async () => {
    const { deviceId } = await pairDevice(owner)
    const renamed = await parsed(await rename(deviceId, ` ${'k'.repeat(200)} `), RenameDeviceResponse)
    expect(renamed.device).toMatchObject({ device_id: deviceId, device_name: 'k'.repeat(64), online: true })
    expect(await list()).toEqual([renamed.device])
    expect((await parsed(await rename(deviceId, 'k'), RenameDeviceResponse)).device.device_name).toBe('k')
  })

  eachCase(
    ['', 'k'.repeat(257), 7, null, undefined],
    (name) => `[EC 1.4] ${JSON.stringify(name)?.slice(0, 20)} is no name for a device`,
    async (name) => {
      const { deviceId } = await pairDevice(owner)
      expect(await refused(await rename(deviceId, name))).toMatchObject({
        status: 422,
        code: 'invalid_request',
        details: { issues: [{ path: 'name' }] },
      })
      expect((await list()).map(({ device_name }) => device_name)).toEqual(['A phone'])
    },
  )

  it('[D49] an id that is none is 400, an unknown one 404', async () => {
    for (const [id, status] of [
      ['x', 400],
      ['0011223344556677', 404],
    ] as const) {
      const code = 'invalid_request'
      expect(await refused(await rename(id, 'n'))).toMatchObject({ status, code })
      expect(await refused(await revoke(id))).toMatchObject({ status, code })
      expect(await refused(await owner.send('POST', `${REQUESTS}/${id}/accept`))).toMatchObject({
        status,
        code,
      })
      expect(await refused(await owner.send('POST', `${REQUESTS}/${id}/deny`))).toMatchObject({
        status,
        code,
      })
    }
  })

  it('[U32] that are revoked lose their connections at once, cannot come back, and can pair again', async () => {
    const { socket, deviceId, frame } = await pairDevice(owner)
    const other = await pairDevice(owner)
    expect(await isRevoked(await revoke(deviceId.toUpperCase()))).toBe(true)
    expect(await socket.next()).toMatchObject({ type: 'error', code: 'revoked' })
    await socket.untilClosed()
    const back = await dial(`/g/${frame.gateway_id}`)
    const authenticate = { type: 'authenticate', device_id: deviceId, token: frame.token }
    expect(await back.ask(authenticate)).toMatchObject({ type: 'error', code: 'unauthorized' })
    expect((await list()).map(({ device_id }) => device_id)).toEqual([other.deviceId])
    expect(await refused(await revoke(deviceId))).toMatchObject({ status: 404, code: 'invalid_request' })
    expect((await pairDevice(owner)).deviceId).not.toBe(deviceId)
    expect(await notes()).toEqual([])
  })
})

describe('a revocation that the gateway could not store', () => {
  it('[U32] is noted, holds at once, and is applied before the next socket is served', async () => {
    const { deviceId, frame } = await pairDevice(owner)
    silence()
    const broken = breakGateway()
    expect(await isRevoked(await revoke(deviceId))).toBe(true)
    expect(await notes()).toEqual([{ device_id: deviceId, reason: 'revoked' }])
    expect(await list()).toEqual([])
    expect(await refused(await rename(deviceId, 'n'))).toMatchObject({ status: 404 })
    broken.mockRestore()
    const back = await dial(`/g/${frame.gateway_id}`)
    const authenticate = { type: 'authenticate', device_id: deviceId, token: frame.token }
    expect(await back.ask(authenticate)).toMatchObject({ type: 'error', code: 'unauthorized' })
    await until(async () => (await notes()).length === 0)
    expect(await list()).toEqual([])
  })

  it('[U32] may be repeated, and its note goes with the one that is stored', async () => {
    const { deviceId } = await pairDevice(owner)
    silence()
    const broken = breakGateway()
    expect(await isRevoked(await revoke(deviceId))).toBe(true)
    expect(await isRevoked(await revoke(deviceId))).toBe(true)
    expect(await notes()).toHaveLength(1)
    broken.mockRestore()
    expect(await isRevoked(await revoke(deviceId))).toBe(true)
    expect(await notes()).toEqual([])
    expect(await refused(await revoke(deviceId))).toMatchObject({ status: 404 })
  })

  it('[U32] leaves the list when the device had gone meanwhile', async () => {
    const { deviceId } = await pairDevice(owner)
    await noteRevocation(openDatabase(env.DB), {
      userId: owner.userId,
      deviceId: '00000000000000b1',
      reason: 'revoked',
      nowMs: Date.now(),
    })
    expect(await isRevoked(await revoke('00000000000000b1'))).toBe(true)
    expect(await notes()).toEqual([])
    expect((await list()).map(({ device_id }) => device_id)).toEqual([deviceId])
  })

  it('[EC 1] and that could not be noted either says what holds', async () => {
    const { deviceId } = await pairDevice(owner)
    silence()
    breakGateway()
    failStatements(/insert into "device_revocations"/i)
    const answer = await refused(await revoke(deviceId))
    expect(answer).toMatchObject({ status: 502, code: 'storage_error' })
    expect(answer.message).toContain('may be able to come back')
    expect(JSON.stringify(answer)).not.toContain(FAULT_TEXT)
    vi.restoreAllMocks()
    expect(await notes()).toEqual([])
    expect(await isRevoked(await revoke(deviceId))).toBe(true)
  })

  it('[U32] a pairing that ended by a replay is shown as ended, wherever that is noted', async () => {
    const { deviceId } = await pairDevice(owner)
    await noteRevocation(openDatabase(env.DB), {
      userId: owner.userId,
      deviceId,
      reason: 'token_replayed',
      nowMs: Date.now(),
    })
    expect(await list()).toMatchObject([{ device_id: deviceId, revoked_reason: 'token_replayed' }])
    expect(await isRevoked(await revoke(deviceId))).toBe(true)
    expect(await list()).toEqual([])
    expect(await notes()).toEqual([])
  })
})

describe('connection requests', () => {
  it('[D41] are taken while the owner listens, for ten minutes', async () => {
    const { gateway_id } = await openPairing(owner)
    await expect(askToConnect(gateway_id)).rejects.toThrow('invalid_frame')
    const before = Date.now()
    const untilMs = Date.parse((await listen()).expires_at)
    expect(untilMs - before).toBeGreaterThanOrEqual(600_000)
    expect(untilMs - Date.now()).toBeLessThanOrEqual(600_000)
    expect(await waiting()).toEqual([])
    const { requestId } = await askToConnect(gateway_id, { device_name: 'Ada’s phone', platform: 'ios' })
    const headers = { 'CF-Connecting-IP': '10.0.0.9' }
    const desktop = { device_kind: 'desktop', device_name: 'PC' }
    const second = await askToConnect(gateway_id, desktop, { headers })
    expect(await waiting()).toEqual([
      {
        request_id: requestId,
        device_name: 'Ada’s phone',
        device_kind: 'phone',
        platform: 'ios',
        expires_at: expect.any(String),
      },
      {
        request_id: second.requestId,
        device_name: 'PC',
        device_kind: 'desktop',
        platform: 'unknown',
        expires_at: expect.any(String),
      },
    ])
    expect(await waiting(await makeClient())).toEqual([])
  })

  it('[U31] one that is accepted pairs with the code that its owner is shown', async () => {
    const { gateway_id } = await openPairing(owner)
    await listen()
    const { socket, requestId } = await askToConnect(gateway_id)
    const accept = await owner.send('POST', `${REQUESTS}/${requestId}/accept`)
    const { code } = await parsed(accept, AcceptConnectRequestResponse)
    expect(code).toMatch(/^\d{4}-\d{4}$/)
    expect(await socket.next()).toMatchObject({ type: 'connect_approved', request_id: requestId })
    const paired = await socket.ask({ type: 'pair', method: 'code', secret: code, device_name: 'A phone' })
    expect(paired).toMatchObject({ type: 'paired', gateway_id })
    expect((await list()).map(({ device_id }) => device_id)).toEqual([paired.device_id])
    expect(await waiting()).toEqual([])
  })

  it('[D41] one that is denied is told so and closed', async () => {
    const { gateway_id } = await openPairing(owner)
    await listen()
    const { socket, requestId } = await askToConnect(gateway_id)
    const stranger = await makeClient()
    expect(await refused(await stranger.send('POST', `${REQUESTS}/${requestId}/deny`))).toMatchObject({
      status: 404,
    })
    const deny = await owner.send('POST', `${REQUESTS}/${requestId}/deny`)
    expect(await parsed(deny, DenyConnectRequestResponse)).toEqual({ denied: true })
    expect(await socket.next()).toEqual({ type: 'connect_denied' })
    await socket.untilClosed()
    expect(await waiting()).toEqual([])
    expect((await refused(await owner.send('POST', `${REQUESTS}/${requestId}/accept`))).status).toBe(404)
  })
})
