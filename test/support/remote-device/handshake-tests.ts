import { describe, expect, test } from 'vitest'
import { DialRefused } from './device.ts'
import { eventually } from './eventually.ts'
import { authenticateFrame, type GatewayRouter, Home, pairFrame } from './gateway-home.ts'
import type { Fields } from './shapes.ts'

/** "Connection", "Handshake frames" and their rows of the bare error table. `first` is the first account of the router. */
export function handshakeTests(router: () => GatewayRouter, first: () => Home): void {
  const home = () => Home.open(router())
  /** How a first frame is refused: its bare error, once the connection has ended. */
  const refused = async (here: Home, frame: object | string | Uint8Array): Promise<Fields> => {
    const device = await here.dial()
    await device.send(frame)
    return device.lastWords()
  }

  describe('the upgrade', () => {
    test('[D42] no Origin and the app’s own are let in, any other is refused with HTTP 403', async () => {
      const here = await home()
      for (const origin of [undefined, 'rustcode-mobile://app', router().url]) {
        const device = await here.dial(origin === undefined ? {} : { origin })
        await device.pinged()
      }
      for (const origin of [
        'https://evil.example',
        'null',
        'rustcode-mobile://app/',
        'rustcode-mobile://apps',
      ]) {
        await expect(here.dial({ origin })).rejects.toMatchObject({ status: 403 })
      }
    })

    test('[D41] a gateway that does not exist is not there, and neither is another path', async () => {
      const here = await home()
      await expect(here.dial({ path: `/g/${'0'.repeat(32)}` })).rejects.toMatchObject({ status: 404 })
      await expect(here.dial({ path: '/g/nonsense' })).rejects.toBeInstanceOf(DialRefused)
      await expect(here.dial({ path: `/g/${await here.gatewayId()}/more` })).rejects.toBeInstanceOf(
        DialRefused,
      )
    })

    test('a page or a script that asks without an upgrade is told what is here instead', async () => {
      const here = await home()
      const asked = async (path: string) => {
        const response = await fetch(`${router().url}${path}`)
        return [response.status, response.headers.get('Content-Type')?.split(';')[0]]
      }
      expect(await asked('/')).toEqual([200, 'text/html'])
      expect(await asked(`/g/${await here.gatewayId()}`)).toEqual([426, 'application/json'])
    })

    test('[U34] what only the Worker may tell the gateway is not taken from a device’s own headers', async () => {
      const [here, there] = [await home(), await home()]
      const { paired } = await here.pair()
      const origin = {
        userId: there.owner.userId,
        gatewayId: await there.gatewayId(),
        address: '10.0.1.1',
        routes: [{ address: 'evil.example:1', kind: 'lan' }],
        hostName: 'evil',
        notedRevocations: [{ deviceId: paired.device_id, reason: 'revoked' }],
      }
      const { answer } = await here.authenticate(
        { device_id: paired.device_id, token: paired.token },
        { headers: { 'X-Switchyard-Socket-Origin': JSON.stringify(origin) } },
      )
      expect(answer).toMatchObject({ type: 'authenticated', gateway_id: paired.gateway_id })
      expect(JSON.stringify(answer)).not.toContain('evil')
    })

    test('[D42] an upgrade over plain ws from a public address is refused with HTTP 403', async () => {
      const here = await home()
      await expect(here.dial({ address: '93.184.216.34' })).rejects.toMatchObject({ status: 403 })
      await (await here.dial({ address: '192.168.1.20' })).pinged()
      await (await here.dial({ address: '100.92.13.44' })).pinged()
    })

    test('[D41] of one address four sockets wait unauthenticated at most; another address is not in their way', async () => {
      const here = await home()
      const held = await Promise.all(Array.from({ length: 4 }, () => here.dial({ address: '10.0.0.7' })))
      await expect(here.dial({ address: '10.0.0.7' })).rejects.toBeInstanceOf(DialRefused)
      await (await here.dial({ address: '10.0.0.8' })).pinged()
      held[0]?.hangUp()
      await held[0]?.ended()
      await eventually(() =>
        here
          .dial({ address: '10.0.0.7' })
          .then((device) => device.pinged())
          .then(
            () => 'let in',
            () => 'full',
          ),
      ).toBe('let in')
    })
  })

  describe('the first frame', () => {
    test('[D36] before authentication nothing is sent but the answer to {"type":"ping"}', async () => {
      const here = await home()
      const device = await here.dial()
      await device.pinged()
      await device.pinged()
      expect(device.log).toEqual([{ type: 'pong' }, { type: 'pong' }])
      expect(device.closeCode).toBeNull()
    })

    test('“First frame was not a handshake frame, not JSON, or not text”: invalid_frame, which quotes nothing', async () => {
      const here = await home()
      const frames: (object | string | Uint8Array)[] = [
        new TextEncoder().encode(JSON.stringify(pairFrame({ secret: 'seekrit' }))),
        'seekrit',
        '',
        '"seekrit"',
        'null',
        '[]',
        '{"type":"pair"',
        [pairFrame({ secret: 'seekrit' })],
        {},
        { type: 'seekrit', protocol_version: 1 },
        { type: 'pair', method: 'credential', secret: 'seekrit', device_name: 'x' },
        pairFrame({ protocol_version: -1, secret: 'seekrit' }),
        pairFrame({ protocol_version: 1.5, secret: 'seekrit' }),
        pairFrame({ protocol_version: '1', secret: 'seekrit' }),
        pairFrame({ protocol_version: null, secret: 'seekrit' }),
        pairFrame({ method: 'telepathy', secret: 'seekrit' }),
        pairFrame({ secret: 7 }),
        pairFrame({}),
        { type: 'pair', protocol_version: 1, method: 'code', secret: 'seekrit' },
        authenticateFrame({ refresh_token: 'seekrit' }),
        authenticateFrame({ device_id: '0011223344556677', refresh_token: { seekrit: 1 } }),
        { type: 'connect_request', protocol_version: 1 },
        { type: 'token_ack', rotation_id: 'seekrit' },
        { protocol_version: 1, request_id: 'seekrit', operation: { type: 'list_sessions' } },
        { type: 'paired', protocol_version: 1 },
      ]
      for (const frame of frames) {
        const error = await refused(here, frame)
        expect([frame, error.code]).toEqual([frame, 'invalid_frame'])
        expect(error.message).not.toContain('seekrit')
      }
    })

    test('“Handshake frame over 8 KiB”: frame_too_large, while one of exactly 8 KiB is read', async () => {
      const here = await home()
      const { credential } = await here.openPairing()
      const sized = (bytes: number) => {
        const frame = pairFrame({ secret: credential, padding: '' })
        return JSON.stringify({ ...frame, padding: 'x'.repeat(bytes - JSON.stringify(frame).length) })
      }
      expect((await refused(here, sized(8193))).code).toBe('frame_too_large')
      // Bytes count, not characters.
      expect((await refused(here, pairFrame({ secret: credential, padding: 'é'.repeat(4096) }))).code).toBe(
        'frame_too_large',
      )
      expect((await refused(here, 'x'.repeat(9000))).code).toBe('frame_too_large')
      const device = await here.dial()
      expect(await device.handshake(sized(8192))).toMatchObject({ type: 'paired' })
    })

    test('“protocol_version is not 1”: unsupported_version with the versions that are, before anything else is read', async () => {
      const here = await home()
      for (const frame of [
        pairFrame({ protocol_version: 2, secret: 'x' }),
        { type: 'a_later_type', protocol_version: 2 },
        { protocol_version: 0 },
        { protocol_version: 4_294_967_295, type: 'pair' },
      ]) {
        expect(await refused(here, frame)).toMatchObject({
          code: 'unsupported_version',
          supported_versions: [1],
          message: expect.stringMatching(/version/i),
        })
      }
    })

    test('what is sent right behind it waits for it: requests are answered after it, a second handshake is none', async () => {
      const here = await home()
      const { credential } = await here.openPairing()
      const list = (request_id: string) => ({
        protocol_version: 1,
        request_id,
        operation: { type: 'list_sessions' },
      })
      const device = await here.dial()
      const pair = pairFrame({ secret: credential })
      await Promise.all([pair, list('a'), pair, list('b')].map((frame) => device.send(frame)))
      await device.next()
      await device.settled()
      const kinds = device.log.map(({ type, request_id }) => type ?? request_id)
      expect(kinds[0]).toBe('paired')
      expect(kinds.slice(1).sort()).toEqual(['', 'a', 'b'])
      expect(await here.owner.devices()).toHaveLength(1)
      // After a refusal nothing is read any more.
      const refusedOne = await here.dial()
      await refusedOne.send(pairFrame({ secret: 'wrong' }))
      await refusedOne.send(list('c')).catch(() => undefined)
      expect((await refusedOne.lastWords()).code).toBe('pairing_failed')
    })

    test('a field that the gateway does not know is ignored', async () => {
      const here = await home()
      const { device, paired } = await here.pair({ a_later_field: { deep: [1, 2, null] }, constructor: 'x' })
      expect(paired.type).toBe('paired')
      await device.pinged()
    })
  })

  test('[D42] / is the gateway of the first account, and of no other', async () => {
    const here = await home()
    const { credential } = await first().openPairing()
    const device = await first().dial({ path: '/' })
    const answer = await device.handshake(pairFrame({ secret: credential }))
    expect(answer).toMatchObject({ type: 'paired', gateway_id: await first().gatewayId() })
    const { paired } = await here.pair()
    expect(await here.refusal({ device_id: paired.device_id, token: paired.token }, { path: '/' })).toBe(
      'unauthorized',
    )
  })
}
