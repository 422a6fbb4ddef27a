import { evictDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { LEASE_MS } from '../../src/core/run/state.ts'
import { ExecuteRequest } from '../../src/protocol/execution/execute.ts'
import { RunResponse } from '../../src/protocol/execution/turn.ts'
import { Session } from '../../src/session/session.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { setClock, stopClock } from '../support/workers/clock.ts'
import { eachCase } from '../support/workers/each-case.ts'
import { Hold } from '../support/workers/hold.ts'
import { type Client, makeClient, parsed, turnAs } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import {
  alarmOf,
  checkpointOf,
  crash,
  inside,
  ringAlarm,
  transcriptOf,
  turnsOf,
} from '../support/workers/session-object.ts'
import { endOf, eventsOf, STREAM, TurnStream, textOf } from '../support/workers/turn-stream.ts'

const models = scriptModels()

let client: Client
let id: string
beforeAll(async () => {
  client = await makeClient()
})
beforeEach(async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  vi.spyOn(console, 'warn').mockImplementation(() => {})
  id = await client.newSession()
})

const READ = { name: 'read_file', arguments: { path: 'a' } }

/** A deploy puts objects away where they stand; the next request or alarm starts them anew. */
const reset = crash
const shown = async () => parsed(await client.run(id), RunResponse)
const resultsOf = (call_id: string) => ({
  type: 'tool_results' as const,
  data: { results: [{ call_id, content: 'R' }] },
})
/** A turn that has said `one ` and is held there, read as a stream. */
async function midTurn(): Promise<{ stream: TurnStream; lastId: string }> {
  const hold = new Hold()
  models.script({ text: ['one '], hold: hold.wait, after: ['two'] })
  const stream = new TurnStream(await client.execute(id, makeExecute('hi'), STREAM))
  const frames = await stream.until(({ type }) => type === 'text_delta')
  return { stream, lastId: frames.at(-1)?.id ?? '' }
}
/** What is left of a stream whose object goes away. */
const leftOf = (stream: TurnStream) => stream.rest().catch(() => [])

describe('a deploy while a turn is served', () => {
  it('[U07][D19] ends the stream without a turn_end, and `GET …/run` says where the run stands', async () => {
    const { stream } = await midTurn()
    const second = new TurnStream(await client.run(id, STREAM))
    await second.until(({ type }) => type === 'text_delta')
    await reset(id)
    for (const reader of [stream, second])
      expect((await leftOf(reader)).filter(({ event }) => event.type === 'turn_end')).toEqual([])
    expect(await shown()).toMatchObject({ status: 'idle' })
  })

  it('[D19][D20] a reader comes back over `GET …/run`, sends its request again, and has the whole answer once', async () => {
    const { stream, lastId } = await midTurn()
    await reset(id)
    await leftOf(stream)
    // Its place in the stream is gone with the object: the verdict is the end, and not another stream in its stead.
    const back = await eventsOf(await client.run(id, { ...STREAM, 'Last-Event-ID': lastId }))
    expect(back).toMatchObject([{ type: 'turn_end', status: 'idle' }])
    models.script({ text: ['one ', 'two'] })
    const events = await eventsOf(await client.execute(id, makeExecute('hi'), STREAM))
    expect(textOf(events)).toBe('one two')
    expect(endOf(events)).toMatchObject({ status: 'completed' })
    expect(await transcriptOf(id)).toEqual([
      { role: 'user', text: 'hi' },
      { role: 'assistant', text: 'one two' },
    ])
  })

  it('[U06][D21] nothing goes on by itself: the object asks no model until the client sends again', async () => {
    const nowMs = stopClock()
    const { stream } = await midTurn()
    await reset(id)
    await leftOf(stream)
    const asked = models.chats.length
    expect(await alarmOf(id)).not.toBeNull()
    for (let rings = 1; (await alarmOf(id)) !== null; rings++) {
      expect(rings).toBeLessThan(4)
      setClock((await alarmOf(id)) ?? nowMs)
      await ringAlarm(id)
    }
    expect(models.chats).toHaveLength(asked)
    expect((await checkpointOf(id)).state).toMatchObject({ active: null, phase: { k: 'Idle' } })
    expect((await turnsOf(id)).map(({ status }) => status)).toEqual(['interrupted'])
  })

  it('[D21] the lock is free at the start of the object, long before its lease runs out', async () => {
    const nowMs = stopClock()
    const { stream } = await midTurn()
    const leaseUntilMs = (await checkpointOf(id)).state?.active?.leaseUntilMs ?? 0
    expect(leaseUntilMs).toBe(nowMs + LEASE_MS)
    await reset(id)
    await leftOf(stream)
    models.script({ text: ['next'] })
    await turnAs(await client.execute(id, makeExecute('another')), 'completed')
    expect((await transcriptOf(id)).map(({ text }) => text)).toEqual(['hi', 'another', 'next'])
  })

  it('[U02] again and again: each time the same request is taken, and the transcript has it once', async () => {
    for (let resets = 0; resets < 3; resets++) {
      const { stream } = await midTurn()
      await reset(id)
      await leftOf(stream)
    }
    models.script({ text: ['whole'] })
    await turnAs(await client.execute(id, makeExecute('hi')), 'completed')
    expect((await transcriptOf(id)).map(({ text }) => text)).toEqual(['hi', 'whole'])
    expect((await turnsOf(id)).map(({ status }) => status)).toEqual([
      'interrupted',
      'interrupted',
      'interrupted',
      'done',
    ])
  })
})

describe('a deploy while a run waits', () => {
  const pauses = [
    {
      name: 'for a tool',
      begin: async () => {
        models.script({ text: ['I look. '], calls: [READ] })
        return turnAs(await client.execute(id, makeExecute('look')), 'awaiting_tool')
      },
    },
    {
      name: 'for a plan to be approved',
      begin: async () => {
        models.script({ text: ['First this.'] })
        const body = makeExecute('make a plan', { input: { command: 'plan' } })
        return turnAs(await client.execute(id, body), 'awaiting_approval')
      },
    },
  ]
  const ways = [
    { way: 'cut off', go: () => reset(id) },
    { way: 'put away', go: () => evictDurableObject(env.SESSION.getByName(id)) },
  ]
  eachCase(
    pauses.flatMap((pause) => ways.map((way) => ({ ...pause, ...way }))),
    ({ name, way }) => `[EC 5.8] ${name} changes nothing of the pause (object ${way})`,
    async ({ begin, go }) => {
      const paused = await begin()
      await go()
      expect(await shown()).toEqual(paused)
      expect(await alarmOf(id)).toBeNull()
      models.script({ text: ['Done.'] })
      const next =
        paused.status === 'awaiting_tool'
          ? resultsOf(paused.data.tool_requests[0]?.call_id ?? '')
          : {
              type: 'approval_decisions' as const,
              data: {
                decisions: [{ approval_id: paused.data.approval.approval_id, decision: 'approved' as const }],
              },
            }
      await turnAs(await client.proceed(id, next), 'completed')
    },
  )

  it('[EC 5.8] while its continuation is streamed, keeps the pause; the same results then go on', async () => {
    models.script({ calls: [READ] })
    const paused = await turnAs(await client.execute(id, makeExecute('look')), 'awaiting_tool')
    const results = resultsOf(paused.data.tool_requests[0]?.call_id ?? '')
    const hold = new Hold()
    models.script({ text: ['half '], hold: hold.wait })
    const stream = new TurnStream(await client.proceed(id, results, STREAM))
    await stream.until(({ type }) => type === 'text_delta')
    await reset(id)
    await leftOf(stream)
    expect(await shown()).toEqual(paused)
    models.script({ text: ['Done.'] })
    expect(endOf(await eventsOf(await client.proceed(id, results, STREAM)))).toMatchObject({
      status: 'completed',
    })
    expect((await transcriptOf(id)).map(({ text }) => text)).toEqual(['look', '', 'Done.'])
  })
})

/** What the Worker of each release calls, and the gateway; a release that calls more adds a line, and none is ever changed. */
const CALLED_SINCE: Record<string, string[]> = {
  '0.1.0': [
    'create',
    'detail',
    'update',
    'remove',
    'execute',
    'continueRun',
    'currentRun',
    'preview',
    'traces',
    'usage',
  ],
  '0.2.0': ['putMemory', 'deleteMemory', 'exportLines', 'expire', 'expireTraces'],
  '0.3.0': ['revokeGrant'],
  '0.4.0': ['facts'],
  '0.5.0': ['delisted', 'relist'],
  '0.6.0': ['share', 'attach', 'pull', 'events', 'operate', 'requestStatus'],
}

describe('versions side by side', () => {
  it('[D32] an object serves every method that the Worker of an older release calls', () => {
    const methods = Object.getOwnPropertyNames(Session.prototype)
    expect(methods).toEqual(expect.arrayContaining(Object.values(CALLED_SINCE).flat()))
    const known = ['constructor', 'alarm', ...Object.values(CALLED_SINCE).flat()]
    expect(methods.filter((name) => !known.includes(name))).toEqual([])
  })

  it('[D32] facts of a session whose object runs an older release are read from their copy', async () => {
    const { facts } = Session.prototype
    Reflect.deleteProperty(Session.prototype, 'facts')
    try {
      const listed = await client.send('GET', `/api/v1/memory?session_id=${id}`)
      expect(await listed.json()).toEqual({ memories: [] })
    } finally {
      Session.prototype.facts = facts
    }
  })

  it('[D32] what the first release sent is enough, and what it read is there', async () => {
    const { userId } = client
    const caller = { userId, credentials: {}, deploymentProviders: true }
    const body = ExecuteRequest.parse(makeExecute('hi'))
    const options = { stream: false, digest: 'd', idempotencyKey: null }
    models.script({ calls: [READ] }, { text: ['Done.'] })
    await inside(id, async (_sql, _state, session) => {
      expect(await session.execute(caller, body, options)).toMatchObject({
        kind: 'json',
        body: { status: 'awaiting_tool' },
      })
      expect(await session.currentRun(userId, { stream: false, lastEventId: null })).toMatchObject({
        kind: 'json',
        body: { status: 'awaiting_tool', data: { tool_requests: [{ name: 'read_file' }] } },
      })
      expect(await session.continueRun(caller, { type: 'break' }, { ...options, digest: 'e' })).toMatchObject(
        {
          kind: 'json',
          body: { status: 'idle' },
        },
      )
      expect(await session.preview(caller, body)).toMatchObject({ ok: true, value: { routing: {} } })
      expect(await session.detail(userId)).toMatchObject({ ok: true, value: { id, messages: [{}, {}] } })
      expect(await session.traces(userId, { limit: 1, offset: 0 })).toMatchObject({
        ok: true,
        value: { session_id: id, events: [{}] },
      })
      expect(await session.usage(userId)).toMatchObject({ ok: true, value: { by_model: [{}] } })
      expect(await session.update(userId, { title: 'new' })).toMatchObject({
        ok: true,
        value: { title: 'new' },
      })
      expect(await session.detail('somebody else')).toMatchObject({
        ok: false,
        error: { code: 'session_not_found', message: expect.any(String) },
      })
      expect(await session.remove(userId)).toEqual({ ok: true, value: true })
    })
  })
})
