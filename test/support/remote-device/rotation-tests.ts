import { describe, expect, test } from 'vitest'
import type { RemoteDevice } from './device.ts'
import { type GatewayRouter, Home, ROTATING } from './gateway-home.ts'
import type { Fields } from './shapes.ts'

const FIFTEEN_MINUTES_MS = 15 * 60 * 1000
const SLACK_MS = 60_000

/** What a device keeps between its connections. */
type Held = { device_id: unknown; refresh_token: unknown; access_token: unknown }

const heldFrom = (device_id: unknown, { refresh_token, access_token }: Fields): Held => ({
  device_id,
  refresh_token,
  access_token,
})

/** "Rotating tokens, no expiry". */
export function rotationTests(router: () => GatewayRouter): void {
  const home = () => Home.open(router())

  /** Pairs a rotating device and hangs up. */
  async function pairRotating(here: Home, fields: Fields = {}): Promise<{ held: Held; paired: Fields }> {
    const { device, paired } = await here.pair({ ...ROTATING, ...fields })
    device.hangUp()
    return { held: heldFrom(paired.device_id, paired), paired }
  }

  const withRefresh = ({ device_id, refresh_token }: Held): Fields => ({
    device_id,
    refresh_token,
    ...ROTATING,
  })
  const withAccess = ({ device_id, access_token }: Held): Fields => ({ device_id, access_token, ...ROTATING })

  /** Connects with the refresh token; gives what to keep from then on. */
  async function rotate(
    here: Home,
    held: Held,
    options: { address?: string } = {},
  ): Promise<{ device: RemoteDevice; answer: Fields; held: Held }> {
    const { device, answer } = await here.authenticate(withRefresh(held), options)
    if (answer.type !== 'authenticated') throw new Error(`refused: ${JSON.stringify(answer)}`)
    return { device, answer, held: heldFrom(held.device_id, answer) }
  }

  /** As `rotate`, acknowledged: the successor is stored. */
  async function rotateAndAcknowledge(here: Home, held: Held) {
    const rotated = await rotate(here, held)
    await acknowledge(rotated.device, rotated.answer)
    return rotated
  }

  const acknowledge = async (device: RemoteDevice, { rotation_id }: Fields): Promise<void> => {
    await device.send({ type: 'token_ack', rotation_id })
    // It is never answered; what is answered behind it shows that it was taken.
    await device.request({ type: 'list_sessions' })
  }

  describe('rotating tokens', () => {
    test('pairing with the capability gives a refresh and an access token, and no end', async () => {
      const here = await home()
      const { paired } = await here.pair(ROTATING)
      expect(paired).not.toHaveProperty('token')
      expect(paired).not.toHaveProperty('expires_at')
      expect(paired).not.toHaveProperty('rotation_id')
      expect(paired.refresh_token).not.toBe(paired.access_token)
      const left = Date.parse(String(paired.access_expires_at)) - Date.now()
      expect(Math.abs(left - FIFTEEN_MINUTES_MS)).toBeLessThan(SLACK_MS)
      const [listed] = await here.owner.devices()
      expect(listed).not.toHaveProperty('expires_at')
    })

    test('every accepted refresh token rotates, and the acknowledgement is answered by nothing', async () => {
      const here = await home()
      let { held } = await pairRotating(here)
      const seen = new Set([held.refresh_token, held.access_token])
      for (let round = 0; round < 4; round++) {
        const { answer, device, held: next } = await rotateAndAcknowledge(here, held)
        expect(
          seen.has(answer.refresh_token) || seen.has(answer.access_token) || seen.has(answer.rotation_id),
        ).toBe(false)
        for (const token of [answer.refresh_token, answer.access_token, answer.rotation_id]) seen.add(token)
        expect(device.log.map(({ type, kind }) => type ?? kind)).toEqual(['authenticated', 'response'])
        held = next
        device.hangUp()
      }
    })

    test('within its 15 minutes the access token reconnects without replacing anything', async () => {
      const here = await home()
      const { held: first, paired } = await pairRotating(here)
      const reconnect = async (held: Held) => (await here.authenticate(withAccess(held))).answer
      const answer = await reconnect(first)
      expect(answer).toMatchObject({ type: 'authenticated', access_expires_at: paired.access_expires_at })
      for (const name of ['refresh_token', 'access_token', 'rotation_id', 'expires_at', 'token']) {
        expect(answer).not.toHaveProperty(name)
      }
      expect(await reconnect(first)).toEqual(answer)
      const { held: second, answer: rotated } = await rotateAndAcknowledge(here, first)
      expect((await reconnect(second)).access_expires_at).toBe(rotated.access_expires_at)
      // The refresh token that it was given by the rotation is still the current one.
      await rotateAndAcknowledge(here, second)
    })

    test('“Any other access token of a rotating device is answered access_expired”, and the pairing holds', async () => {
      const here = await home()
      const { held: first } = await pairRotating(here)
      const { held: second, device } = await rotateAndAcknowledge(here, first)
      expect(await here.refusal(withAccess(first))).toBe('access_expired')
      for (const access_token of ['A'.repeat(43), '', 'x', second.refresh_token]) {
        expect(await here.refusal({ device_id: second.device_id, access_token })).toBe('access_expired')
      }
      await device.pinged()
      await rotateAndAcknowledge(here, second)
    })

    test('[U33] a lost answer: the same token again gives the same answer, over and over, and rotates nothing', async () => {
      const here = await home()
      const { held } = await pairRotating(here)
      const { device, answer } = await rotate(here, held)
      device.hangUp()
      for (const address of ['127.0.0.1', '10.5.0.2', '100.64.0.9']) {
        // D40: the original end of the access token, too.
        const again = await rotate(here, held, { address })
        expect(again.answer).toEqual(answer)
        again.device.hangUp()
      }
      // What the device holds in the end works, whichever of the answers it came from.
      const next = heldFrom(held.device_id, answer)
      expect((await here.authenticate(withAccess(next))).answer.type).toBe('authenticated')
      await rotateAndAcknowledge(here, next)
    })

    test('[U33] connections that race with one refresh token all get the same answer, and stay', async () => {
      const here = await home()
      const { held } = await pairRotating(here)
      const raced = await Promise.all(
        ['10.6.0.1', '10.6.0.2', '10.6.0.3'].map((address) => rotate(here, held, { address })),
      )
      const [first] = raced
      if (first === undefined) throw new Error('nobody raced')
      for (const { answer } of raced) expect(answer).toEqual(first.answer)
      for (const { device } of raced) await device.pinged()
      await acknowledge(first.device, first.answer)
      // A second acknowledgement of the same rotation changes nothing.
      await acknowledge((raced[1] ?? first).device, first.answer)
      for (const { device } of raced) await device.pinged()
      await rotateAndAcknowledge(here, first.held)
    })

    test('once acknowledged, the token before is a replay: everything of the pairing ends', async () => {
      const here = await home()
      const { held: first } = await pairRotating(here)
      const { held: second, device } = await rotateAndAcknowledge(here, first)
      const { device: byAccess } = await here.authenticate(withAccess(second))
      const { device: bystander } = await here.pair()
      expect(await here.refusal(withRefresh(first))).toBe('token_replayed')
      expect((await device.lastWords()).code).toBe('revoked')
      expect((await byAccess.lastWords()).code).toBe('revoked')
      await bystander.pinged()
      expect(await here.refusal(withRefresh(second))).toBe('unauthorized')
      expect(await here.refusal(withAccess(second))).toMatch(/^(unauthorized|access_expired)$/)
      expect(await here.refusal(withRefresh(first))).toMatch(/^(unauthorized|token_replayed)$/)
      // The owner sees what happened, until it is taken off the list.
      const shown = (await here.owner.devices()).find(({ device_id: id }) => id === first.device_id)
      expect(shown).toMatchObject({ revoked_reason: 'token_replayed', online: false })
      await here.owner.must('DELETE', `/devices/${String(first.device_id)}`)
      expect(await here.owner.devices()).toHaveLength(1)
    })

    test('a token two generations old is a replay, too, acknowledged or not', async () => {
      const here = await home()
      const { held: first } = await pairRotating(here)
      const { held: second } = await rotate(here, first)
      const { held: third } = await rotate(here, second)
      // Only one predecessor is ever accepted.
      expect((await rotate(here, second)).held).toEqual(third)
      expect(await here.refusal(withRefresh(first))).toBe('token_replayed')
      expect(await here.refusal(withRefresh(third))).toBe('unauthorized')
    })

    test('an acknowledgement of an older or unknown rotation is ignored', async () => {
      const here = await home()
      const { held: first } = await pairRotating(here)
      const { held: second, answer: older } = await rotateAndAcknowledge(here, first)
      const { device, held: third, answer } = await rotate(here, second)
      await acknowledge(device, older)
      await acknowledge(device, { rotation_id: '0123456789abcdef' })
      await acknowledge(device, { rotation_id: 'no id at all' })
      // Not acknowledged yet: the retry still works.
      expect((await rotate(here, second)).answer).toEqual(answer)
      await acknowledge(device, answer)
      expect((await rotate(here, third)).answer.rotation_id).not.toBe(answer.rotation_id)
    })

    test('another device cannot acknowledge', async () => {
      const here = await home()
      const { held: first } = await pairRotating(here)
      const { answer } = await rotate(here, first)
      const { device: stranger } = await here.pair(ROTATING)
      await acknowledge(stranger, answer)
      expect((await rotate(here, first)).answer).toEqual(answer)
    })

    test('a token that was never issued is only unauthorized: a guess revokes nobody', async () => {
      const here = await home()
      const { held } = await pairRotating(here)
      const { device, held: next } = await rotate(here, held)
      for (const refresh_token of [
        'B'.repeat(43),
        `${String(next.refresh_token).slice(0, 42)}`,
        '',
        next.access_token,
      ]) {
        expect(await here.refusal(withRefresh({ ...next, refresh_token }))).toBe('unauthorized')
      }
      await device.pinged()
      await rotateAndAcknowledge(here, next)
    })

    test('a thief who uses the token first is found out when its owner comes', async () => {
      const here = await home()
      const { held: stolen } = await pairRotating(here)
      const thief = await rotateAndAcknowledge(here, stolen)
      expect(await here.refusal(withRefresh(stolen))).toBe('token_replayed')
      expect((await thief.device.lastWords()).code).toBe('revoked')
      expect(await here.refusal(withRefresh(thief.held))).toBe('unauthorized')
    })

    test('[U32] after a replay the same phone pairs again, and its new family is not haunted by the old', async () => {
      const here = await home()
      const install = { install_id: 'c0ffee00-1111-2222-3333-444455556666' }
      const { held: first } = await pairRotating(here, install)
      await rotateAndAcknowledge(here, first)
      expect(await here.refusal(withRefresh(first))).toBe('token_replayed')
      const { held: fresh, paired } = await pairRotating(here, install)
      expect(paired.device_id).not.toBe(first.device_id)
      await rotateAndAcknowledge(here, fresh)
      expect(await here.refusal(withRefresh(first))).toMatch(/^(unauthorized|token_replayed)$/)
      const live = (await here.owner.devices()).filter(({ revoked_reason: reason }) => reason === undefined)
      expect(live.map(({ device_id: id }) => id)).toEqual([paired.device_id])
    })

    test('static tokens know nothing of it: no rotation, and an acknowledgement means nothing', async () => {
      const here = await home()
      const { device, paired } = await here.pair()
      await acknowledge(device, { rotation_id: '0123456789abcdef' })
      for (let round = 0; round < 3; round++) {
        const { answer } = await here.authenticate({ device_id: paired.device_id, token: paired.token })
        expect(answer).toMatchObject({ type: 'authenticated', expires_at: paired.expires_at })
        expect(answer).not.toHaveProperty('refresh_token')
      }
      await device.pinged()
    })

    test('“A frame tagged token_ack without a rotation_id”: invalid_frame', async () => {
      const here = await home()
      for (const frame of [{ type: 'token_ack' }, { type: 'token_ack', rotation_id: 7 }]) {
        const { device } = await here.pair(ROTATING)
        await device.send(frame)
        expect((await device.lastWords()).code).toBe('invalid_frame')
      }
    })
  })
}
