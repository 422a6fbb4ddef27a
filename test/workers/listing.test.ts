import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { LEASE_HEARTBEAT_MS } from '../../src/core/run/state.ts'
import {
  CreateSessionResponse,
  DeleteSessionResponse,
  ListSessionsResponse,
  UpdateSessionResponse,
} from '../../src/protocol/execution/session.ts'
import { loadSession } from '../../src/storage/session/session-row.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { setClock, stopClock } from '../support/workers/clock.ts'
import { copyOf } from '../support/workers/d1.ts'
import { Hold, until } from '../support/workers/hold.ts'
import { type WatchedList, watchList } from '../support/workers/live-list.ts'
import { type Client, makeClient, parsed, refused, turnAs } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { alarmOf, checkpointOf, crash, inside, ringAlarm } from '../support/workers/session-object.ts'

const models = scriptModels()
const READ = { name: 'read_file', arguments: { path: 'a' } }
const SHELL = { name: 'shell', arguments: { command: 'ls' } }

let client: Client
let id: string
let list: WatchedList
beforeAll(async () => {
  client = await makeClient()
})
beforeEach(async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  vi.spyOn(console, 'warn').mockImplementation(() => {})
  id = await client.newSession('')
  list = watchList(id)
  models.script({ text: ['Hello'] })
})

const turn = async (text = 'hi') => turnAs(await client.execute(id, makeExecute(text)), 'completed')
const put = (patch: object) => client.send('PUT', `/api/v1/sessions/${id}`, patch)
const updated = async (patch: object) => (await parsed(await put(patch), UpdateSessionResponse)).session
const stored = () => inside(id, (sql) => loadSession(sql))
const listed = async () => {
  const { sessions } = await parsed(await client.send('GET', '/api/v1/sessions'), ListSessionsResponse)
  return sessions.find((session) => session.id === id)?.shared
}
const activities = () => list.rows().map(({ activity }) => activity)
/** The gateway was told last that the session is idle after so many runs. */
const toldIdle = (runs = 1) =>
  until(() => {
    const last = list.rows().at(-1)
    return last?.activity === 'idle' && last.turn_count === runs
  })
const epochs = () => [...new Set(list.rows().map(({ registration_epoch }) => registration_epoch))]
const down = () => {
  throw new Error('the gateway is down')
}
/** Nothing more is on its way: what would have come has had its time. */
const quiet = () => inside(id, async () => scheduler.wait(20))

describe('a run', () => {
  it('[D03] lists its session, and tells of it as running and then as idle', async () => {
    expect(await listed()).toBe(false)
    await turn('\n  Fix the last row  \nplease')
    await toldIdle()
    const session = await stored()
    expect(session).toMatchObject({ listed: true, sharingOff: false })
    expect(activities()[0]).toBe('running')
    expect(list.rows().at(-1)).toEqual({
      session_id: id,
      registration_epoch: session?.epoch,
      title: 'Fix the last row',
      workspace: '/project',
      model: 'small',
      harness: 'switchyard',
      turn_count: 1,
      last_active_at: expect.stringMatching(/^\d{4}-.*Z$/),
      activity: 'idle',
      attention: { approval: false, question: false },
      health: 'live',
    })
    expect(await listed()).toBe(true)
    expect((await copyOf(id)).session).toMatchObject({ shared: 1 })
  })

  it('[D03] of a listed session keeps its registration, and counts', async () => {
    await turn()
    await toldIdle()
    await turn()
    await toldIdle(2)
    expect(epochs()).toHaveLength(1)
  })

  it('[D02] that asks the user says so, and goes on when he has answered', async () => {
    models.script({ calls: [SHELL] }, { text: ['Done.'] })
    const paused = await turnAs(await client.execute(id, makeExecute('go')), 'awaiting_tool')
    await until(() => activities().at(-1) === 'awaiting_approval')
    expect(list.rows().at(-1)?.attention).toEqual({ approval: true, question: false })
    const [call] = paused.data.tool_requests
    const results = [{ call_id: call?.call_id ?? '', content: 'R', decision: 'approved' as const }]
    await turnAs(await client.proceed(id, { type: 'tool_results', data: { results } }), 'completed')
    await toldIdle()
    const seen = activities()
    expect(seen.slice(seen.indexOf('awaiting_approval'))).toEqual(['awaiting_approval', 'running', 'idle'])
  })

  it('[D33] that goes on without a change is not told of, however much is said in it', async () => {
    models.script({ calls: [READ] })
    let paused = await turnAs(await client.execute(id, makeExecute('go')), 'awaiting_tool')
    await until(() => list.rows().at(-1)?.model === 'small')
    await quiet()
    const before = list.told.length
    for (let round = 0; round < 3; round++) {
      const results = [{ call_id: paused.data.tool_requests[0]?.call_id ?? '', content: 'R' }]
      paused = await turnAs(
        await client.proceed(id, { type: 'tool_results', data: { results } }),
        'awaiting_tool',
      )
    }
    await quiet()
    expect(list.told).toHaveLength(before)
    await client.proceed(id, { type: 'break' })
    await toldIdle()
  })

  it('[D33] waits for no gateway', async () => {
    const hold = new Hold()
    list.before = hold.wait
    await turn()
    await until(() => list.told.length === 1)
    hold.release()
    // One at a time, and then the newest: what lay between is not told.
    await toldIdle()
    expect(list.rows().at(-1)).toMatchObject({ model: 'small', turn_count: 1 })
    expect(list.told).toHaveLength(2)
  })

  it('[D03] tells again with every heartbeat: a gateway may forget what it was told of a run', async () => {
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] })
    const startMs = stopClock()
    const served = client.execute(id, makeExecute('hi'))
    await hold.reached()
    await until(() => list.rows().at(-1)?.model === 'small')
    for (let beat = 1; beat <= 3; beat++) {
      const before = list.told.length
      setClock(startMs + beat * LEASE_HEARTBEAT_MS)
      await ringAlarm(id)
      await until(() => list.told.length === before + 1)
      expect(list.rows().at(-1)?.activity).toBe('running')
    }
    hold.release()
    await turnAs(await served, 'completed')
  })
})

describe('a changed row', () => {
  it('[D33] leaves at once, and many changes one a second: the newest is told in the end', async () => {
    await updated({ shared: true })
    for (let n = 1; n <= 12; n++) await updated({ title: `title ${n}` })
    expect(list.rows().at(-1)?.title).not.toBe('title 12')
    expect(list.rows().length).toBeLessThanOrEqual(6)
    await until(() => list.rows().at(-1)?.title === 'title 12')
    await quiet()
    expect(list.rows().length).toBeLessThanOrEqual(7)
  })

  it('[D21][D33] waits by one timer of a second at most', async () => {
    const set = vi.spyOn(globalThis, 'setTimeout')
    stopClock()
    await updated({ shared: true })
    for (let n = 1; n <= 12; n++) await updated({ title: `title ${n}` })
    const waits = set.mock.calls.filter(([work]) => work.name === 'rowIsDue').map(([, ms]) => ms)
    expect(waits).toEqual([1_000])
    await until(() => list.rows().at(-1)?.title === 'title 12')
  })

  it('[D03] has the title as it is set', async () => {
    await turn('said first')
    await turn('/not a title')
    await updated({ title: 'Set' })
    await until(() => list.rows().at(-1)?.title === 'Set')
    await updated({ title: '' })
    await until(() => list.rows().at(-1)?.title === 'said first')
  })

  it('[D03] has a title from the first words that are no command', async () => {
    await turn('/compact')
    await turn(' \n')
    await toldIdle(2)
    expect(list.rows().at(-1)?.title).toBe('')
    await turn('words')
    await until(() => list.rows().at(-1)?.title === 'words')
    await crash(id)
    await turn('more words')
    await until(() => list.rows().at(-1)?.turn_count === 4)
    expect(list.rows().at(-1)?.title).toBe('words')
  })

  it('[D47] of an encrypted session shows no word of it', async () => {
    const body = { title: '', key_id: 'kf2_k' }
    const made = await client.send('POST', '/api/v1/sessions', body)
    id = (await parsed(made, CreateSessionResponse, 201)).session.id
    list.sessionId = id
    await turn('a secret')
    await toldIdle()
    expect(list.rows().at(-1)).toMatchObject({ title: '', workspace: '/project', model: 'small' })
    expect(JSON.stringify(list.told)).not.toContain('secret')
    await updated({ title: 'Clear' })
    await until(() => list.rows().at(-1)?.title === 'Clear')
  })
})

describe('sharing', () => {
  it('[D03] switched off takes the session off at once, and runs do not list it again', async () => {
    await turn()
    await toldIdle()
    const epoch = (await stored())?.epoch
    expect(await updated({ shared: false })).toMatchObject({ shared: false })
    expect(list.gone()).toEqual([{ sessionId: id, registrationEpoch: epoch, reason: 'sharing_disabled' }])
    expect(await listed()).toBe(false)
    const before = list.told.length
    await turn()
    await quiet()
    expect(list.told).toHaveLength(before)
    expect(await stored()).toMatchObject({ listed: false, epoch })
  })

  it('[D03] switched on lists at once, under a greater epoch each time', async () => {
    setClock(Date.now())
    expect(await updated({ shared: true })).toMatchObject({ shared: true })
    expect(list.rows()).toMatchObject([{ activity: 'idle', turn_count: 0, model: '', title: '' }])
    await updated({ shared: true })
    expect(epochs()).toHaveLength(1)
    await updated({ shared: false })
    setClock(Date.now() - 60_000)
    await updated({ shared: true })
    const [first = 0, second = 0] = epochs()
    expect(second).toBeGreaterThan(first)
    expect(await listed()).toBe(true)
  })

  it('[D03] ends with the archive, which cannot be shared; restored, the next run lists it', async () => {
    await turn()
    await toldIdle()
    const epoch = (await stored())?.epoch
    expect(await updated({ archived: true })).toMatchObject({ archived: true, shared: false })
    expect(list.gone()).toEqual([{ sessionId: id, registrationEpoch: epoch, reason: 'owner_exited' }])
    const before = await stored()
    expect(await refused(await put({ shared: true }))).toMatchObject({
      status: 422,
      code: 'invalid_request',
      message: expect.stringContaining('archived'),
    })
    expect(await refused(await put({ title: 'x', archived: true, shared: true }))).toMatchObject({
      status: 422,
    })
    expect(await stored()).toEqual(before)
    expect(await updated({ archived: false })).toMatchObject({ shared: false })
    await turn()
    await toldIdle(2)
    expect(epochs()).toHaveLength(2)
  })

  it('[D03] an archived session is restored and shared in one', async () => {
    await updated({ archived: true })
    expect(await updated({ archived: false, shared: true })).toMatchObject({ archived: false, shared: true })
    expect(list.rows()).toHaveLength(1)
  })

  it('[D03] switched off while a turn is served, it stays off', async () => {
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] })
    const served = client.execute(id, makeExecute('hi'))
    await hold.reached()
    await updated({ shared: false })
    hold.release()
    await turnAs(await served, 'completed')
    await quiet()
    expect('gone' in (list.told.at(-1) ?? {})).toBe(true)
    expect(await stored()).toMatchObject({ listed: false, sharingOff: true })
  })
})

describe('a gateway that takes a session off', () => {
  /** As the gateway says it. */
  const delisted = (epoch: number, userId = client.userId) =>
    inside(id, (_sql, _state, session) => session.delisted(userId, epoch))
  const epochOf = async () => (await stored())?.epoch ?? 0

  it('[D03] leaves it unlisted until its next run, here and in D1', async () => {
    await turn()
    await toldIdle()
    const epoch = await epochOf()
    await delisted(epoch)
    expect(await stored()).toMatchObject({ listed: false, sharingOff: false, epoch })
    await until(async () => (await listed()) === false)
    expect(list.gone()).toEqual([])
    await turn()
    await toldIdle(2)
    expect(await epochOf()).toBeGreaterThan(epoch)
    expect(await listed()).toBe(true)
  })

  it('[D03] says nothing of another registration, or to another user', async () => {
    await turn()
    await toldIdle()
    const epoch = await epochOf()
    await delisted(epoch - 1)
    await delisted(epoch + 1)
    await delisted(epoch, 'somebody else')
    expect(await stored()).toMatchObject({ listed: true, epoch })
  })

  it('[D03] in the middle of a run finds it listed anew', async () => {
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] })
    const served = client.execute(id, makeExecute('hi'))
    await hold.reached()
    const epoch = await epochOf()
    await delisted(epoch)
    expect(await epochOf()).toBeGreaterThan(epoch)
    hold.release()
    await turnAs(await served, 'completed')
    await toldIdle()
    expect(list.rows().at(-1)?.registration_epoch).toBe(await epochOf())
  })

  it('[D03] and does not know the row of a run any more, is told of a new registration', async () => {
    list.kept = false
    list.before = () => {
      if (list.rows().length > 1) list.kept = null
    }
    await turn()
    await toldIdle()
    expect(epochs()).toHaveLength(2)
    expect(list.rows().at(-1)?.registration_epoch).toBe(await epochOf())
  })

  it('[D03] and does not know an idle row any more, is right', async () => {
    await turn()
    await toldIdle()
    list.kept = false
    await updated({ title: 'other' })
    await until(async () => (await stored())?.listed === false)
    expect(epochs()).toHaveLength(1)
    expect(list.gone()).toEqual([])
  })

  it('[D33] however often it says so, is told once a second at most, and the session is given up in the end', async () => {
    list.kept = false
    await turn()
    await until(async () => (await stored())?.listed === false)
    expect(list.rows().length).toBeLessThanOrEqual(5)
  })
})

describe('a gateway that cannot be told', () => {
  const owed = async () => (await checkpointOf(id)).outbox.listing

  it('[D03] is told again by the alarm, at growing intervals, until it has the newest row', async () => {
    stopClock()
    list.before = down
    await turn()
    const waits: number[] = []
    for (let attempt = 1; attempt <= 5; attempt++) {
      await until(async () => (await alarmOf(id)) !== null)
      const at = (await alarmOf(id)) ?? 0
      waits.push(at - Date.now())
      const before = list.told.length
      setClock(at)
      await ringAlarm(id)
      await until(() => list.told.length > before)
    }
    expect(waits).toEqual([1_000, 1_000, 2_000, 4_000, 8_000])
    expect(await owed()).not.toBeNull()
    list.before = null
    await until(async () => (await alarmOf(id)) !== null)
    setClock((await alarmOf(id)) ?? 0)
    await ringAlarm(id)
    await toldIdle()
    await until(async () => (await alarmOf(id)) === null)
    // What is paid is stored with what is stored next.
    await inside(id, (_sql, _state, session) => session.deleteMemory(client.userId, 'none'))
    expect(await owed()).toBeNull()
  })

  it('[D03] is told by the next object, when this one dies', async () => {
    list.before = down
    await turn()
    await until(() => list.told.length > 0)
    await crash(id)
    list.before = null
    const before = list.told.length
    await client.run(id)
    await until(() => list.told.length > before)
    expect(list.rows().at(-1)).toMatchObject({ activity: 'idle', turn_count: 1, title: 'hi', model: 'small' })
  })

  it('[D03] is told of the end of a run that a crash cut off', async () => {
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait })
    const served = client.execute(id, makeExecute('hi')).catch(() => null)
    await hold.reached()
    await until(() => list.rows().at(-1)?.model === 'small')
    await crash(id)
    await served
    await client.run(id)
    await toldIdle()
    expect(epochs()).toHaveLength(1)
  })

  it('[D03] is told that a session left, too', async () => {
    await turn()
    await toldIdle()
    list.before = down
    await updated({ shared: false })
    expect(list.gone()).toHaveLength(1)
    await crash(id)
    list.before = null
    await client.run(id)
    await until(() => list.gone().length === 2)
    expect(list.gone().at(-1)).toMatchObject({ reason: 'sharing_disabled' })
    expect(list.rows().at(-1)?.activity).toBe('idle')
  })

  it('[D03] holds up the end of a deleted session, not its going: nobody finds it any more', async () => {
    await turn()
    await toldIdle()
    const epoch = (await stored())?.epoch
    stopClock()
    list.before = down
    await parsed(await client.send('DELETE', `/api/v1/sessions/${id}`), DeleteSessionResponse)
    await until(() => list.gone().length === 1)
    expect((await refused(await client.run(id))).status).toBe(404)
    expect((await copyOf(id)).session).toBeUndefined()
    expect(await stored()).not.toBeNull()
    await until(async () => (await alarmOf(id)) !== null)
    list.before = null
    setClock((await alarmOf(id)) ?? 0)
    await ringAlarm(id)
    expect(list.gone().at(-1)).toEqual({ sessionId: id, registrationEpoch: epoch, reason: 'owner_exited' })
    expect(
      await inside(id, (sql) => sql.rows("SELECT name FROM sqlite_master WHERE name = 'session'")),
    ).toEqual([])
  })

  it('[D03] is not asked about a session that was never listed', async () => {
    await parsed(await client.send('DELETE', `/api/v1/sessions/${id}`), DeleteSessionResponse)
    expect(list.told).toEqual([])
  })
})
