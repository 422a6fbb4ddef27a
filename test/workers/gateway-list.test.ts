import { env } from 'cloudflare:workers'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { liveRow } from '../../src/core/live-row.ts'
import type { GatewayRpc } from '../../src/gateway/rpc.ts'
import { RemoteSessionInfo } from '../../src/protocol/remote/session-info.ts'
import { Session } from '../../src/session/session.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { setClock, stopClock } from '../support/workers/clock.ts'
import { comeBack, type Device, type PairedDevice, pairDevice } from '../support/workers/device.ts'
import { hibernate, insideGateway, ringGatewayAlarm } from '../support/workers/gateway-object.ts'
import { Hold } from '../support/workers/hold.ts'
import { type Client, makeClient, turnAs } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'

const models = scriptModels()
const Push = z.object({ kind: z.literal('sessions'), sessions: z.array(RemoteSessionInfo) })

let client: Client
let phone: PairedDevice
beforeEach(async () => {
  client = await makeClient()
  phone = await pairDevice(client)
})
afterEach(() => {
  vi.useRealTimers()
})

const gateway = () => env.GATEWAY.getByName(client.userId) as unknown as GatewayRpc
const put = (row: RemoteSessionInfo) => gateway().putRow(client.userId, row)
const subscribe = (device: Device = phone.device) => device.request({ type: 'subscribe_sessions' })
const listed = async () => {
  const { result } = await phone.device.request({ type: 'list_sessions' })
  return z.object({ sessions: z.array(RemoteSessionInfo) }).parse(result).sessions
}
/** Pushes, until one shows what is looked for. */
async function pushUntil(isIt: (rows: RemoteSessionInfo[]) => boolean, device: Device = phone.device) {
  for (;;) {
    const { sessions } = Push.parse(await device.next())
    if (isIt(sessions)) return sessions
  }
}
const rowOf = (session_id: string, more: Partial<RemoteSessionInfo> = {}): RemoteSessionInfo => ({
  session_id,
  registration_epoch: 1,
  title: 'a session',
  model: '',
  activity: 'idle',
  attention: { approval: false, question: false },
  health: 'live',
  ...more,
})

describe('the live list', () => {
  it('[remote protocol, Sessions] shows a run while it goes on, and how it stands then', async () => {
    await subscribe()
    const id = await client.newSession('Fix the parser')
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] })
    const answer = client.execute(id, makeExecute('hi'))
    const [running] = await pushUntil((rows) => rows[0]?.activity === 'running')
    expect(running).toMatchObject({ session_id: id, title: 'Fix the parser', health: 'live', turn_count: 1 })
    hold.release()
    await turnAs(await answer, 'completed')
    const [idle] = await pushUntil((rows) => rows[0]?.activity === 'idle')
    expect(idle).toMatchObject({
      session_id: id,
      harness: 'switchyard',
      registration_epoch: running?.registration_epoch,
    })
    expect(await listed()).toEqual([idle])
  })

  it('[remote protocol, Sessions] a push replaces the list and repeats no capabilities', async () => {
    expect(await subscribe()).toMatchObject({ result: { subscribed: true, capabilities: expect.any(Array) } })
    await put(rowOf('a'))
    const push = await phone.device.next()
    expect(push).toMatchObject({ kind: 'sessions', protocol_version: 1, sessions: [{ session_id: 'a' }] })
    expect(push).not.toHaveProperty('capabilities')
    expect(push).not.toHaveProperty('request_id')
  })

  it('[RF 11] is in the order of the ids, and the same for every device', async () => {
    for (const id of ['b', 'C', 'a', 'B']) await put(rowOf(id))
    expect((await listed()).map(({ session_id }) => session_id)).toEqual(['B', 'C', 'a', 'b'])
  })

  it('[RF 11] following it is for the connection, and outlives the sleep of the gateway', async () => {
    await subscribe()
    const { device: silent } = await comeBack(phone, { token: phone.paired.token })
    await hibernate(client.userId)
    await put(rowOf('a'))
    await pushUntil((rows) => rows.length === 1)
    expect(await phone.device.request({ type: 'list_sessions' })).toMatchObject({
      result: { subscribed: true },
    })
    // The other connection has heard nothing.
    expect(await silent.request({ type: 'list_sessions' })).toMatchObject({ result: { subscribed: false } })
  })

  it('[RF 11] the same row again is no push, and quick changes leave together', async () => {
    await subscribe()
    await put(rowOf('a'))
    await put(rowOf('a'))
    for (let n = 1; n <= 20; n++) await put(rowOf('a', { title: `title ${n}` }))
    const titles: string[] = []
    await pushUntil((rows) => {
      titles.push(rows[0]?.title ?? '')
      return rows[0]?.title === 'title 20'
    })
    expect(titles.length).toBeLessThanOrEqual(3)
    expect(phone.device.waiting).toEqual([])
  })

  it('[RF 11] a list that a device has seen in an answer meanwhile is not pushed to it', async () => {
    const other = await pairDevice(client)
    await subscribe()
    await subscribe(other.device)
    await put(rowOf('a'))
    await pushUntil(([a]) => a?.session_id === 'a')
    // Within the time in which changes gather.
    await put(rowOf('b'))
    expect(await listed()).toHaveLength(2)
    await pushUntil((rows) => rows.length === 2, other.device)
    expect(await listed()).toHaveLength(2)
    expect(phone.device.waiting).toEqual([])
  })

  it('[D03] a session that is shared again has a greater epoch, and a late word of the older one counts for nothing', async () => {
    await put(rowOf('a', { registration_epoch: 7 }))
    await put(rowOf('a', { registration_epoch: 6, title: 'late' }))
    await gateway().removeRow(client.userId, { sessionId: 'a', registrationEpoch: 6, reason: 'owner_exited' })
    expect(await listed()).toMatchObject([{ registration_epoch: 7, title: 'a session' }])
    const stale = await phone.device.request(
      { type: 'attach_session' },
      { session_id: 'a', registration_epoch: 6 },
    )
    expect(stale).toMatchObject({ result: { code: 'stale_session' } })
  })

  it('[U03] a row that could not be stored is no news yet, and is taken when it comes again', async () => {
    await subscribe()
    await put(rowOf('a'))
    await pushUntil((rows) => rows.length === 1)
    const failing = await insideGateway(client.userId, (_sql, state) => {
      const exec = state.storage.sql.exec.bind(state.storage.sql)
      return vi.spyOn(state.storage.sql, 'exec').mockImplementation((query, ...values) => {
        if (/INSERT INTO live_rows/.test(query)) throw new Error('disk I/O error')
        return exec(query, ...values) as never
      })
    })
    const outcome = await put(rowOf('a', { title: 'later' })).then(
      () => 'kept',
      () => 'failed',
    )
    expect(outcome).toBe('failed')
    failing.mockRestore()
    await put(rowOf('a', { title: 'later' }))
    await pushUntil((rows) => rows[0]?.title === 'later')
    await hibernate(client.userId)
    expect(await listed()).toMatchObject([{ title: 'later' }])
  })

  it('[D03] a word that comes after its session has left does not list it again', async () => {
    await put(rowOf('a', { registration_epoch: 5 }))
    await gateway().removeRow(client.userId, { sessionId: 'a', registrationEpoch: 5, reason: 'owner_exited' })
    await put(rowOf('a', { registration_epoch: 5 }))
    expect(await listed()).toEqual([])
    await put(rowOf('a', { registration_epoch: 6 }))
    expect(await listed()).toHaveLength(1)
  })

  it('[D03] saying the same again does not make a session younger', async () => {
    vi.spyOn(Session.prototype, 'delisted').mockResolvedValue(undefined)
    const nowMs = stopClock()
    await put(rowOf('a'))
    setClock(nowMs + 6 * 86_400_000)
    await put(rowOf('a'))
    setClock(nowMs + 7 * 86_400_000)
    await ringGatewayAlarm(client.userId)
    expect(await listed()).toEqual([])
  })

  it('[D03] a session that is shared again is there when its owner is told so, however often that was', async () => {
    const id = await client.newSession()
    for (let n = 0; n < 8; n++) {
      await client.send('PUT', `/api/v1/sessions/${id}`, { shared: false })
      await client.send('PUT', `/api/v1/sessions/${id}`, { shared: true })
      expect(await listed()).toHaveLength(1)
    }
  })

  it.each(['title', 'unshared', 'archived', 'deleted'])(
    '[remote protocol, Sessions] follows a session whose change is: %s',
    async (what) => {
      const id = await client.newSession()
      models.script({ text: ['done'] })
      await turnAs(await client.execute(id, makeExecute('hi')), 'completed')
      await subscribe()
      const path = `/api/v1/sessions/${id}`
      if (what === 'title') {
        await client.send('PUT', path, { title: 'another' })
        await pushUntil((rows) => rows[0]?.title === 'another')
        return
      }
      if (what === 'unshared') await client.send('PUT', path, { shared: false })
      if (what === 'archived') await client.send('PUT', path, { archived: true })
      if (what === 'deleted') await client.send('DELETE', path)
      await pushUntil((rows) => rows.length === 0)
      expect(await listed()).toEqual([])
    },
  )

  it('[D03] holds 32; another takes the place of the one that is idle the longest, which is told', async () => {
    const told = vi.spyOn(Session.prototype, 'delisted').mockResolvedValue(undefined)
    const nowMs = stopClock()
    for (let n = 0; n < 32; n++) {
      setClock(nowMs + n)
      await put(rowOf(String(n).padStart(2, '0'), { activity: n === 0 ? 'running' : 'idle' }))
    }
    setClock(nowMs + 100)
    await put(rowOf('99'))
    const ids = (await listed()).map(({ session_id }) => session_id)
    expect(ids).toHaveLength(32)
    // Session 00 is at work; 01 has been idle the longest.
    expect(ids).not.toContain('01')
    await vi.waitFor(() => expect(told).toHaveBeenCalledWith(client.userId, 1))
  })

  it('[D03] a registration that ended here is not listed again, until its session has another', async () => {
    const told = vi.spyOn(Session.prototype, 'delisted').mockRejectedValue(new Error('lost'))
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    const nowMs = stopClock()
    await put(rowOf('a', { registration_epoch: 5 }))
    setClock(nowMs + 7 * 86_400_000)
    await ringGatewayAlarm(client.userId)
    await vi.waitFor(() => expect(told).toHaveBeenCalled())
    expect(await put(rowOf('a', { registration_epoch: 5 }))).toBe(false)
    expect(await listed()).toEqual([])
    expect(await put(rowOf('a', { registration_epoch: 6 }))).toBe(true)
    expect(await listed()).toMatchObject([{ registration_epoch: 6 }])
    // What could not be told is told by the alarm.
    told.mockResolvedValue(undefined)
    await ringGatewayAlarm(client.userId)
    await vi.waitFor(async () =>
      expect(await insideGateway(client.userId, (sql) => sql.rows('SELECT * FROM delistings'))).toEqual([]),
    )
  })

  it('[D03] who is at work, or waits for an answer, has a week for it, and is asked once in between', async () => {
    const asked = vi.spyOn(Session.prototype, 'relist').mockResolvedValue(true)
    const nowMs = stopClock()
    await put(rowOf('running', { activity: 'running' }))
    await put(
      rowOf('waiting', { activity: 'awaiting_approval', attention: { approval: true, question: false } }),
    )
    setClock(nowMs + 6 * 86_400_000)
    await ringGatewayAlarm(client.userId)
    expect(await listed()).toHaveLength(2)
    await ringGatewayAlarm(client.userId)
    expect(asked).toHaveBeenCalledTimes(1)
    vi.spyOn(Session.prototype, 'delisted').mockResolvedValue(undefined)
    setClock(nowMs + 7 * 86_400_000)
    await ringGatewayAlarm(client.userId)
    expect(await listed()).toEqual([])
  })

  it('[U06] a session that ended its run without telling is asked after a while, and the list is right again', async () => {
    const id = await client.newSession()
    models.script({ text: ['done'] })
    await turnAs(await client.execute(id, makeExecute('hi')), 'completed')
    const [row] = await vi.waitFor(async () => {
      const rows = await listed()
      expect(rows).toMatchObject([{ activity: 'idle' }])
      return rows
    })
    // As it was left by an object that died before it could tell.
    if (row) await put({ ...row, activity: 'running' })
    await subscribe()
    setClock(Date.now() + 120_000)
    await ringGatewayAlarm(client.userId)
    await pushUntil((rows) => rows[0]?.activity === 'idle')
    // One that is gone altogether leaves.
    await put(rowOf('00000000-0000-0000-0000-000000000000', { activity: 'running' }))
    setClock(Date.now() + 120_000)
    await ringGatewayAlarm(client.userId)
    await vi.waitFor(async () => expect(await listed()).toHaveLength(1))
  })

  it('[D33] a row that turned to running is stored when it stays so, and the turn of a moment is one row', async () => {
    const stored = () =>
      insideGateway(client.userId, (sql) =>
        sql
          .rows('SELECT body FROM live_rows')
          .map(({ body }) => RemoteSessionInfo.parse(JSON.parse(String(body))).activity),
      )
    await put(rowOf('a'))
    await put(rowOf('a', { activity: 'running' }))
    expect(await listed()).toMatchObject([{ activity: 'running' }])
    expect(await stored()).toEqual(['idle'])
    await vi.waitFor(async () => expect(await stored()).toEqual(['running']), { timeout: 5_000 })
  })

  it('[RF 1] thirty-two sessions with the longest labels fit in a frame', async () => {
    await subscribe()
    const longest = liveRow(null, {
      sessionId: '0'.repeat(36),
      registrationEpoch: Number.MAX_SAFE_INTEGER,
      // What JSON has to escape takes several times its room.
      title: '\u0001'.repeat(4096),
      derivedTitle: null,
      workspace: `/${'\u0001'.repeat(4096)}`,
      runs: 10_000,
      lastMessageAtMs: Date.now(),
    })
    for (let n = 0; n < 32; n++) await put({ ...longest, session_id: String(n).padStart(36, '0') })
    await pushUntil((rows) => rows.length === 32)
    expect(await listed()).toHaveLength(32)
  })

  it('[U34] another account sees nothing of it', async () => {
    await put(rowOf('a'))
    const stranger = await pairDevice(await makeClient())
    expect(await stranger.device.request({ type: 'list_sessions' })).toMatchObject({
      result: { sessions: [] },
    })
    const { answer } = await comeBack({ ...stranger, id: phone.id }, { token: phone.paired.token })
    expect(answer).toMatchObject({ code: 'unauthorized' })
  })
})
