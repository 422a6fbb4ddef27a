import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { byteLength } from '../../src/storage/limits.ts'
import { Device, ended, type Frame, type PairedDevice, pairDevice } from '../support/workers/device.ts'
import { dropFakeSessions, FakeSession, text } from '../support/workers/fake-session.ts'
import { hibernate, ringGatewayAlarm } from '../support/workers/gateway-object.ts'
import { until } from '../support/workers/hold.ts'
import { type Client, makeClient } from '../support/workers/router.ts'

const FLOW_ACK = { capabilities: ['flow_ack'] }
const MIB = 1024 * 1024
const BIG = text('x'.repeat(200 * 1024))

let client: Client
let phone: PairedDevice
let session: FakeSession
let nowMs: number
/** UTF-8 bytes of what the phone read before it followed anything. */
let readBefore: number

const bytesOf = (...frames: object[]): number =>
  frames.reduce((sum, frame) => sum + byteLength(JSON.stringify(frame)), 0)
const within = () => ({ session_id: session.id, registration_epoch: 1 })
const attach = async (device: Device): Promise<number> =>
  bytesOf(await device.request({ type: 'attach_session' }, within()))
/** What has come and is not counted as read. */
const arrived = () => phone.device.waiting
const isEvent = (frame: object) => 'kind' in frame && frame.kind === 'event'
const sequences = () =>
  arrived()
    .filter(isEvent)
    .map((frame) => Reflect.get(frame, 'sequence'))
const ack = (bytes: number, device = phone.device) => device.send({ type: 'flow_ack', bytes })
/** All that came so far, less so many of the newest frames. */
const readBut = (unread = 0) => readBefore + bytesOf(...arrived().slice(0, arrived().length - unread))
let asked = 0
/** Everything that was sent before has arrived when the answer to this has. */
async function ask(): Promise<void> {
  const request_id = `ask-${++asked}`
  phone.device.send({ protocol_version: 1, request_id, operation: { type: 'list_sessions' } })
  await until(() => arrived().some((frame) => 'request_id' in frame && frame.request_id === request_id))
}
const farewell = () => arrived().find((frame) => 'type' in frame && frame.type === 'error')

beforeEach(async () => {
  nowMs = Date.now() + 3_600_000
  vi.useFakeTimers({ toFake: ['Date'] })
  vi.setSystemTime(nowMs)
  client = await makeClient()
  phone = await pairDevice(client, FLOW_ACK)
  session = new FakeSession(client.userId, `session-${crypto.randomUUID()}`)
  await session.list()
  readBefore = bytesOf(phone.paired) + (await attach(phone.device))
})
afterEach(() => {
  phone.device.close()
  dropFakeSessions()
  vi.useRealTimers()
})

describe('[D35] a device that acknowledges what it reads', () => {
  it('is sent no more than 4 MiB that it has not read, whatever else it sends, and however long it takes', async () => {
    ack(readBut())
    for (let n = 1; n <= 30; n++) {
      await session.tell(BIG)
      await ask()
      vi.setSystemTime(nowMs + n * 1_000)
    }
    const ahead = () => bytesOf(...arrived())
    const before = sequences().length
    expect(ahead()).toBeGreaterThan(4 * MIB)
    expect(ahead()).toBeLessThan(4 * MIB + 256 * 1024)
    const first = arrived().findIndex(isEvent)
    ack(readBefore + bytesOf(...arrived().slice(0, first + 4)))
    await until(() => sequences().length >= before + 2)
    await ask()
    expect(sequences().length).toBeLessThan(before + 6)
    ack(readBut())
    await until(() => sequences().length === 30)
    expect(sequences()).toEqual(Array.from({ length: 30 }, (_, n) => n + 1))
  })

  it('is never cut, however slowly it reads', async () => {
    ack(readBut())
    let read = 0
    for (let second = 0; second <= 600; second += 20) {
      vi.setSystemTime(nowMs + second * 1_000)
      for (let n = 0; n < 4; n++) await session.tell(BIG)
      if (second % 100 === 0) {
        read += 3
        ack(readBefore + bytesOf(...arrived().slice(0, read)))
      }
      await ringGatewayAlarm(client.userId)
      await ask()
    }
    expect(farewell()).toBeUndefined()
    expect(bytesOf(...arrived().slice(read))).toBeGreaterThan(4 * MIB)
  })

  it('is cut when it has acknowledged nothing more for 120 s, whatever else it sends', async () => {
    ack(readBut())
    for (let n = 0; n < 25; n++) await session.tell(BIG)
    for (let second = 10; second <= 110; second += 10) {
      vi.setSystemTime(nowMs + second * 1_000)
      await session.tell(BIG)
      ack(readBefore)
      await ringGatewayAlarm(client.userId)
      await ask()
    }
    expect(farewell()).toBeUndefined()
    vi.setSystemTime(nowMs + 121_000)
    await ringGatewayAlarm(client.userId)
    await until(() => farewell() !== undefined)
    expect(farewell()).toMatchObject({ code: 'slow_consumer' })
  })

  it('has read all of it when it says more than it was sent', async () => {
    ack(readBut())
    for (let n = 1; n <= 30; n++) await session.tell(BIG)
    await ask()
    expect(sequences().length).toBeLessThan(30)
    ack(Number.MAX_SAFE_INTEGER)
    await until(() => sequences().length === 30)
  })

  it('gets no answer to that', async () => {
    ack(readBut())
    await ask()
    expect(arrived()).toHaveLength(1)
  })

  it.each([{}, { bytes: -1 }, { bytes: 1.5 }, { bytes: '7' }, { bytes: null }])(
    'is told invalid_frame when it says %j, and its connection ends',
    async (said) => {
      phone.device.send({ type: 'flow_ack', ...said })
      expect(await ended(phone.device)).toMatchObject({ code: 'invalid_frame' })
    },
  )

  it('has as much to read after a sleep of the gateway as before, to the byte', async () => {
    ack(readBut())
    for (let n = 1; n <= 30; n++) await session.tell(BIG)
    await ask()
    const before = sequences().length
    await hibernate(client.userId)
    await session.tell(BIG)
    await ask()
    expect(sequences()).toHaveLength(before)
    // One byte over what may be ahead of it; then none.
    const surplus = bytesOf(...arrived()) - 4 * MIB
    ack(readBefore + surplus - 1)
    await hibernate(client.userId)
    await ask()
    expect(sequences()).toHaveLength(before)
    ack(readBut())
    await until(() => sequences().length === 31)
  })

  it('is cut after 120 s in which the gateway slept, too', async () => {
    ack(readBut())
    for (let n = 1; n <= 30; n++) await session.tell(BIG)
    await ask()
    await hibernate(client.userId)
    vi.setSystemTime(nowMs + 125_000)
    await ringGatewayAlarm(client.userId)
    await until(() => farewell() !== undefined)
    expect(farewell()).toMatchObject({ code: 'slow_consumer' })
  })
})

describe('[D35] the capability flow_ack', () => {
  const capabilities = async (device: Device): Promise<unknown> => {
    const { result } = await device.request({ type: 'list_sessions' })
    return (result as Frame).capabilities
  }

  it('is told to a device that has named it', async () => {
    expect(await capabilities(phone.device)).toContain('flow_ack')
  })

  it('is not told to another, whose acknowledgement is an unknown frame', async () => {
    const other = await pairDevice(client)
    expect(await capabilities(other.device)).not.toContain('flow_ack')
    ack(1, other.device)
    expect(await other.device.next()).toMatchObject({ request_id: '', result: { code: 'invalid_request' } })
    other.device.close()
  })

  it('is named again when the device comes back', async () => {
    const device = await Device.dial(phone.path)
    const { token } = phone.paired
    const device_id = phone.id
    await device.ask({ type: 'authenticate', protocol_version: 1, device_id, token, ...FLOW_ACK })
    expect(await capabilities(device)).toContain('flow_ack')
    device.close()
  })

  it('[D38] is told to a program with the owner’s token, which names nothing', async () => {
    const headers = { Authorization: `Bearer ${client.token}` }
    const device = await Device.dial('/api/v1/gateway', { headers })
    expect(await capabilities(device)).toContain('flow_ack')
    device.close()
  })
})
