import { describe, expect, test } from 'vitest'
import type { RemoteDevice } from './device.ts'
import { eventually } from './eventually.ts'
import { type GatewayRouter, Home, pairFrame } from './gateway-home.ts'
import type { Fields } from './shapes.ts'

const requestFrame = (fields: Fields = {}): Fields => ({
  type: 'connect_request',
  protocol_version: 1,
  device_name: 'A phone nearby',
  platform: 'ios',
  ...fields,
})

/** A code that is not this one. */
const otherThan = (code: string): string => (code === '0000-0001' ? '0000-0002' : '0000-0001')

/** "Connection requests". */
export function connectRequestTests(router: () => GatewayRouter): void {
  /** A home whose owner listens. */
  async function listening(): Promise<Home> {
    const here = await Home.open(router())
    const { expires_at: until } = await here.owner.must('POST', '/connect-requests/listen')
    expect(Date.parse(String(until)) - Date.now()).toBeGreaterThan(9 * 60_000)
    return here
  }

  /** A device whose request is in front of the owner. */
  async function asking(
    here: Home,
    address: string,
    fields: Fields = {},
  ): Promise<{ device: RemoteDevice; id: string }> {
    const device = await here.dial({ address })
    const answer = await device.handshake(requestFrame(fields))
    if (answer.type !== 'connect_pending') throw new Error(`not pending: ${JSON.stringify(answer)}`)
    return { device, id: String(answer.request_id) }
  }

  async function refusedRequest(here: Home, address: string, fields: Fields = {}): Promise<Fields> {
    const device = await here.dial({ address })
    await device.send(requestFrame(fields))
    return device.lastWords()
  }

  const accept = async (here: Home, id: string): Promise<string> =>
    String((await here.owner.must('POST', `/connect-requests/${id}/accept`)).code)

  describe('a connection request', () => {
    test('[D41] is taken only while the owner listens: else invalid_frame', async () => {
      const here = await Home.open(router())
      expect((await refusedRequest(here, '10.7.0.1')).code).toBe('invalid_frame')
      await here.owner.must('POST', '/connect-requests/listen')
      const { device } = await asking(here, '10.7.0.1')
      expect(device.closeCode).toBeNull()
    })

    test('waits for the owner, who sees what it is and who asks', async () => {
      const here = await listening()
      const { device, id } = await asking(here, '10.7.1.1', {
        device_name: '  Lars’s \n PC ',
        device_kind: 'desktop',
        platform: 'windows',
      })
      await asking(here, '10.7.1.2', { device_name: '', device_kind: 'spaceship', platform: 'Bad Platform' })
      const [first, second] = await here.owner.connectRequests()
      expect(first).toEqual({
        request_id: id,
        device_name: 'Lars’s PC',
        device_kind: 'desktop',
        platform: 'windows',
        expires_at: expect.stringMatching(/Z$/),
      })
      expect(second).toMatchObject({ device_kind: 'phone', platform: 'unknown' })
      await device.pinged()
    })

    test('accepted, its code pairs on its own socket, as what the request said it is', async () => {
      const here = await listening()
      const { device, id } = await asking(here, '10.7.2.1', { device_kind: 'desktop', platform: 'windows' })
      const code = await accept(here, id)
      expect(code).toMatch(/^\d{4}-\d{4}$/)
      expect(await device.next()).toMatchObject({
        type: 'connect_approved',
        request_id: id,
        code_length: 8,
        expires_in_secs: 120,
      })
      expect(await here.owner.connectRequests()).toEqual([])
      const paired = await device.handshake(
        pairFrame({ method: 'code', secret: code.replace('-', ''), device_kind: 'cli', platform: 'linux' }),
      )
      expect(paired.type).toBe('paired')
      expect(await device.request({ type: 'list_sessions' })).toMatchObject({ type: 'sessions' })
      const [listed] = await here.owner.devices()
      expect(listed).toMatchObject({
        device_id: paired.device_id,
        device_kind: 'desktop',
        platform: 'windows',
      })
    })

    test('“The code is bound to that connection”: from any other socket it is pairing_failed', async () => {
      const here = await listening()
      const { device, id } = await asking(here, '10.7.3.1')
      const code = await accept(here, id)
      await device.next()
      for (const address of ['10.7.3.1', '10.7.3.2']) {
        expect((await here.failedPairing({ method: 'code', secret: code }, { address })).code).toBe(
          'pairing_failed',
        )
      }
      expect((await device.handshake(pairFrame({ method: 'code', secret: code }))).type).toBe('paired')
    })

    test('the request’s socket cannot redeem a challenge of the QR code', async () => {
      const here = await listening()
      const { device, id } = await asking(here, '10.7.4.1')
      await accept(here, id)
      await device.next()
      await device.send(pairFrame({ method: 'credential', secret: 'A'.repeat(43) }))
      expect((await device.lastWords()).code).toMatch(/^(pairing_failed|invalid_frame)$/)
      expect(await here.owner.devices()).toEqual([])
    })

    test('a wrong code ends it: one code per accepted request', async () => {
      const here = await listening()
      const { device, id } = await asking(here, '10.7.5.1')
      const code = await accept(here, id)
      await device.next()
      await device.send(pairFrame({ method: 'code', secret: otherThan(code) }))
      expect((await device.lastWords()).code).toBe('pairing_failed')
      expect((await here.failedPairing({ method: 'code', secret: code })).code).toBe('pairing_failed')
      expect(await here.owner.connectRequests()).toEqual([])
      // It is over, not denied: one may ask again.
      await asking(here, '10.7.5.1')
    })

    test('denied, it is told so, and its address must wait 30 seconds', async () => {
      const here = await listening()
      const { device, id } = await asking(here, '10.7.6.1')
      expect(await here.owner.must('POST', `/connect-requests/${id}/deny`)).toEqual({ denied: true })
      expect(await device.next()).toEqual({ type: 'connect_denied' })
      expect(await device.ended()).toBe(1005)
      const error = await refusedRequest(here, '10.7.6.1')
      expect(error.code).toBe('connect_rate_limited')
      expect(error.retry_after_secs).toBeGreaterThan(20)
      expect(error.retry_after_secs).toBeLessThanOrEqual(30)
      await asking(here, '10.7.6.2')
      const { body, status } = await here.owner.call('POST', `/connect-requests/${id}/accept`)
      expect([status, body]).toEqual([404, { error: expect.objectContaining({ code: 'invalid_request' }) }])
      expect((await here.owner.call('POST', '/connect-requests/0000000000000000/deny')).status).toBe(404)
    })

    test('“at most four requests and one per network address”: connect_busy', async () => {
      const here = await listening()
      const held: RemoteDevice[] = []
      for (let n = 1; n <= 4; n++) {
        held.push((await asking(here, `10.7.7.${n}`)).device)
        if (n < 4) expect((await refusedRequest(here, '10.7.7.1')).code).toBe('connect_busy')
      }
      expect((await refusedRequest(here, '10.7.7.5')).code).toBe('connect_busy')
      // Closing the socket withdraws the request.
      held[0]?.hangUp()
      await eventually(() => here.owner.connectRequests()).toHaveLength(3)
      await asking(here, '10.7.7.5')
    })

    test('a new one with the same install_id from the same address replaces the open one', async () => {
      const here = await listening()
      const install = { install_id: 'install-0123456789abcdef' }
      const { device: older } = await asking(here, '10.7.8.1', install)
      const { device: newer, id } = await asking(here, '10.7.8.1', install)
      expect(await older.next()).toEqual({ type: 'connect_expired' })
      expect(await older.ended()).toBe(1005)
      // From elsewhere the same identifier replaces nothing.
      await asking(here, '10.7.8.2', install)
      expect(await here.owner.connectRequests()).toHaveLength(2)
      const code = await accept(here, id)
      expect((await newer.next()).type).toBe('connect_approved')
      expect((await newer.handshake(pairFrame({ method: 'code', secret: code }))).type).toBe('paired')
    })

    test('any text frame while it waits is invalid_frame, as is anything but pair after the approval', async () => {
      const here = await listening()
      for (const frame of [pairFrame({ method: 'code', secret: '0000-0000' }), requestFrame(), 'x']) {
        const { device } = await asking(here, '10.7.9.1')
        await device.send(frame)
        expect((await device.lastWords()).code).toBe('invalid_frame')
      }
      for (const frame of [
        requestFrame(),
        { type: 'authenticate', protocol_version: 1, device_id: 'x' },
        'x',
      ]) {
        const { device, id } = await asking(here, '10.7.9.1')
        await accept(here, id)
        await device.next()
        await device.send(frame)
        expect((await device.lastWords()).code).toBe('invalid_frame')
      }
      expect(await here.owner.connectRequests()).toEqual([])
    })

    test('a newer challenge takes the code away: connect_expired', async () => {
      const here = await listening()
      const { device: first, id: firstId } = await asking(here, '10.7.10.1')
      const code = await accept(here, firstId)
      expect((await first.next()).type).toBe('connect_approved')
      // Another request is accepted.
      const { device: second, id: secondId } = await asking(here, '10.7.10.2')
      await accept(here, secondId)
      expect(await first.next()).toEqual({ type: 'connect_expired' })
      expect(await first.ended()).toBe(1005)
      expect((await second.next()).type).toBe('connect_approved')
      // The owner pairs a device by the QR code.
      const { credential } = await here.openPairing()
      expect(await second.next()).toEqual({ type: 'connect_expired' })
      expect(await second.ended()).toBe(1005)
      expect((await here.failedPairing({ method: 'code', secret: code })).code).toBe('pairing_failed')
      const device = await here.dial()
      expect((await device.handshake(pairFrame({ secret: credential }))).type).toBe('paired')
    })

    test('a closed socket withdraws the request and destroys its code', async () => {
      const here = await listening()
      const { device, id } = await asking(here, '10.7.11.1')
      const code = await accept(here, id)
      await device.next()
      device.hangUp()
      await device.ended()
      expect(
        (await here.failedPairing({ method: 'code', secret: code }, { address: '10.7.11.1' })).code,
      ).toBe('pairing_failed')
      await eventually(
        async () => (await here.owner.call('POST', `/connect-requests/${id}/accept`)).status,
      ).toBe(404)
      expect(await here.owner.devices()).toEqual([])
    })

    test('a paired device sees the capability while the owner listens, and not otherwise', async () => {
      const here = await Home.open(router())
      const { device } = await here.pair()
      const capabilities = async () => (await device.request({ type: 'list_sessions' })).capabilities ?? []
      expect(await capabilities()).not.toContain('connect_requests')
      await here.owner.must('POST', '/connect-requests/listen')
      expect(await capabilities()).toContain('connect_requests')
    })
  })
}
