import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  comeBack,
  type Device,
  type Frame,
  type PairedDevice,
  pairDevice,
} from '../support/workers/device.ts'
import { dropFakeSessions, FakeSession, text } from '../support/workers/fake-session.ts'
import { hibernate, insideGateway, ringGatewayAlarm } from '../support/workers/gateway-object.ts'
import { Hold, until } from '../support/workers/hold.ts'
import { type Client, makeClient } from '../support/workers/router.ts'

let client: Client
let phone: PairedDevice
beforeEach(async () => {
  client = await makeClient()
  phone = await pairDevice(client)
})
afterEach(() => {
  // What it still waits for would be asked of sessions that are no more.
  phone.device.close()
  dropFakeSessions()
  vi.useRealTimers()
})

let named = 0
/** A session that is listed. */
async function listed(): Promise<FakeSession> {
  const session = new FakeSession(client.userId, `session-${++named}`)
  await session.list()
  return session
}

const at = ({ id }: FakeSession, registration_epoch = 1) => ({ session_id: id, registration_epoch })
const attach = (session: FakeSession, resume?: Frame, device: Device = phone.device) =>
  device.request({ type: 'attach_session', ...(resume ? { resume } : {}) }, at(session))
const detach = (session: FakeSession, device: Device = phone.device) =>
  device.request({ type: 'detach_session' }, at(session))
/** Sends without waiting for the answer. */
const send = (request_id: string, operation: Frame, session: FakeSession, device: Device = phone.device) =>
  device.send({ protocol_version: 1, request_id, ...at(session), operation })
/** A cursor of this gateway. */
const cursor = (last_sequence: number, more: Frame = {}): Frame => ({
  gateway_id: phone.paired.gateway_id,
  instance_id: phone.paired.instance_id,
  last_sequence,
  ...more,
})
/** Another connection of the same device. */
const another = async () => (await comeBack(phone, { token: phone.paired.token })).device

/** Sequence and what the event says, of as many events as are named. */
async function heard(count: number, device: Device = phone.device): Promise<[unknown, unknown][]> {
  const events: [unknown, unknown][] = []
  for (let n = 0; n < count; n++) {
    const frame = await device.next()
    if (frame.kind !== 'event') throw new Error(`no event: ${JSON.stringify(frame)}`)
    const event = frame.event as Frame
    events.push([frame.sequence, event.text ?? event.reason ?? event.type])
  }
  return events
}
/** Everything that was sent before has arrived: an answer comes behind it. */
async function nothingMore(device: Device = phone.device): Promise<void> {
  await device.request({ type: 'list_sessions' })
  expect(device.waiting).toEqual([])
}

describe('attaching', () => {
  it('[remote protocol, Attaching] a snapshot, then the events behind its sequence', async () => {
    const session = await listed()
    session.happen(text('old'))
    expect(await attach(session)).toEqual({
      kind: 'response',
      protocol_version: 1,
      request_id: expect.any(String),
      result: {
        type: 'attached',
        gateway_id: phone.paired.gateway_id,
        instance_id: phone.paired.instance_id,
        snapshot: expect.objectContaining({ sequence: 1, snapshot_id: 'cut 0' }),
      },
    })
    expect(await session.tell(text('a'), text('b'))).toBe(true)
    expect(await phone.device.next()).toEqual({
      kind: 'event',
      protocol_version: 1,
      session_id: session.id,
      registration_epoch: 1,
      sequence: 2,
      generation: 0,
      event: { type: 'text_delta', text: 'a' },
    })
    expect(await heard(1)).toEqual([[3, 'b']])
  })

  it('[D34] nothing goes before the answer, and what was pushed meanwhile follows it once', async () => {
    const session = await listed()
    const hold = new Hold()
    session.after = (method) => (method === 'attach' ? hold.wait() : Promise.resolve())
    send('a', { type: 'attach_session' }, session)
    await hold.reached()
    expect(await session.tell(text('a'))).toBe(true)
    expect(await session.tell(text('b'))).toBe(true)
    await nothingMore()
    hold.release()
    expect(await phone.device.next()).toMatchObject({
      request_id: 'a',
      result: { snapshot: { sequence: 0 } },
    })
    expect(await heard(2)).toEqual([
      [1, 'a'],
      [2, 'b'],
    ])
    await session.tell(text('c'))
    expect(await heard(1)).toEqual([[3, 'c']])
    await nothingMore()
  })

  it('[D34] a push that came before the cut of the answer is not sent again', async () => {
    const session = await listed()
    const hold = new Hold()
    session.before = (method) => (method === 'attach' ? hold.wait() : Promise.resolve())
    send('a', { type: 'attach_session' }, session)
    await hold.reached()
    await session.tell(text('a'))
    hold.release()
    expect(await phone.device.next()).toMatchObject({
      request_id: 'a',
      result: { snapshot: { sequence: 1 } },
    })
    await nothingMore()
    expect(session.count('pull')).toBe(0)
  })

  it('[RF 10] an unknown session is not_found, and another epoch stale_session', async () => {
    const session = await listed()
    const unknown = await phone.device.request(
      { type: 'attach_session' },
      { session_id: 'none', registration_epoch: 1 },
    )
    expect(unknown).toMatchObject({ result: { type: 'error', code: 'not_found' } })
    expect(unknown).not.toHaveProperty('receipt')
    expect(await phone.device.request({ type: 'attach_session' }, at(session, 2))).toMatchObject({
      result: { type: 'error', code: 'stale_session' },
    })
    expect(session.asked).toEqual([])
  })

  it('[RF 12] attaching again replaces the subscription, so that each event comes once', async () => {
    const session = await listed()
    await attach(session)
    await session.tell(text('a'))
    await heard(1)
    await attach(session)
    await session.tell(text('b'))
    expect(await heard(1)).toEqual([[2, 'b']])
    await nothingMore()
  })

  it('[RF 12] an attach that a later one overtakes has its own answer, and counts for nothing', async () => {
    const session = await listed()
    const hold = new Hold()
    session.before = (method) =>
      method === 'attach' && session.count('attach') === 1 ? hold.wait() : Promise.resolve()
    send('first', { type: 'attach_session' }, session)
    await hold.reached()
    send('second', { type: 'attach_session' }, session)
    expect(await phone.device.next()).toMatchObject({
      request_id: 'first',
      result: { type: 'error', code: 'owner_unavailable' },
    })
    expect(await phone.device.next()).toMatchObject({ request_id: 'second', result: { type: 'attached' } })
    await session.tell(text('a'))
    hold.release()
    expect(await heard(1)).toEqual([[1, 'a']])
    await nothingMore()
  })

  it('[RF 12] a detach answers the attach that waits, and then itself', async () => {
    const session = await listed()
    const hold = new Hold()
    session.before = () => hold.wait()
    send('first', { type: 'attach_session' }, session)
    await hold.reached()
    send('second', { type: 'detach_session' }, session)
    expect(await phone.device.next()).toMatchObject({ request_id: 'first', result: { type: 'error' } })
    expect(await phone.device.next()).toMatchObject({ request_id: 'second', result: { type: 'detached' } })
    hold.release()
    expect(await session.tell(text('a'))).toBe(false)
    await nothingMore()
  })

  it('[RF 12] a session that fails is owner_unavailable without a receipt, and nothing is followed', async () => {
    const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const session = await listed()
    session.before = () => Promise.reject(new Error('away'))
    const answer = await attach(session)
    warned.mockRestore()
    expect(answer).toMatchObject({ result: { type: 'error', code: 'owner_unavailable' } })
    expect(answer).not.toHaveProperty('receipt')
    expect(await session.tell(text('a'))).toBe(false)
    await nothingMore()
  })

  it('[RF 12] a snapshot beyond a frame is internal, and nothing is followed', async () => {
    const session = await listed()
    session.title = 'x'.repeat(256 * 1024)
    expect(await attach(session)).toMatchObject({ result: { type: 'error', code: 'internal' } })
    expect(await session.tell(text('a'))).toBe(false)
    await nothingMore()
  })

  it('[RF 10] detaching always succeeds, and ends the events', async () => {
    const session = await listed()
    await attach(session)
    expect(await detach(session)).toMatchObject({ result: { type: 'detached' } })
    expect(await session.tell(text('a'))).toBe(false)
    expect(
      await phone.device.request({ type: 'detach_session' }, { session_id: 'none', registration_epoch: 9 }),
    ).toMatchObject({ result: { type: 'detached' } })
    await nothingMore()
  })

  it('[RF 8] a thread connection hears thread names, and texts stay as they are', async () => {
    const other = await pairDevice(client, { wire_names: 'thread' })
    const session = await listed()
    const answer = await other.device.request(
      { type: 'attach_thread' },
      { thread_id: session.id, registration_epoch: 1 },
    )
    expect(answer).toMatchObject({ result: { snapshot: { thread: { thread_id: session.id } } } })
    const words = '{"session_id":"session"}'
    await session.tell(text(words))
    expect(await other.device.next()).toMatchObject({ thread_id: session.id, event: { text: words } })
    const origin = { kind: 'user', threads: [{ session_id: 'x', title: 'y' }] }
    await session.tell(JSON.stringify({ type: 'turn_started', prompt: 'p', origin }))
    expect(await other.device.next()).toMatchObject({
      event: { origin: { kind: 'user', threads: [{ thread_id: 'x', title: 'y' }] } },
    })
    session.replace('cut 1')
    await session.push({ snapshot: session.snapshot() })
    const snapshot = await other.device.next()
    expect(snapshot).toMatchObject({ event: { snapshot: { thread: { thread_id: session.id } } } })
    expect(JSON.stringify(snapshot)).not.toContain('session_id')
    await session.unlist('sharing_disabled')
    expect(await other.device.next()).toMatchObject({
      thread_id: session.id,
      event: { type: 'thread_closed', reason: 'sharing_disabled' },
    })
  })
})

describe('resuming', () => {
  it('[U01] every event after the cursor, in order, behind the answer', async () => {
    const session = await listed()
    session.happen(...['a', 'b', 'c', 'd'].map(text))
    session.pulledAtOnce = 2
    expect(await attach(session, cursor(1))).toMatchObject({
      result: { type: 'resumed', next_sequence: 2, gateway_id: phone.paired.gateway_id },
    })
    expect(await heard(3)).toEqual([
      [2, 'b'],
      [3, 'c'],
      [4, 'd'],
    ])
    await nothingMore()
  })

  it('[RF 12] a cursor of another gateway or instance gets a snapshot and is told why', async () => {
    const session = await listed()
    session.happen(text('a'))
    for (const foreign of [{ gateway_id: 'f'.repeat(32) }, { instance_id: 'f'.repeat(32) }])
      expect(await attach(session, cursor(1, foreign))).toMatchObject({
        result: { type: 'attached', resync: 'gateway_restarted', snapshot: { sequence: 1 } },
      })
    expect(session.asked[0]?.given[1]).toMatchObject({ after: null, snapshotId: null })
  })

  it('[RF 12] without an instance the sequence alone decides', async () => {
    const session = await listed()
    session.happen(text('a'))
    const { instance_id: _, ...rest } = cursor(0, { snapshot_id: 'cut 0' })
    expect(await attach(session, rest)).toMatchObject({ result: { type: 'resumed', next_sequence: 1 } })
    expect(await heard(1)).toEqual([[1, 'a']])
  })

  it('[RF 12] what the session says of a cursor is passed on, and a snapshot behind the events follows them', async () => {
    const session = await listed()
    session.happen(text('a'), text('b'))
    session.floor = 1
    expect(await attach(session, cursor(0))).toMatchObject({ result: { type: 'attached', resync: 'lagged' } })
    session.replace('cut 1')
    expect(await attach(session, cursor(1))).toMatchObject({ result: { type: 'resumed', next_sequence: 2 } })
    expect(await heard(2)).toEqual([
      [2, 'b'],
      [2, 'snapshot'],
    ])
    expect(await attach(session, cursor(2, { snapshot_id: 'cut 1' }))).toMatchObject({
      result: { type: 'resumed', next_sequence: 3 },
    })
    await nothingMore()
  })

  it('[U04] resuming on two sockets shows the text once on each', async () => {
    const session = await listed()
    session.happen(text('a'), text('b'))
    const second = await another()
    await attach(session, cursor(1))
    await attach(session, cursor(1), second)
    await session.tell(text('c'))
    for (const device of [phone.device, second]) {
      expect(await heard(2, device)).toEqual([
        [2, 'b'],
        [3, 'c'],
      ])
      await nothingMore(device)
    }
  })
})

describe('what sessions tell', () => {
  it('[D34] a gap is pulled, once for all who lack the same', async () => {
    const session = await listed()
    const second = await another()
    await attach(session)
    await attach(session, undefined, second)
    session.happen(text('lost'))
    await session.tell(text('b'))
    for (const device of [phone.device, second]) {
      expect(await heard(2, device)).toEqual([
        [1, 'lost'],
        [2, 'b'],
      ])
      await nothingMore(device)
    }
    expect(session.count('pull')).toBe(1)
  })

  it('[D34] a snapshot does not stand for events that were left out of a push: they are asked for', async () => {
    const session = await listed()
    await attach(session)
    session.happen(text('a'), text('b'))
    session.replace('cut 1')
    await session.push({ snapshot: session.snapshot() })
    expect(await heard(3)).toEqual([
      [1, 'a'],
      [2, 'b'],
      [2, 'snapshot'],
    ])
    await nothingMore()
  })

  it('[D34] what is pushed while a pull is under way is neither lost nor sent twice', async () => {
    const session = await listed()
    await attach(session)
    const hold = new Hold()
    session.after = (method) => (method === 'pull' ? hold.wait() : Promise.resolve())
    session.happen(text('a'))
    await session.push({})
    await hold.reached()
    await session.tell(text('b'))
    hold.release()
    expect(await heard(2)).toEqual([
      [1, 'a'],
      [2, 'b'],
    ])
    await session.tell(text('c'))
    expect(await heard(1)).toEqual([[3, 'c']])
    await nothingMore()
  })

  it('[D34] who joins a pull that was begun before an event gets that event, too', async () => {
    const session = await listed()
    const second = await another()
    await attach(session)
    const attaching = new Hold()
    const pulling = new Hold()
    session.after = (method) =>
      method === 'pull' && session.count('pull') === 1
        ? pulling.wait()
        : method === 'attach'
          ? attaching.wait()
          : Promise.resolve()
    send('second', { type: 'attach_session' }, session, second)
    await attaching.reached()
    session.happen(text('a'))
    await session.push({})
    await pulling.reached()
    // The second device begins where the first one waits, and lacks one more.
    await session.tell(text('b'))
    attaching.release()
    expect(await second.next()).toMatchObject({ request_id: 'second', result: { snapshot: { sequence: 0 } } })
    await nothingMore(second)
    pulling.release()
    for (const device of [phone.device, second]) {
      expect(await heard(2, device)).toEqual([
        [1, 'a'],
        [2, 'b'],
      ])
      await nothingMore(device)
    }
  })

  it('[D34] events that were sent before are not sent again', async () => {
    const session = await listed()
    await attach(session)
    await session.tell(text('a'))
    await session.push({ first: 1, events: [text('a')], last: 1 })
    session.happen(text('b'))
    await session.push({ first: 1, events: [text('a'), text('b')], last: 2 })
    expect(await heard(2)).toEqual([
      [1, 'a'],
      [2, 'b'],
    ])
    await nothingMore()
  })

  it('[RF 12] lost events are told with resync_required, and a snapshot follows', async () => {
    const session = await listed()
    await attach(session)
    session.happen(text('a'), text('b'))
    session.floor = 2
    session.replace('cut 1')
    await session.push({})
    expect(await heard(2)).toEqual([
      [2, 'lagged'],
      [2, 'snapshot'],
    ])
    await session.tell(text('c'))
    expect(await heard(1)).toEqual([[3, 'c']])
  })

  it('[RF 12] a snapshot is sent once, and an older one never', async () => {
    const session = await listed()
    await attach(session)
    session.replace('cut 1')
    const older = session.snapshot()
    await session.push({ snapshot: older })
    await session.push({ snapshot: older })
    await session.tell(text('a'))
    session.cut = { id: 'cut 2', sequence: 0 }
    await session.push({ snapshot: { ...older, id: 'cut 2' } })
    expect(await heard(2)).toEqual([
      [0, 'snapshot'],
      [1, 'a'],
    ])
    await nothingMore()
  })

  it('[RF 12] several sessions on one connection each have their own sequence', async () => {
    const [one, two] = [await listed(), await listed()]
    await attach(one)
    await attach(two)
    await one.tell(text('one'))
    await two.tell(text('two'))
    const frames = [await phone.device.next(), await phone.device.next()]
    expect(frames).toMatchObject([
      { session_id: one.id, sequence: 1, event: { text: 'one' } },
      { session_id: two.id, sequence: 1, event: { text: 'two' } },
    ])
  })

  it('[RF 12] what is followed outlives the sleep of the gateway, and ends with the connection', async () => {
    const session = await listed()
    await attach(session)
    await session.tell(text('a'))
    await hibernate(client.userId)
    await session.tell(text('b'))
    await hibernate(client.userId)
    session.happen(text('c'))
    await session.tell(text('d'))
    expect(await heard(4)).toEqual([
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
      [4, 'd'],
    ])
    phone.device.close()
    await until(async () => !(await session.push({})))
  })

  it('[D34] all 32 sessions of the list are followed over one connection, and over a sleep', async () => {
    const sessions: FakeSession[] = []
    for (let n = 0; n < 32; n++) {
      const session = new FakeSession(client.userId, crypto.randomUUID())
      session.cut = { id: crypto.randomUUID(), sequence: 0 }
      await session.list()
      await attach(session)
      sessions.push(session)
    }
    await hibernate(client.userId)
    for (const session of sessions) {
      expect(await session.tell(text('a'))).toBe(true)
      expect(await phone.device.next()).toMatchObject({ session_id: session.id, sequence: 1 })
    }
  })

  it('[D34] a session that pulls say is not listed ends its subscription, if the list never does', async () => {
    const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const session = await listed()
    await attach(session)
    session.pullAnswer = { k: 'stale' }
    session.happen(text('a'))
    await session.push({})
    for (let n = 2; n <= 4; n++) {
      await until(() => session.count('pull') === n - 1)
      // Any frame of the device is a reason to try again.
      await phone.device.request({ type: 'list_sessions' })
    }
    expect(await heard(1)).toEqual([[0, 'owner_exited']])
    expect(await session.push({})).toBe(false)
    warned.mockRestore()
  })

  it('[U12] a pull that fails is tried again by the alarm, over a sleep of the gateway', async () => {
    const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const session = await listed()
    await attach(session)
    let fails = true
    session.before = (method) =>
      method === 'pull' && fails ? Promise.reject(new Error('away')) : Promise.resolve()
    session.happen(text('a'))
    await session.push({})
    await until(() => session.count('pull') === 1)
    await nothingMore()
    fails = false
    await hibernate(client.userId)
    await insideGateway(client.userId, async (_sql, state) => {
      // Set for its retry; the test need not wait for it.
      await until(async () => (await state.storage.getAlarm()) !== null)
    })
    await ringGatewayAlarm(client.userId)
    expect(await heard(1)).toEqual([[1, 'a']])
    warned.mockRestore()
  })

  it('[RF 12] an event beyond a frame never leaves: a snapshot stands for it', async () => {
    const noted = vi.spyOn(console, 'error').mockImplementation(() => {})
    const session = await listed()
    await attach(session)
    await session.tell(text('x'.repeat(256 * 1024)))
    expect(await heard(2)).toEqual([
      [1, 'sequence_gap'],
      [1, 'snapshot'],
    ])
    expect(noted).toHaveBeenCalled()
    noted.mockRestore()
    await session.tell(text('b'))
    expect(await heard(1)).toEqual([[2, 'b']])
  })
})

describe('the end of a registration', () => {
  it('[RF 11] who follows is told why, and then what the list is', async () => {
    const session = await listed()
    await phone.device.request({ type: 'subscribe_sessions' })
    await attach(session)
    await session.tell(text('a'))
    await session.unlist('sharing_disabled')
    expect(await heard(2)).toEqual([
      [1, 'a'],
      [1, 'sharing_disabled'],
    ])
    expect(await phone.device.next()).toMatchObject({ kind: 'sessions', sessions: [] })
    expect(await session.tell(text('b'))).toBe(false)
    await nothingMore()
  })

  it('[RF 11] an attach that waits gets stale_session instead', async () => {
    const session = await listed()
    const hold = new Hold()
    session.before = () => hold.wait()
    send('a', { type: 'attach_session' }, session)
    await hold.reached()
    await session.unlist('owner_exited')
    expect(await phone.device.next()).toMatchObject({ request_id: 'a', result: { code: 'stale_session' } })
    hold.release()
    await nothingMore()
  })

  it('[D03] so it is for a session that makes room for others', async () => {
    const session = await listed()
    await attach(session)
    for (let n = 0; n < 32; n++) await listed()
    expect(await heard(1)).toEqual([[0, 'owner_exited']])
  })

  it('[D03] a new registration closes the subscriptions to the one before', async () => {
    const session = await listed()
    await attach(session)
    await session.list({ registration_epoch: 2 })
    expect(await heard(1)).toEqual([[0, 'owner_exited']])
    expect(await session.push({ registrationEpoch: 2 })).toBe(false)
    await nothingMore()
  })
})

describe('a slow reader', () => {
  const BIG = text('x'.repeat(200 * 1024))

  it('[D35] gets no more than it may not have read, and the rest when it is heard of', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const session = await listed()
    const quick = await another()
    await attach(session)
    await attach(session, undefined, quick)
    for (let n = 1; n <= 30; n++) {
      await session.tell(BIG)
      quick.send({ protocol_version: 1, request_id: `r${n}`, operation: { type: 'list_sessions' } })
      while ((await quick.next()).kind !== 'event');
    }
    const isEvent = (frame: object) => 'kind' in frame && frame.kind === 'event'
    const before = phone.device.waiting.filter(isEvent).length
    expect(before).toBeGreaterThan(15)
    expect(before).toBeLessThan(24)
    phone.device.send({ protocol_version: 1, request_id: 'alive', operation: { type: 'list_sessions' } })
    await until(() => phone.device.waiting.filter(isEvent).length === 30)
    const sequences = phone.device.waiting.filter(isEvent).map((frame) => Reflect.get(frame, 'sequence'))
    expect(sequences).toEqual(Array.from({ length: 30 }, (_, n) => n + 1))
  })

  it('[RF 11] gets no list while it has no room, and then the latest one only', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const session = await listed()
    await attach(session)
    await phone.device.request({ type: 'subscribe_sessions' })
    for (let n = 1; n <= 30; n++) await session.tell(BIG)
    const isList = (frame: object) => 'kind' in frame && frame.kind === 'sessions'
    for (const title of ['first', 'second']) await session.list({ title })
    expect(phone.device.waiting.filter(isList)).toEqual([])
    phone.device.send({ protocol_version: 1, request_id: 'alive', operation: { type: 'detach_session' } })
    await until(() => phone.device.waiting.some(isList))
    expect(phone.device.waiting.find(isList)).toMatchObject({ sessions: [{ title: 'second' }] })
  })

  it('[D35] goes on by the alarm when it had time to read', async () => {
    const nowMs = Date.now() + 3_600_000
    vi.useFakeTimers({ toFake: ['Date'] })
    vi.setSystemTime(nowMs)
    const session = await listed()
    await attach(session)
    for (let n = 1; n <= 30; n++) await session.tell(BIG)
    const before = phone.device.waiting.length
    expect(before).toBeLessThan(30)
    vi.setSystemTime(nowMs + 10_000)
    await ringGatewayAlarm(client.userId)
    await until(() => phone.device.waiting.length === 30)
  })

  it('[D35] that takes in less than it is sent, and says nothing for 120 s, is closed with slow_consumer', async () => {
    const nowMs = Date.now() + 3_600_000
    vi.useFakeTimers({ toFake: ['Date'] })
    vi.setSystemTime(nowMs)
    const session = await listed()
    await attach(session)
    const ended = () => phone.device.waiting.find((frame) => 'type' in frame && frame.type === 'error')
    for (let second = 0; second <= 130 && ended() === undefined; second += 5) {
      vi.setSystemTime(nowMs + second * 1000)
      for (let n = 0; n < 25; n++) await session.tell(BIG)
      await ringGatewayAlarm(client.userId)
      if (second < 115) expect(ended()).toBeUndefined()
    }
    await until(() => ended() !== undefined)
    expect(ended()).toMatchObject({ code: 'slow_consumer' })
  })
})
