import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import {
  AcceptConnectRequestResponse,
  ListConnectRequestsResponse,
  ListDevicesResponse,
} from '../../src/protocol/execution/devices.ts'
import {
  CHALLENGE_TTL_MS,
  CONNECT_DENIAL_MS,
  CONNECT_REQUEST_TTL_MS,
  PAIRING_FAILURE_WINDOW_MS,
} from '../../src/protocol/remote/limits.ts'
import { setClock, stopClock } from '../support/workers/clock.ts'
import {
  comeBack,
  Device,
  ended,
  type Frame,
  type Opened,
  openPairing,
  pairDevice,
  pairFrame,
} from '../support/workers/device.ts'
import { hibernate, insideGateway, restart, ringGatewayAlarm } from '../support/workers/gateway-object.ts'
import { type Client, makeClient, parsed, refused } from '../support/workers/router.ts'

let client: Client
let opened: Opened
let path: string
beforeEach(async () => {
  vi.spyOn(console, 'warn').mockImplementation(() => {})
  client = await makeClient()
  opened = await openPairing(client)
  path = `/g/${opened.gateway_id}`
})
afterEach(() => {
  vi.useRealTimers()
})

const FAILED = { type: 'error', code: 'pairing_failed' }
const INSTALL_ID = '6F9619FF-8B86-D011-B42D-00C04FC964FF'

/** One attempt on a connection of its own; the frame that answers it. */
async function attempt(secret: string, more: Frame = {}, address?: string): Promise<Frame> {
  const device = await Device.dial(path, address === undefined ? {} : { address })
  return device.ask(pairFrame(secret, more))
}
const wrong = (address?: string) => attempt('0000-0000', {}, address)
const devices = async () =>
  (await parsed(await client.send('GET', '/api/v1/devices'), ListDevicesResponse)).devices

describe('a pairing challenge', () => {
  it.each([
    ['the code', () => opened.code],
    ['the code without its dash', () => opened.code.replace('-', '')],
    ['the code with spaces', () => ` ${opened.code.replace('-', ' ')} `],
    ['the credential', () => opened.credential],
  ])('[RF 4] is redeemed by %s, once', async (what, secret) => {
    const method = what === 'the credential' ? 'credential' : 'code'
    expect(await attempt(secret(), { method })).toMatchObject({ type: 'paired' })
    expect(await attempt(opened.code)).toMatchObject(FAILED)
    expect(await attempt(opened.credential)).toMatchObject(FAILED)
  })

  it('[RF 4] a key is valid for its own method only', async () => {
    expect(await attempt(opened.code, { method: 'credential' })).toMatchObject(FAILED)
    expect(await attempt(opened.credential, { method: 'code' })).toMatchObject(FAILED)
    expect(await attempt(opened.credential)).toMatchObject({ type: 'paired' })
  })

  it('[RF 4] four sockets that race with one credential give one device', async () => {
    const answers = await Promise.all([1, 2, 3, 4].map(() => attempt(opened.credential)))
    expect(answers.map(({ type }) => type).sort()).toEqual(['error', 'error', 'error', 'paired'])
    expect(await devices()).toHaveLength(1)
  })

  it.each([
    ['sleeps', hibernate],
    ['restarts', restart],
  ])('[U31] holds while the gateway %s', async (_what, disturb) => {
    await disturb(client.userId)
    expect(await attempt(opened.code)).toMatchObject({ type: 'paired' })
  })

  it('[RF 4] is closed at exactly two minutes', async () => {
    setClock(Date.parse(opened.expires_at))
    expect(await attempt(opened.code)).toMatchObject(FAILED)
    expect(CHALLENGE_TTL_MS).toBe(120_000)
  })

  it('[RF 4] ends with the fifth wrong attempt, whatever comes then', async () => {
    for (let n = 0; n < 5; n++) expect(await wrong()).toMatchObject(FAILED)
    expect(await attempt(opened.code)).toMatchObject(FAILED)
  })

  it('[RF 4] a new one replaces it', async () => {
    const second = await openPairing(client)
    expect(await attempt(opened.code)).toMatchObject(FAILED)
    expect(await attempt(second.code)).toMatchObject({ type: 'paired' })
  })

  it('[RF 4] ten failures lock every address, the right code too, until the oldest is five minutes old', async () => {
    const startMs = stopClock()
    opened = await openPairing(client)
    for (let n = 0; n < 5; n++) await wrong(`198.51.100.${n}`)
    await openPairing(client)
    for (let n = 5; n < 10; n++) await wrong(`198.51.100.${n}`)
    const third = await openPairing(client)
    const locked = await attempt(third.code, {}, '192.0.2.200')
    expect(locked).toMatchObject({ type: 'error', code: 'rate_limited', retry_after_secs: 300 })
    await hibernate(client.userId)
    setClock(startMs + PAIRING_FAILURE_WINDOW_MS - 1)
    expect(await attempt(third.code)).toMatchObject({ code: 'rate_limited', retry_after_secs: 1 })
    setClock(startMs + PAIRING_FAILURE_WINDOW_MS)
    expect(await attempt((await openPairing(client)).code)).toMatchObject({ type: 'paired' })
  })

  it('[D41] strangers without an open challenge lock their own address only', async () => {
    await attempt(opened.code)
    for (let n = 0; n < 10; n++) expect(await wrong('198.51.100.1')).toMatchObject(FAILED)
    const again = await openPairing(client)
    expect(await attempt(again.code, {}, '198.51.100.1')).toMatchObject({ code: 'rate_limited' })
    expect(await attempt(again.code, {}, '198.51.100.2')).toMatchObject({ type: 'paired' })
  })

  it('[RF 3] a device that cannot be stored is told `internal`, leaves nothing, and the code is used up', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const device = await Device.dial(path)
    await insideGateway(client.userId, (_sql, state) => {
      const exec = state.storage.sql.exec.bind(state.storage.sql)
      vi.spyOn(state.storage.sql, 'exec').mockImplementation((query, ...values) => {
        if (/INSERT INTO devices/.test(query)) throw new Error('disk I/O error')
        return exec(query, ...values) as never
      })
    })
    expect(await device.ask(pairFrame(opened.code))).toMatchObject({ type: 'error', code: 'internal' })
    await restart(client.userId)
    expect(await devices()).toEqual([])
    expect(await attempt(opened.code)).toMatchObject(FAILED)
  })

  it('[RF 3] a failure of the gateway itself ends the connection with `shutting_down`', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const device = await Device.dial(path)
    await insideGateway(client.userId, (_sql, state) => {
      const exec = state.storage.sql.exec.bind(state.storage.sql)
      vi.spyOn(state.storage.sql, 'exec').mockImplementation((query, ...values) => {
        if (/FROM challenge/.test(query)) throw new Error('disk I/O error')
        return exec(query, ...values) as never
      })
    })
    device.send(pairFrame(opened.code))
    expect(await ended(device)).toMatchObject({ type: 'error', code: 'shutting_down' })
  })
})

describe('the device that pairs', () => {
  it('[RF 5] its name is bounded and cleaned, and its labels are for the owner', async () => {
    const paired = await attempt(opened.code, {
      device_name: `  Ada’s\u0007 \n  phone ${'x'.repeat(100)}`,
      device_kind: 'desktop',
      platform: 'macos',
    })
    expect(paired.device_name).toBe(`Ada’s phone ${'x'.repeat(52)}`)
    expect(await devices()).toMatchObject([
      { device_name: paired.device_name, device_kind: 'desktop', platform: 'macos', online: true },
    ])
  })

  it('[remote protocol, Handshake frames] labels of a wrong form are ignored', async () => {
    await attempt(opened.code, { device_kind: 'toaster', platform: 'BeOS!', install_id: 'short', host_id: 7 })
    const [device] = await devices()
    expect(device).toMatchObject({ device_kind: 'phone' })
    expect(device).not.toHaveProperty('platform')
  })

  it('[U32] the same install id replaces the device: old tokens, old connection, new id', async () => {
    const old = await pairDevice(client, { install_id: INSTALL_ID })
    const fresh = await pairDevice(client, { install_id: INSTALL_ID })
    expect(await ended(old.device)).toMatchObject({ code: 'revoked' })
    expect((await comeBack(old, { token: old.paired.token })).answer).toMatchObject({ code: 'unauthorized' })
    expect((await devices()).map(({ device_id }) => device_id)).toEqual([fresh.id])
  })

  it('[RF 5] without an install id each pairing adds a device', async () => {
    const one = await pairDevice(client)
    const two = await pairDevice(client)
    expect((await devices()).map(({ device_id }) => device_id).sort()).toEqual([one.id, two.id].sort())
  })

  it('[D36] a thirty-third device is `busy`, except in place of one of the thirty-two', async () => {
    await insideGateway(client.userId, (sql) => {
      for (let n = 0; n < 32; n++)
        sql.rows(
          `INSERT INTO devices (device_id, name, kind, paired_at, token_digest, expires_at) VALUES (?, 'x', 'phone', 0, ?, ?)`,
          n.toString(16).padStart(16, '0'),
          'd'.repeat(64),
          Date.now() + 86_400_000,
        )
    })
    expect(await attempt(opened.code)).toMatchObject({ type: 'error', code: 'busy' })
    // A pairing that has run out makes room.
    await insideGateway(client.userId, (sql) =>
      sql.rows('UPDATE devices SET expires_at = 1 WHERE device_id = ?', '0'.repeat(16)),
    )
    const known = await pairDevice(client, { install_id: INSTALL_ID })
    await pairDevice(client, { install_id: INSTALL_ID })
    expect(await ended(known.device)).toMatchObject({ code: 'revoked' })
    expect(await devices()).toHaveLength(32)
  })
})

describe('a connection request', () => {
  const request = (more: Frame = {}): Frame => ({
    type: 'connect_request',
    protocol_version: 1,
    device_name: 'Ada’s phone',
    platform: 'ios',
    ...more,
  })
  const listen = () => client.send('POST', '/api/v1/connect-requests/listen')
  const requests = async () =>
    (await parsed(await client.send('GET', '/api/v1/connect-requests'), ListConnectRequestsResponse)).requests
  const accept = async (id: unknown) =>
    parsed(await client.send('POST', `/api/v1/connect-requests/${id}/accept`), AcceptConnectRequestResponse)
  const deny = (id: unknown) => client.send('POST', `/api/v1/connect-requests/${id}/deny`)
  /** A device that waits for the owner. */
  async function asking(more: Frame = {}, address?: string) {
    const device = await Device.dial(path, address === undefined ? {} : { address })
    const pending = await device.ask(request(more))
    return { device, pending, id: pending.request_id }
  }

  beforeEach(async () => {
    await listen()
  })

  it.each([
    ['in one go', async () => {}],
    ['with the gateway asleep between any two frames', () => hibernate(client.userId)],
  ])('[remote protocol, Connection requests] is accepted and paired, %s', async (_what, between) => {
    const { device, pending, id } = await asking({ device_kind: 'desktop', host_id: INSTALL_ID })
    expect(pending).toEqual({ type: 'connect_pending', request_id: id, expires_in_secs: 120 })
    await between()
    expect(await requests()).toMatchObject([
      { request_id: id, device_name: 'Ada’s phone', device_kind: 'desktop', platform: 'ios' },
    ])
    const { code } = await accept(id)
    expect(await device.next()).toEqual({
      type: 'connect_approved',
      request_id: id,
      code_length: 8,
      expires_in_secs: 120,
    })
    expect(await requests()).toEqual([])
    await between()
    const paired = await device.ask(pairFrame(code, { device_kind: 'cli', platform: 'linux' }))
    expect(paired).toMatchObject({ type: 'paired' })
    // What the owner accepted counts, whatever the pair frame says.
    expect(await devices()).toMatchObject([{ device_kind: 'desktop', platform: 'ios' }])
    expect(await device.request({ type: 'list_sessions' })).toMatchObject({ result: { type: 'sessions' } })
  })

  it('[D41] is an unknown frame while the owner has not asked for requests, and no capability is told', async () => {
    const other = await makeClient()
    const theirs = await pairDevice(other)
    const device = await Device.dial(theirs.path)
    device.send(request())
    expect(await ended(device)).toMatchObject({ code: 'invalid_frame' })
    const Capabilities = z.object({ result: z.object({ capabilities: z.array(z.string()) }) })
    const told = async (of: Device) =>
      Capabilities.parse(await of.request({ type: 'list_sessions' })).result.capabilities
    expect(await told(theirs.device)).not.toContain('connect_requests')
    const own = await pairDevice(client)
    expect(await told(own.device)).toContain('connect_requests')
  })

  it('[RF 7] a denial closes it, and that address waits thirty seconds', async () => {
    const nowMs = stopClock()
    await listen()
    const { device, id } = await asking()
    await deny(id)
    expect(await ended(device)).toEqual({ type: 'connect_denied' })
    const again = await Device.dial(path)
    again.send(request())
    expect(await ended(again)).toMatchObject({ code: 'connect_rate_limited', retry_after_secs: 30 })
    setClock(nowMs + CONNECT_DENIAL_MS)
    expect((await asking()).pending).toMatchObject({ type: 'connect_pending' })
  })

  it('[RF 7] four are held, one per address, and the same app takes the place of its own', async () => {
    const first = await asking({ install_id: INSTALL_ID }, '192.0.2.1')
    for (let n = 2; n <= 4; n++) await asking({}, `192.0.2.${n}`)
    expect((await asking({}, '192.0.2.5')).pending).toMatchObject({ code: 'connect_busy' })
    expect((await asking({}, '192.0.2.1')).pending).toMatchObject({ code: 'connect_busy' })
    const again = await asking({ install_id: INSTALL_ID }, '192.0.2.1')
    expect(again.pending).toMatchObject({ type: 'connect_pending' })
    expect(await ended(first.device)).toEqual({ type: 'connect_expired' })
  })

  it.each(['pending', 'approved'])('[RF 7] a %s one expires after two minutes', async (state) => {
    const nowMs = stopClock()
    await listen()
    const { device, id } = await asking()
    if (state === 'approved') {
      await accept(id)
      await device.next()
    }
    setClock(nowMs + CONNECT_REQUEST_TTL_MS)
    await ringGatewayAlarm(client.userId)
    expect(await ended(device)).toEqual({ type: 'connect_expired' })
  })

  it('[RF 7] any frame while it is pending, and any but `pair` after, ends it', async () => {
    const early = await asking({}, '192.0.2.1')
    early.device.send(pairFrame('0000-0000'))
    expect(await ended(early.device)).toMatchObject({ code: 'invalid_frame' })
    const late = await asking({}, '192.0.2.2')
    await accept(late.id)
    await late.device.next()
    late.device.send(request())
    expect(await ended(late.device)).toMatchObject({ code: 'invalid_frame' })
    expect(await requests()).toEqual([])
  })

  it('[RF 7] a wrong code ends the request, and counts for everyone', async () => {
    const { device, id } = await asking()
    const { code } = await accept(id)
    await device.next()
    device.send(pairFrame('0000-0000'))
    expect(await ended(device)).toMatchObject(FAILED)
    expect(await attempt(code)).toMatchObject(FAILED)
  })

  it('[RF 7] its code is for its socket alone, and that socket redeems no other challenge', async () => {
    const { device, id } = await asking()
    const { code } = await accept(id)
    await device.next()
    expect(await attempt(code)).toMatchObject(FAILED)
    expect(await device.ask(pairFrame(code))).toMatchObject({ type: 'paired' })
  })

  it('[RF 7] accepted twice at once, it gets one code, and that is the one that counts', async () => {
    const { device, id } = await asking()
    const both = [1, 2].map(() => client.send('POST', `/api/v1/connect-requests/${id}/accept`))
    const answers = await Promise.all(both)
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 404])
    const accepted = answers.find(({ status }) => status === 200)
    const { code } = AcceptConnectRequestResponse.parse(await accepted?.json())
    expect(await device.next()).toMatchObject({ type: 'connect_approved' })
    expect(await device.ask(pairFrame(code))).toMatchObject({ type: 'paired' })
  })

  it.each(['a pairing', 'another request'])('[RF 7] ends when the owner opens %s', async (what) => {
    const { device, id } = await asking({}, '192.0.2.1')
    await accept(id)
    await device.next()
    if (what === 'a pairing') await openPairing(client)
    else await accept((await asking({}, '192.0.2.2')).id)
    expect(await ended(device)).toEqual({ type: 'connect_expired' })
  })

  it('[RF 7] a closed socket withdraws it and destroys its code', async () => {
    const { device, id } = await asking()
    device.close()
    await vi.waitFor(async () => expect(await requests()).toEqual([]))
    expect((await refused(await client.send('POST', `/api/v1/connect-requests/${id}/accept`))).status).toBe(
      404,
    )
  })
})
