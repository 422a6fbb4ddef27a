import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { RemoteDevice } from '../support/remote-device/device.ts'
import { verifyDevices } from '../support/remote-device/device.ts'
import { eventually } from '../support/remote-device/eventually.ts'
import { Home, type PairedDevice, ROTATING } from '../support/remote-device/gateway-home.ts'
import { type ServedRouter, serveInHarness } from '../support/remote-device/served-router.ts'
import type { Fields } from '../support/remote-device/shapes.ts'

/** The limits of D36 and D41 as devices meet them, and what only time brings. */

const MAX_DEVICES = 32
const SOCKETS_PER_DEVICE = 8
const MAX_CONNECTIONS = 64
const MAX_UNAUTHENTICATED = 64
const MAX_ROWS = 32
/** A first frame comes within it. */
const HANDSHAKE_MS = 10_000

/** Times are told apart when they lie so far from each other. */
const CLOCK_STEP_MS = 20

let router: ServedRouter

beforeAll(async () => {
  router = await serveInHarness({ hibernating: false })
})

afterAll(async () => {
  await router?.close()
})

afterEach(verifyDevices)

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const connect = async (home: Home, { paired }: PairedDevice): Promise<RemoteDevice> => {
  const { device, answer } = await home.authenticate({ device_id: paired.device_id, token: paired.token })
  if (answer.type !== 'authenticated') throw new Error(`refused: ${JSON.stringify(answer)}`)
  return device
}

describe('[D36] limits', () => {
  test('a gateway has 32 devices: another is told busy, until one is revoked; the same phone may pair again', async () => {
    const home = await Home.open(router)
    const install = { install_id: 'the-phone-0123456789abcdef' }
    const { paired: phone } = await home.pair(install)
    for (let n = 1; n < MAX_DEVICES; n++) (await home.pair()).device.hangUp()
    const { credential } = await home.openPairing()
    expect((await home.failedPairing({ secret: credential })).code).toBe('busy')
    // The right secret was used: a second try needs a new challenge.
    expect((await home.failedPairing({ secret: credential })).code).toBe('pairing_failed')
    const { paired: replaced } = await home.pair(install)
    expect(replaced.device_id).not.toBe(phone.device_id)
    expect(await home.owner.devices()).toHaveLength(MAX_DEVICES)
    await home.owner.must('DELETE', `/devices/${String(replaced.device_id)}`)
    await home.pair()
  })

  test('a device has 8 connections: a ninth takes the place of the one that was silent longest', async () => {
    const home = await Home.open(router)
    const one = await home.pair()
    const sockets = [one.device]
    while (sockets.length < SOCKETS_PER_DEVICE) sockets.push(await connect(home, one))
    // All but the fourth are heard: a ping counts as well.
    await pause(CLOCK_STEP_MS)
    for (const [index, socket] of sockets.entries()) if (index !== 3) await socket.pinged()
    const ninth = await connect(home, one)
    expect((await sockets[3]?.lastWords())?.code).toBe('idle_timeout')
    for (const socket of [...sockets.filter((_, index) => index !== 3), ninth]) await socket.pinged()
    const { device: other } = await home.pair()
    await other.pinged()
  })

  test('a gateway has 64 connections: while all of them are heard, another is told busy, and no token is burnt', async () => {
    const home = await Home.open(router)
    const devices: PairedDevice[] = []
    for (let n = 0; n < MAX_CONNECTIONS / SOCKETS_PER_DEVICE; n++) devices.push(await home.pair())
    const { paired: rotating, device: asleep } = await home.pair(ROTATING)
    const { credential } = await home.openPairing()
    asleep.hangUp()
    await eventually(
      async () =>
        (await home.owner.devices()).find(({ device_id }) => device_id === rotating.device_id)?.online,
    ).toBe(false)
    const sockets = devices.map(({ device }) => device)
    for (const one of devices) {
      for (let n = 1; n < SOCKETS_PER_DEVICE; n++) sockets.push(await connect(home, one))
    }
    expect(sockets).toHaveLength(MAX_CONNECTIONS)
    const held = { device_id: rotating.device_id, refresh_token: rotating.refresh_token }
    expect(await home.refusal(held)).toBe('busy')
    expect((await home.failedPairing({ secret: credential })).code).toBe('busy')
    for (const socket of sockets) await socket.pinged()
    sockets.pop()?.hangUp()
    const outcome = async () => {
      const { device, answer } = await home.authenticate(held)
      if (answer.type === 'authenticated') return device
      await device.ended()
      return undefined
    }
    // Hanging up takes a moment to arrive.
    await eventually(outcome).toBeDefined()
  })

  test('[D03] the list has 32 rows: the longest idle leaves it for another, and comes back under a new epoch', async () => {
    const home = await Home.open(router)
    const { device } = await home.pair()
    await device.request({ type: 'subscribe_sessions' })
    const sessions: string[] = []
    for (let n = 0; n <= MAX_ROWS; n++) {
      const id = await home.owner.newSession(`number ${n}`)
      sessions.push(id)
      await home.owner.must('PUT', `/sessions/${id}`, { shared: true })
      if (n > 0) continue
      await device.nextList((rows) => rows.length === 1)
    }
    const [first, ...others] = sessions
    const ids = (rows: Fields[]) => rows.map(({ session_id: id }) => id).sort()
    const full = await device.nextList(
      (rows) => rows.length === MAX_ROWS && ids(rows).includes(others.at(-1)),
    )
    expect(ids(full)).toEqual([...others].sort())
    const shared = async () => (await home.owner.must('GET', `/sessions`)).sessions as Fields[]
    await eventually(async () => (await shared()).find(({ id }) => id === first)?.shared).toBe(false)
    const old = { session_id: first, registration_epoch: 1 }
    expect(await device.request({ type: 'attach_session' }, old)).toMatchObject({ code: 'not_found' })
    await home.owner.must('PUT', `/sessions/${first}`, { shared: true })
    const again = await device.nextList((rows) => ids(rows).includes(first))
    expect(again).toHaveLength(MAX_ROWS)
    expect(ids(again)).not.toContain(others[0])
  })

  test('[D41] 64 strangers at most wait at the door; those who are inside are served meanwhile', async () => {
    const home = await Home.open(router)
    const one = await home.pair()
    const strangers: RemoteDevice[] = []
    for (let n = 0; n < MAX_UNAUTHENTICATED; n++) strangers.push(await home.dial({ address: `10.9.0.${n}` }))
    await expect(home.dial({ address: '10.9.1.1' })).rejects.toMatchObject({ status: expect.any(Number) })
    await one.device.request({ type: 'list_sessions' })
    for (const stranger of strangers.slice(0, 5)) stranger.hangUp()
    await eventually(() =>
      connect(home, one).then(
        () => 'let in',
        () => 'full',
      ),
    ).toBe('let in')
  })
})

describe('what time brings', () => {
  const request = { type: 'connect_request', protocol_version: 1, device_name: 'nearby' }

  test('“No frame within 10 seconds”: handshake_timeout, which pings do not put off, and which a request ends', async () => {
    const home = await Home.open(router)
    await home.owner.must('POST', '/connect-requests/listen')
    const startedAt = Date.now()
    const [silent, pinging, asking] = await Promise.all([
      home.dial({ address: '10.10.0.1' }),
      home.dial({ address: '10.10.0.2' }),
      home.dial({ address: '10.10.0.3' }),
    ])
    expect(await asking.handshake(request)).toMatchObject({ type: 'connect_pending' })
    const { device: inside } = await home.pair()
    await pause(HANDSHAKE_MS / 2)
    await pinging.pinged()
    const errors = await Promise.all([silent.lastWords(), pinging.lastWords()])
    expect(errors.map(({ code }) => code)).toEqual(['handshake_timeout', 'handshake_timeout'])
    const took = Date.now() - startedAt
    expect(took).toBeGreaterThan(HANDSHAKE_MS - 500)
    expect(took).toBeLessThan(HANDSHAKE_MS + 3_000)
    await asking.pinged()
    await inside.pinged()
  })
})
