import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { verifyDevices } from '../support/remote-device/device.ts'
import { Home, pairFrame } from '../support/remote-device/gateway-home.ts'
import { type ServedRouter, serveInHarness } from '../support/remote-device/served-router.ts'

/** What only time brings, waited for: stopped clocks hold the same in workerd. */

/** A refused one may ask again after it. */
const DENIAL_MS = 30_000
/** How long a request, a code and a challenge hold. */
const CHALLENGE_MS = 120_000

const request = { type: 'connect_request', protocol_version: 1, device_name: 'nearby' }

let router: ServedRouter

beforeAll(async () => {
  router = await serveInHarness({ hibernating: false })
})

afterAll(async () => {
  await router?.close()
})

afterEach(verifyDevices)

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

test('an address that was denied asks again after 30 seconds', { timeout: 90_000 }, async () => {
  const home = await Home.open(router)
  await home.owner.must('POST', '/connect-requests/listen')
  const device = await home.dial({ address: '10.10.1.1' })
  const { request_id: id } = await device.handshake(request)
  await home.owner.must('POST', `/connect-requests/${String(id)}/deny`)
  await device.ended()
  await pause(DENIAL_MS + 100)
  const again = await home.dial({ address: '10.10.1.1' })
  expect(await again.handshake(request)).toMatchObject({ type: 'connect_pending' })
})

test('after 120 seconds a challenge is over, a request expires, and so does a code', {
  timeout: 180_000,
}, async () => {
  const [home, there] = [await Home.open(router), await Home.open(router)]
  for (const one of [home, there]) await one.owner.must('POST', '/connect-requests/listen')
  const { credential } = await home.openPairing()
  const pending = await home.dial({ address: '10.10.2.1' })
  await pending.handshake(request)
  const approved = await there.dial({ address: '10.10.2.2' })
  const { request_id: id } = await approved.handshake(request)
  const { code } = await there.owner.must('POST', `/connect-requests/${String(id)}/accept`)
  await approved.next()
  await pause(CHALLENGE_MS)
  expect(await pending.next()).toEqual({ type: 'connect_expired' })
  expect(await approved.next()).toEqual({ type: 'connect_expired' })
  for (const one of [pending, approved]) expect(await one.ended()).toBe(1005)
  expect((await home.failedPairing({ secret: credential })).code).toBe('pairing_failed')
  expect((await there.failedPairing({ method: 'code', secret: code })).code).toBe('pairing_failed')
  const late = await home.dial({ address: '10.10.2.3' })
  expect(await late.handshake(pairFrame({ secret: (await home.openPairing()).credential }))).toMatchObject({
    type: 'paired',
  })
})
