import { describe, expect, test } from 'vitest'
import { eventually } from './eventually.ts'
import { type GatewayRouter, Home, pairFrame, ROTATING } from './gateway-home.ts'
import type { Fields } from './shapes.ts'

const THIRTY_DAYS_MS = 30 * 24 * 3600 * 1000
/** The clocks are one; this is for the way there and back. */
const SLACK_MS = 60_000

/** Codes that are not this one. */
const wrongCodes = (code: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => {
    const digits = (Number(code.replace('-', '')) + index + 1) % 100_000_000
    const text = String(digits).padStart(8, '0')
    return `${text.slice(0, 4)}-${text.slice(4)}`
  })

/** Pairing: challenges and their limits, devices and what becomes of them. */
export function pairingTests(router: () => GatewayRouter): void {
  const home = () => Home.open(router())

  describe('a challenge', () => {
    test('[D36] is shown as a code of eight digits, a credential and what the QR code encodes', async () => {
      const here = await home()
      const pairing = await here.openPairing()
      expect(pairing).toMatchObject({
        code: expect.stringMatching(/^\d{4}-\d{4}$/),
        credential: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
        gateway_id: expect.stringMatching(/^[0-9a-f]{32}$/),
        qr: {
          protocol_version: 1,
          address: expect.stringMatching(/^\S+:\d+$/),
          gateway_id: pairing.gateway_id,
          credential: pairing.credential,
          url: expect.stringMatching(new RegExp(`^wss?://\\S+/g/${pairing.gateway_id}$`)),
        },
      })
      const left = Date.parse(pairing.expires_at) - Date.now()
      expect(left).toBeGreaterThan(60_000)
      expect(left).toBeLessThanOrEqual(121_000)
      expect(JSON.stringify(pairing)).not.toContain('null')
    })

    test('[U31] pairs by its credential or by its code, with or without the dash, and then it is used up', async () => {
      const here = await home()
      for (const spelled of [
        (code: string) => code,
        (code: string) => code.replace('-', ''),
        (code: string) => ` ${code.replace('-', ' - ')} `,
      ]) {
        const { code, credential } = await here.openPairing()
        const device = await here.dial()
        const answer = await device.handshake(pairFrame({ method: 'code', secret: spelled(code) }))
        expect(answer).toMatchObject({ type: 'paired', protocol_version: 1 })
        expect(await here.failedPairing({ secret: credential })).toMatchObject({ code: 'pairing_failed' })
        expect(await here.failedPairing({ method: 'code', secret: code })).toMatchObject({
          code: 'pairing_failed',
        })
      }
    })

    test('wrong, used, of the other method, replaced and exhausted secrets cannot be told apart', async () => {
      const here = await home()
      const old = await here.openPairing()
      const { code, credential } = await here.openPairing()
      const answers = [
        await here.failedPairing({ secret: old.credential }),
        await here.failedPairing({ method: 'code', secret: credential }),
        await here.failedPairing({ method: 'credential', secret: code }),
      ]
      await here.pair()
      answers.push(await here.failedPairing({ secret: credential }))
      const next = await here.openPairing()
      for (const secret of wrongCodes(next.code, 5)) {
        answers.push(await here.failedPairing({ method: 'code', secret }, { address: '10.1.1.1' }))
      }
      // Five attempts are spent: even the right one comes too late.
      answers.push(await here.failedPairing({ method: 'code', secret: next.code }, { address: '10.1.1.2' }))
      expect(answers.map(({ code: said }) => said)).toEqual(answers.map(() => 'pairing_failed'))
      expect(new Set(answers.map(({ message }) => message)).size).toBe(1)
    })

    test('of sockets that race on one credential exactly one becomes a device', async () => {
      const here = await home()
      const { credential } = await here.openPairing()
      const devices = await Promise.all(
        Array.from({ length: 4 }, (_, index) => here.dial({ address: `10.2.0.${index}` })),
      )
      const answers = await Promise.all(
        devices.map((device) => device.handshake(pairFrame({ secret: credential }))),
      )
      expect(answers.filter(({ type }) => type === 'paired')).toHaveLength(1)
      expect(answers.filter(({ code }) => code === 'pairing_failed')).toHaveLength(3)
      expect(await here.owner.devices()).toHaveLength(1)
    })

    test('[D41] ten failures lock pairing for everybody, for at most five minutes, and consume nothing', async () => {
      const here = await home()
      for (const round of [1, 2]) {
        const { code } = await here.openPairing()
        for (const secret of wrongCodes(code, 5)) {
          const error = await here.failedPairing({ method: 'code', secret }, { address: `10.3.0.${round}` })
          expect(error.code).toBe('pairing_failed')
        }
      }
      const { credential } = await here.openPairing()
      for (const address of ['10.3.0.1', '10.3.0.9']) {
        const error = await here.failedPairing({ secret: credential }, { address })
        expect(error.code).toBe('rate_limited')
        expect(error.retry_after_secs).toBeGreaterThan(200)
      }
    })

    test('[D41] without an open challenge, failures count for their own address only', async () => {
      const here = await home()
      // Used up: nothing is open.
      await here.pair()
      for (let attempt = 0; attempt < 10; attempt++) {
        const error = await here.failedPairing(
          { method: 'code', secret: '0000-0000' },
          { address: '10.4.0.1' },
        )
        expect(error.code).toBe('pairing_failed')
      }
      const { credential } = await here.openPairing()
      expect(await here.failedPairing({ secret: credential }, { address: '10.4.0.1' })).toMatchObject({
        code: 'rate_limited',
      })
      const device = await here.dial({ address: '10.4.0.2' })
      expect(await device.handshake(pairFrame({ secret: credential }))).toMatchObject({ type: 'paired' })
    })
  })

  describe('a device', () => {
    test('without the capability gets one static token, which holds for 30 days', async () => {
      const here = await home()
      const { device, paired } = await here.pair({ capabilities: ['something_later'] })
      const expires = Date.parse(String(paired.expires_at)) - Date.now()
      expect(Math.abs(expires - THIRTY_DAYS_MS)).toBeLessThan(SLACK_MS)
      expect(paired.gateway_id).toBe(await here.gatewayId())
      device.hangUp()
      for (const capabilities of [[], ['token_rotation']]) {
        const { answer } = await here.authenticate({
          device_id: paired.device_id,
          token: paired.token,
          capabilities,
        })
        // It decides once, when it pairs; and the end of the pairing stays where it is.
        expect(answer).toEqual({
          type: 'authenticated',
          protocol_version: 1,
          gateway_id: paired.gateway_id,
          instance_id: paired.instance_id,
          device_id: paired.device_id,
          device_name: paired.device_name,
          expires_at: paired.expires_at,
          ...optional(paired),
        })
      }
    })

    test('“Unknown or revoked device, or wrong token”: unauthorized, all in the same words', async () => {
      const here = await home()
      const { paired } = await here.pair()
      const { paired: rotating } = await here.pair(ROTATING)
      const wrong = 'A'.repeat(43)
      const errors: Fields[] = []
      for (const fields of [
        { device_id: paired.device_id, token: wrong },
        { device_id: paired.device_id, token: '' },
        { device_id: paired.device_id },
        { device_id: 'ffffffffffffffff', token: paired.token },
        { device_id: 'ffffffffffffffff', refresh_token: wrong },
        { device_id: '', token: paired.token },
        { device_id: `${String(paired.device_id)}' OR 1=1 --`, token: paired.token },
        // A kind of token that this device does not have.
        { device_id: paired.device_id, refresh_token: paired.token },
        { device_id: rotating.device_id, token: rotating.refresh_token },
        { device_id: rotating.device_id, refresh_token: rotating.access_token },
        // Another device's.
        { device_id: rotating.device_id, refresh_token: paired.token },
      ]) {
        const device = await here.dial()
        await device.send({ type: 'authenticate', protocol_version: 1, ...fields })
        errors.push({ fields, ...(await device.lastWords()) })
      }
      expect(errors.map(({ fields, code }) => [fields, code])).toEqual(
        errors.map(({ fields }) => [fields, 'unauthorized']),
      )
      expect(new Set(errors.map(({ message }) => message)).size).toBe(1)
    })

    test('its name comes back trimmed and bounded, and is a label only', async () => {
      const here = await home()
      for (const [sent, stored] of [
        ['  Lars’s\t\n iPhone \u0007 ', 'Lars’s iPhone'],
        ['x'.repeat(100), 'x'.repeat(64)],
        ['📱'.repeat(100), '📱'.repeat(64)],
        ['<script>alert(1)</script>', '<script>alert(1)</script>'],
      ]) {
        const { paired } = await here.pair({ device_name: sent })
        expect(paired.device_name).toBe(stored)
      }
      const { paired } = await here.pair({ device_name: ' \u0000 ' })
      expect(String(paired.device_name).trim()).not.toBe('')
      const ids = (await here.owner.devices()).map(({ device_id: id }) => id)
      expect(new Set(ids).size).toBe(5)
    })

    test('its kind and platform are labels: unknown ones are not refused', async () => {
      const here = await home()
      const told = [
        [{ device_kind: 'desktop', platform: 'macos', host_id: 'mac-studio-00112233' }, 'desktop', 'macos'],
        [{ device_kind: 'cli', platform: 'linux' }, 'cli', 'linux'],
        [{}, 'phone', undefined],
        [{ device_kind: 'toaster', platform: 'Not A Platform!', host_id: 'short' }, 'phone', undefined],
        [
          { device_kind: null, platform: null, install_id: null, host_id: null, capabilities: null },
          'phone',
          undefined,
        ],
      ] as const
      for (const [fields, kind, platform] of told) {
        const { device, paired } = await here.pair(fields)
        device.hangUp()
        const listed = (await here.owner.devices()).find(({ device_id: id }) => id === paired.device_id)
        expect([listed?.device_kind, listed?.platform]).toEqual([kind, platform])
      }
    })

    test('paired again by the same install_id it replaces the record, whose connections are closed with revoked', async () => {
      const here = await home()
      const install = { install_id: '6F9619FF-8B86-D011-B42D-00C04FC964FF' }
      const { device: first, paired: before } = await here.pair(install)
      const { device: bystander } = await here.pair({ install_id: '6F9619FF-8B86-D011-B42D-00C04FC964F0' })
      const { paired: after } = await here.pair({ ...install, ...ROTATING })
      expect((await first.lastWords()).code).toBe('revoked')
      expect(after.device_id).not.toBe(before.device_id)
      expect(await here.refusal({ device_id: before.device_id, token: before.token })).toBe('unauthorized')
      expect(await here.owner.devices()).toHaveLength(2)
      await bystander.pinged()
      // One that is not a valid identifier is ignored: every pairing adds a record.
      await here.pair({ install_id: 'short' })
      await here.pair({ install_id: 'short' })
      expect(await here.owner.devices()).toHaveLength(4)
    })

    test('[U32] revoked by its owner it is told so at once, is refused, and can pair again', async () => {
      const here = await home()
      const { device, paired } = await here.pair()
      const { device: second } = await here.authenticate({ device_id: paired.device_id, token: paired.token })
      const { device: other, paired: otherPaired } = await here.pair()
      const { device: rotating, paired: rotatingPaired } = await here.pair(ROTATING)
      const id = String(paired.device_id)
      expect(await here.owner.call('DELETE', `/devices/${id}`)).toMatchObject({
        status: 200,
        body: { revoked: true },
      })
      expect((await device.lastWords()).code).toBe('revoked')
      expect((await second.lastWords()).code).toBe('revoked')
      expect(await here.refusal({ device_id: id, token: paired.token })).toBe('unauthorized')
      await other.pinged()
      expect(await here.owner.call('DELETE', `/devices/${id}`)).toMatchObject({ status: 404 })
      await here.owner.must('DELETE', `/devices/${String(rotatingPaired.device_id)}`)
      expect((await rotating.lastWords()).code).toBe('revoked')
      expect(
        await here.refusal({
          device_id: rotatingPaired.device_id,
          refresh_token: rotatingPaired.refresh_token,
        }),
      ).toBe('unauthorized')
      const listed = await here.owner.devices()
      expect(listed.map(({ device_id: one }) => one)).toEqual([otherPaired.device_id])
      const { paired: again } = await here.pair()
      expect(again.device_id).not.toBe(id)
    })

    test('is listed with what the owner should know, and renamed by the owner alone', async () => {
      const here = await home()
      const { device, paired } = await here.pair({ device_name: 'Old name' })
      const id = String(paired.device_id)
      const only = async () => (await here.owner.devices())[0]
      expect(await only()).toMatchObject({
        device_id: id,
        device_name: 'Old name',
        device_kind: 'phone',
        online: true,
      })
      device.hangUp()
      await eventually(async () => (await only())?.online).toBe(false)
      const renamed = await here.owner.must('PUT', `/devices/${id}`, { name: '  New   name ' })
      expect(renamed).toMatchObject({ device: { device_id: id, device_name: 'New name' } })
      const { answer } = await here.authenticate({ device_id: id, token: paired.token })
      expect(answer.device_name).toBe('New name')
      expect(await here.owner.call('PUT', '/devices/0000000000000000', { name: 'x' })).toMatchObject({
        status: 404,
      })
      const shown = JSON.stringify(await only())
      expect(shown).not.toContain(String(paired.token))
      expect(shown).not.toContain('null')
    })

    test('of one account is a stranger to another account’s gateway', async () => {
      const [here, there] = [await home(), await home()]
      const { paired } = await here.pair()
      expect(await there.refusal({ device_id: paired.device_id, token: paired.token })).toBe('unauthorized')
      const { credential } = await here.openPairing()
      await there.openPairing()
      expect((await there.failedPairing({ secret: credential })).code).toBe('pairing_failed')
      expect(await there.owner.call('DELETE', `/devices/${String(paired.device_id)}`)).toMatchObject({
        status: 404,
      })
      expect(await here.owner.devices()).toHaveLength(1)
    })
  })
}

/** The labels that both answers may carry. */
const optional = (answer: Fields): Fields =>
  Object.fromEntries(
    Object.entries(answer).filter(([name]) => ['host_name', 'version', 'routes'].includes(name)),
  )
