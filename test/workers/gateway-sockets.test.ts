import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Authentication } from '../../src/gateway/authentication.ts'
import {
  HANDSHAKE_TIMEOUT_MS,
  MAX_HANDSHAKE_BYTES,
  MAX_MESSAGE_BYTES,
  MAX_REQUEST_BYTES,
} from '../../src/protocol/remote/limits.ts'
import { setClock, stopClock } from '../support/workers/clock.ts'
import {
  comeBack,
  Device,
  ended,
  type Frame,
  type PairedDevice,
  pairDevice,
  upgrade,
} from '../support/workers/device.ts'
import { hibernate, insideGateway, ringGatewayAlarm } from '../support/workers/gateway-object.ts'
import { Hold } from '../support/workers/hold.ts'
import { type Client, makeClient } from '../support/workers/router.ts'

let client: Client
let phone: PairedDevice
beforeEach(async () => {
  client = await makeClient()
  phone = await pairDevice(client)
})
afterEach(() => {
  vi.useRealTimers()
})

const dial = () => Device.dial(phone.path)
/** A text frame of exactly so many bytes. */
const ofBytes = (frame: Frame, bytes: number): string => {
  const text = JSON.stringify({ ...frame, pad: '' })
  return text.replace(
    '"pad":""',
    `"pad":"${'é'.repeat(Math.floor((bytes - text.length) / 2))}${(bytes - text.length) % 2 === 1 ? 'x' : ''}"`,
  )
}
const AUTHENTICATE = { type: 'authenticate', protocol_version: 1 }
const LIST = { protocol_version: 1, request_id: 'a', operation: { type: 'list_sessions' } }

describe('before authentication', () => {
  it.each([
    ['a binary frame', new ArrayBuffer(4), 'invalid_frame'],
    ['what is no JSON', 'hello', 'invalid_frame'],
    ['a request', LIST, 'invalid_frame'],
    ['an unknown type', { type: 'hello', protocol_version: 1 }, 'invalid_frame'],
    ['a missing version', { type: 'authenticate', device_id: 'x', token: 'y' }, 'invalid_frame'],
    ['missing fields', { type: 'pair', protocol_version: 1 }, 'invalid_frame'],
  ])('[RF 3] %s ends the connection', async (_what, frame, code) => {
    const device = await dial()
    device.send(frame)
    expect(await ended(device)).toMatchObject({ type: 'error', code })
  })

  it('[RF 3] another version is told which there are, before its type is looked at', async () => {
    const device = await dial()
    device.send({ type: 'from the future', protocol_version: 2 })
    expect(await ended(device)).toMatchObject({ code: 'unsupported_version', supported_versions: [1] })
  })

  it('[RF 1] a handshake frame may have 8 KiB, counted in bytes', async () => {
    const device_id = phone.id
    const fits = await dial()
    const frame = { ...AUTHENTICATE, device_id, token: phone.paired.token }
    fits.send(ofBytes(frame, MAX_HANDSHAKE_BYTES))
    expect(await fits.next()).toMatchObject({ type: 'authenticated' })
    const over = await dial()
    over.send(ofBytes(frame, MAX_HANDSHAKE_BYTES + 1))
    expect(await ended(over)).toMatchObject({ code: 'frame_too_large' })
  })

  it.each([
    ['', async () => {}],
    [', also when the gateway sleeps meanwhile', () => hibernate(client.userId)],
  ])('[RF 1] who says nothing for ten seconds is cut off%s', async (_what, meanwhile) => {
    const nowMs = stopClock()
    const device = await dial()
    await meanwhile()
    setClock(nowMs + HANDSHAKE_TIMEOUT_MS - 1)
    await ringGatewayAlarm(client.userId)
    expect(device.waiting).toEqual([])
    setClock(nowMs + HANDSHAKE_TIMEOUT_MS)
    await ringGatewayAlarm(client.userId)
    expect(await ended(device)).toMatchObject({ code: 'handshake_timeout' })
    // Who is through already is not.
    await phone.device.request({ type: 'list_sessions' })
  })

  it('[RF 3] frames sent before the answer are served after it, in order', async () => {
    const device = await dial()
    device.send({ ...AUTHENTICATE, device_id: phone.id, token: phone.paired.token })
    for (const request_id of ['one', 'two', 'three']) device.send({ ...LIST, request_id })
    expect(await device.next()).toMatchObject({ type: 'authenticated' })
    for (const request_id of ['one', 'two', 'three'])
      expect(await device.next()).toMatchObject({ kind: 'response', request_id })
  })

  it('[RF 3] after a refusal nothing that was sent counts', async () => {
    const device = await dial()
    device.send({ ...AUTHENTICATE, device_id: phone.id, token: 'wrong' })
    device.send({ ...AUTHENTICATE, device_id: phone.id, token: phone.paired.token })
    expect(await ended(device)).toMatchObject({ code: 'unauthorized' })
  })

  it('[D36] a ping is answered, by the platform', async () => {
    const device = await dial()
    expect(await device.ask('{"type":"ping"}')).toEqual({ type: 'pong' })
  })

  it('[D41] four sockets of an address wait, and sixty-four in all; more are refused before a socket is opened', async () => {
    const here = await Promise.all([1, 2, 3, 4].map(() => dial()))
    expect((await upgrade(phone.path)).status).toBe(503)
    here[0]?.close()
    // Kept open: it takes the place that has become free.
    await vi.waitFor(() => dial())
    const others = Array.from({ length: 60 }, (_, n) => `198.51.100.${n}`)
    for (const address of others) await Device.dial(phone.path, { address })
    expect((await upgrade(phone.path, { address: '192.0.2.1' })).status).toBe(503)
  })
})

describe('who was told the end of the connection', () => {
  it('[D41] holds no place of others by not leaving, and few of his own', async () => {
    // A peer that never answers: the platform keeps its socket.
    for (let n = 0; n < 16; n++) {
      const device = await dial()
      device.send('{')
      expect(await device.next()).toMatchObject({ code: 'invalid_frame' })
    }
    await insideGateway(client.userId, (_sql, state) => {
      for (const socket of state.getWebSockets()) vi.spyOn(socket, 'close').mockImplementation(() => {})
    })
    await Device.dial(phone.path, { address: '192.0.2.1' })
  })

  it('[RF 3] costs nothing by sending on', async () => {
    const device = await dial()
    device.send('{')
    for (let n = 0; n < 100; n++) device.send('')
    expect(await ended(device)).toMatchObject({ code: 'invalid_frame' })
  })

  it('[RF 3] a client that sends without waiting for the answer to its first frame is cut off', async () => {
    const hold = new Hold()
    const held = vi.spyOn(Authentication.prototype, 'authenticate').mockImplementation(hold.wait)
    const device = await dial()
    device.send({ ...AUTHENTICATE, device_id: phone.id, token: phone.paired.token })
    for (let n = 0; n < 100; n++) device.send(LIST)
    expect(await ended(device)).toMatchObject({ type: 'error', code: 'invalid_frame' })
    held.mockRestore()
    hold.release()
  })

  it.each([1000, 1004, 1015, 4999])(
    '[RF 3] a close with code %i is taken, whatever may be sent back',
    async (code) => {
      const errors = vi.spyOn(console, 'error')
      await insideGateway(client.userId, async (_sql, state, gateway) => {
        const [socket] = state.getWebSockets()
        if (socket) await gateway.webSocketClose(socket, code, '')
      })
      expect(errors).not.toHaveBeenCalled()
    },
  )
})

describe('after authentication', () => {
  it('[RF 3] a binary frame ends the connection', async () => {
    phone.device.send(new ArrayBuffer(4))
    expect(await ended(phone.device)).toMatchObject({ code: 'invalid_frame' })
  })

  it('[RF 9] a request may have 256 KiB; a larger one is answered, and the connection stays', async () => {
    phone.device.send(ofBytes(LIST, MAX_REQUEST_BYTES))
    expect(await phone.device.next()).toMatchObject({ request_id: 'a', result: { type: 'sessions' } })
    phone.device.send(ofBytes(LIST, MAX_REQUEST_BYTES + 1))
    expect(await phone.device.next()).toMatchObject({
      kind: 'response',
      request_id: '',
      result: { type: 'error', code: 'frame_too_large' },
    })
    await phone.device.request({ type: 'list_sessions' })
  })

  it('[RF 3] a message over 1 MiB ends the connection', async () => {
    phone.device.send(ofBytes(LIST, MAX_MESSAGE_BYTES))
    expect(await phone.device.next()).toMatchObject({ result: { code: 'frame_too_large' } })
    phone.device.send(ofBytes(LIST, MAX_MESSAGE_BYTES + 1))
    expect(await ended(phone.device)).toMatchObject({ code: 'frame_too_large' })
  })

  it('[remote protocol, The bare error frame] a token_ack without its rotation ends the connection', async () => {
    phone.device.send({ type: 'token_ack' })
    expect(await ended(phone.device)).toMatchObject({ code: 'invalid_frame' })
  })

  it('[D36] a ninth connection of a device takes the place of its longest silent one', async () => {
    const nowMs = stopClock()
    const back = async () => (await comeBack(phone, { token: phone.paired.token })).device
    const more: Device[] = []
    for (let n = 1; n <= 7; n++) {
      setClock(nowMs + n * 1_000)
      more.push(await back())
    }
    setClock(nowMs + 20_000)
    await phone.device.request({ type: 'list_sessions' })
    await back()
    const [silent] = more
    expect(silent && (await ended(silent))).toMatchObject({ code: 'idle_timeout' })
    await phone.device.request({ type: 'list_sessions' })
  })
})

describe('requests', () => {
  it('[RF 10] an operation of a session needs it to be shared, under this epoch', async () => {
    const envelope = { session_id: 'nobody', registration_epoch: 1 }
    expect(await phone.device.request({ type: 'attach_session' }, envelope)).toMatchObject({
      result: { type: 'error', code: 'not_found' },
    })
    const answer = await phone.device.request({ type: 'submit_prompt', prompt: 'hi' }, envelope)
    expect(answer).toMatchObject({ receipt: 'rejected', result: { code: 'not_found' } })
    expect(await phone.device.request({ type: 'detach_session' }, envelope)).toMatchObject({
      result: { type: 'detached' },
    })
  })

  it('[RF 28] a status that nobody knows is `unknown`, and never an error', async () => {
    const answer = await phone.device.request({ type: 'get_request_status', target_request_id: 'x' })
    expect(answer.result).toEqual({ type: 'request_status', target_request_id: 'x', receipt: 'unknown' })
    expect(answer).not.toHaveProperty('receipt')
  })

  it('[remote protocol, Thread names] a connection that asks for them has them in both directions, alone', async () => {
    const { device, answer } = await comeBack(phone, { token: phone.paired.token, wire_names: 'thread' })
    expect(answer).toMatchObject({ type: 'authenticated', wire_names: 'thread' })
    await hibernate(client.userId)
    expect(await device.request({ type: 'subscribe_threads' })).toMatchObject({
      result: { type: 'threads', threads: [], subscribed: true },
    })
    expect(await device.request({ type: 'list_sessions' })).toMatchObject({
      result: { type: 'error', code: 'invalid_request' },
    })
    expect(await phone.device.request({ type: 'list_sessions' })).toMatchObject({
      result: { type: 'sessions', sessions: [] },
    })
  })
})
