import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { LEASE_HEARTBEAT_MS, LEASE_MS } from '../../src/core/run/state.ts'
import { RunResponse, type TurnResponse } from '../../src/protocol/execution/turn.ts'
import { SessionUsageResponse } from '../../src/protocol/execution/usage.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { setClock, stopClock } from '../support/workers/clock.ts'
import { onFlush } from '../support/workers/d1.ts'
import { eachCase } from '../support/workers/each-case.ts'
import { Hold, until } from '../support/workers/hold.ts'
import { quietGateway } from '../support/workers/live-list.ts'
import { type Client, makeClient, parsed, refused, turnAs, turnOf } from '../support/workers/router.ts'
import { type ChatRequest, type Reply, scriptModels } from '../support/workers/scripted-models.ts'
import {
  alarmOf,
  checkpointOf,
  crash,
  inside,
  ringAlarm,
  transcriptOf,
  turnsOf,
} from '../support/workers/session-object.ts'
import { watchTimers } from '../support/workers/timers.ts'
import { endOf, eventsOf, STREAM, TurnStream } from '../support/workers/turn-stream.ts'

const models = scriptModels()

let client: Client
beforeAll(async () => {
  client = await makeClient()
})
beforeEach(async () => {
  // Requests that die with their object are told as failures of the router.
  vi.spyOn(console, 'error').mockImplementation(() => {})
})

const READ = { name: 'read_file', arguments: { path: 'a' } }

/** The model’s part, told by the conversation so far: a crash makes it hear some of it again. */
function play({ messages }: ChatRequest): Reply {
  const last = messages.at(-1)
  const said = messages.findLast(({ role }) => role === 'user')?.content ?? ''
  if (last?.role === 'tool' && last.content.includes('fly')) return { text: ['Then ', 'so. '], calls: [READ] }
  if (last?.role === 'tool') return { text: ['Done.'] }
  if (said.includes('look')) return { text: ['Trying. '], calls: [{ name: 'fly', arguments: {} }] }
  return { text: ['Fine: ', said] }
}

type Step = (before: TurnResponse | null) => { route: string; body: unknown }

const execute = (text: string, command?: 'plan'): Step => {
  return () => ({ route: 'execute', body: makeExecute(text, command ? { input: { command } } : {}) })
}
const results: Step = (before) => {
  if (before?.status !== 'awaiting_tool') throw new Error(`no calls: ${JSON.stringify(before)}`)
  const all = before.data.tool_requests.map(({ call_id }) => ({
    call_id,
    content: `result of ${before.status}`,
  }))
  return { route: 'continue', body: { type: 'tool_results', data: { results: all } } }
}
const approve: Step = (before) => {
  if (before?.status !== 'awaiting_approval') throw new Error(`no approval: ${JSON.stringify(before)}`)
  const { approval_id } = before.data.approval
  const decisions = [{ approval_id, decision: 'approved', reason: 'yes' }]
  return { route: 'continue', body: { type: 'approval_decisions', data: { decisions } } }
}
const inject = (text: string): Step => {
  return () => ({ route: 'continue', body: { type: 'inject', data: { messages: [{ text }] } } })
}

const SCENARIOS: { name: string; stream: boolean; steps: Step[] }[] = [
  { name: 'a refused call, a tool, an answer', stream: false, steps: [execute('look'), results] },
  { name: 'a refused call, a tool, an answer', stream: true, steps: [execute('look'), results] },
  { name: 'a plan that is approved', stream: false, steps: [execute('make a plan', 'plan'), approve] },
  {
    name: 'text injected into a pause',
    stream: true,
    steps: [execute('look'), inject('rather this'), execute('and that')],
  },
]

/** Every place where the outside world is asked: a listing, a model, D1. The n-th of them is the scene of the crash. */
function crashSite() {
  let left = Number.POSITIVE_INFINITY
  let passed = 0
  let hold = new Hold()
  const pass = async () => {
    passed++
    if (--left === 0) await hold.wait()
  }
  models.onListing = pass
  models.script(async (chat) => {
    await pass()
    return play(chat)
  })
  onFlush(null, async (send) => {
    await pass()
    return send()
  })
  return {
    armAt: (n: number) => {
      left = n
      hold = new Hold()
    },
    get isReached() {
      return hold.wasReached
    },
    get passed() {
      return passed
    },
  }
}

const outcomeOf = async (response: Response): Promise<TurnResponse | null> => {
  if (!response.ok) return null
  const isStream = response.headers.get('Content-Type') === 'text/event-stream'
  if (!isStream) return turnOf(response)
  const { type: _, ...turn } = endOf(await eventsOf(response))
  return turn as TurnResponse
}

/** Plays a scenario; crashes once, at the n-th place, and sends the request that was cut off again. */
async function perform(
  steps: Step[],
  site: ReturnType<typeof crashSite>,
  { crashAt, stream }: { crashAt: number; stream: boolean },
) {
  const sessionId = await client.newSession()
  stopClock()
  site.armAt(crashAt)
  let crashed = false
  let before: TurnResponse | null = null
  for (const [index, step] of steps.entries()) {
    const { route, body } = step(before)
    const headers = { 'Idempotency-Key': `step-${index}`, ...(stream ? STREAM : {}) }
    const send = () => client.send('POST', `/api/v1/sessions/${sessionId}/${route}`, body, headers)
    let settled = false
    const answer = send()
      .then(outcomeOf)
      .catch(() => null)
      .finally(() => {
        settled = true
      })
    await until(() => settled || (site.isReached && !crashed))
    if (site.isReached && !crashed) {
      crashed = true
      await crash(sessionId)
      const shown = await parsed(await client.run(sessionId), RunResponse)
      if (shown.status === 'running') throw new Error('[U06] nothing serves this turn any more')
      await answer
      before = await outcomeOf(await send())
    } else before = await answer
    if (before === null) throw new Error(`step ${index} has no outcome`)
  }
  return { sessionId, crashed, last: before }
}

/** What must not depend on crashes: ids, times and prices of lost calls aside. */
async function resultOf(sessionId: string) {
  const turns = await turnsOf(sessionId)
  const { state, outbox } = await checkpointOf(sessionId)
  return {
    transcript: await transcriptOf(sessionId),
    turns: turns.filter(({ status }) => status !== 'interrupted').map(({ turn, status }) => [turn, status]),
    approvals: await inside(sessionId, (sql) =>
      sql.rows('SELECT target_type, decision, reason FROM approvals'),
    ),
    plans: await inside(sessionId, (sql) => sql.rows('SELECT content, status FROM plans')),
    lock: state?.active ?? null,
    owed: { messages: outbox.messagesFrom, turns: outbox.turnsFrom },
    alarm: await alarmOf(sessionId),
  }
}

eachCase(
  SCENARIOS,
  ({ name, stream }) =>
    `[EC 5.8] ${name}: ends the same wherever the object crashes once (streamed: ${stream})`,
  async ({ steps, stream }) => {
    const site = crashSite()
    const undisturbed = await perform(steps, site, { crashAt: Number.POSITIVE_INFINITY, stream })
    const places = site.passed
    expect(places).toBeGreaterThan(4)
    const expected = await resultOf(undisturbed.sessionId)
    expect(expected).toMatchObject({ lock: null, owed: { messages: null, turns: null }, alarm: null })
    for (let crashAt = 1; crashAt <= places; crashAt++) {
      const played = await perform(steps, site, { crashAt, stream })
      expect(played.crashed, `place ${crashAt} of ${places}`).toBe(true)
      // What a crash leaves to the alarm is sent when it rings.
      await ringAlarm(played.sessionId)
      expect(await resultOf(played.sessionId), `crash at place ${crashAt}`).toEqual(expected)
      expect(played.last?.status).toBe(undisturbed.last?.status)
    }
  },
  20_000,
)

describe('a crash in mid-turn', () => {
  let id: string
  beforeEach(async () => {
    id = await client.newSession()
  })

  /** A turn that dies after it has said something. */
  async function crashMidTurn(body = makeExecute('hi'), headers = {}): Promise<void> {
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait })
    const lost = client.execute(id, body, headers)
    await hold.reached()
    await crash(id)
    await (await lost).text().catch(() => {})
  }

  it('[U06] leaves a run that is idle and can go on, whose lock is free', async () => {
    await crashMidTurn()
    expect(await turnOf(await client.run(id))).toMatchObject({ status: 'idle' })
    expect((await checkpointOf(id)).state?.active).toBeNull()
    expect((await turnsOf(id)).map(({ status }) => status)).toEqual(['interrupted'])
  })

  it('[D20] the same execute goes on with that run without a key, and nothing is stored twice', async () => {
    await crashMidTurn()
    models.script({ text: ['whole'] })
    await turnAs(await client.execute(id, makeExecute('hi')), 'completed')
    expect(await transcriptOf(id)).toEqual([
      { role: 'user', text: 'hi' },
      { role: 'assistant', text: 'whole' },
    ])
    const runs = new Set((await turnsOf(id)).map(({ runId }) => runId))
    expect(runs.size).toBe(1)
  })

  it('[D20] another execute is another run', async () => {
    await crashMidTurn()
    models.script({ text: ['x'] })
    await turnAs(await client.execute(id, makeExecute('something else')), 'completed')
    expect((await transcriptOf(id)).map(({ text }) => text)).toEqual(['hi', 'something else', 'x'])
  })

  it('[D23] the call that was lost is on record, its usage unknown', async () => {
    await crashMidTurn()
    models.script({ text: ['x'] })
    await turnAs(await client.execute(id, makeExecute('hi')), 'completed')
    const calls = (await turnsOf(id)).map((turn) =>
      turn.calls.map(({ status, usage }) => ({ status, usage })),
    )
    expect(calls).toEqual([
      [{ status: 'lost', usage: null }],
      [{ status: 'answered', usage: { inputTokens: 100, outputTokens: 20 } }],
    ])
    const usage = await parsed(await client.send('GET', `/api/v1/sessions/${id}/usage`), SessionUsageResponse)
    expect(usage.by_model).toMatchObject([{ request_count: 2, input_tokens: 100, output_tokens: 20 }])
  })

  it('[EC 5.8] of a continuation keeps the pause, which takes the same results again', async () => {
    models.script({ calls: [READ] })
    const paused = await turnAs(await client.execute(id, makeExecute('hi')), 'awaiting_tool')
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait })
    const call_id = paused.data.tool_requests[0]?.call_id ?? ''
    const answer = { type: 'tool_results' as const, data: { results: [{ call_id, content: 'R' }] } }
    const lost = client.proceed(id, answer)
    await hold.reached()
    await crash(id)
    expect((await lost).status).toBe(500)
    expect(await turnOf(await client.run(id))).toEqual(paused)
    models.script({ text: ['Done.'] })
    await turnAs(await client.proceed(id, answer), 'completed')
    expect(await transcriptOf(id)).toEqual([
      { role: 'user', text: 'hi' },
      { role: 'assistant', text: '', calls: [{ name: 'read_file', result: 'R', isError: false }] },
      { role: 'assistant', text: 'Done.' },
    ])
  })

  it('[U28] leaves a run that `break` ends and `inject` carries on', async () => {
    await crashMidTurn()
    await turnAs(await client.proceed(id, { type: 'break' }), 'idle')
    await crashMidTurn(makeExecute('again'))
    models.script({ text: ['x'] })
    const inject = { type: 'inject' as const, data: { messages: [{ text: 'more' }] } }
    await turnAs(await client.proceed(id, inject), 'completed')
    expect((await transcriptOf(id)).map(({ text }) => text)).toEqual(['hi', 'again', 'more', 'x'])
  })

  it('[D19] an event id of the turn that died gets a turn_end and nothing invented', async () => {
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait })
    const stream = new TurnStream(await client.execute(id, makeExecute('hi'), STREAM))
    const [frame] = await stream.until(({ type }) => type === 'text_delta')
    await crash(id)
    await stream.rest().catch(() => {})
    const events = await eventsOf(await client.run(id, { ...STREAM, 'Last-Event-ID': frame?.id ?? '' }))
    expect(events).toMatchObject([{ type: 'turn_end', status: 'idle' }])
  })

  it('[U02] crashes of other sessions are none of this one’s business', async () => {
    const other = await client.newSession()
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] })
    const served = client.execute(other, makeExecute('hi'))
    await hold.reached()
    await crash(id)
    hold.release()
    expect((await turnAs(await served, 'completed')).data.message.content).toBe('one two')
  })
})

describe('storage that fails', () => {
  /** The object's next statement of this kind fails, once. */
  const failOnce = (id: string, fits: RegExp, nth: number) =>
    inside(id, (_sql, state) => {
      const { sql } = state.storage
      const real = sql.exec.bind(sql)
      let seen = 0
      vi.spyOn(sql, 'exec').mockImplementation((query, ...values) => {
        if (fits.test(query) && ++seen === nth) throw new Error('SQLITE_FULL')
        return real(query, ...values)
      })
    })

  it('[U03] when a run starts: it is refused, nothing of it is there, and no model was asked', async () => {
    const id = await client.newSession()
    models.script({ text: ['x'] })
    await failOnce(id, /^INSERT INTO checkpoint/, 1)
    expect(await refused(await client.execute(id, makeExecute('hi')))).toMatchObject({ status: 500 })
    expect(models.chats).toHaveLength(0)
    expect(await transcriptOf(id)).toEqual([])
    await turnAs(await client.execute(id, makeExecute('again')), 'completed')
    expect((await transcriptOf(id)).map(({ text }) => text)).toEqual(['again', 'x'])
  })

  it('[U03] when an answer is to be kept: it is not told, and the lock is free', async () => {
    const id = await client.newSession()
    models.script({ text: ['x'] })
    await failOnce(id, /^INSERT INTO messages/, 2)
    const answer = await refused(await client.execute(id, makeExecute('hi')))
    expect(answer).toMatchObject({ status: 500, code: 'internal_error' })
    expect((await checkpointOf(id)).state?.active).toBeNull()
    await turnAs(await client.execute(id, makeExecute('again')), 'completed')
    expect((await transcriptOf(id)).map(({ text }) => text)).toEqual(['hi', 'again', 'x'])
  })
})

describe('the lock', () => {
  let id: string
  beforeEach(async () => {
    id = await client.newSession()
  })
  it('[D21] is renewed by a heartbeat as long as the turn is served', async () => {
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] })
    const before = stopClock()
    const served = client.execute(id, makeExecute('hi'))
    await hold.reached()
    expect(await alarmOf(id)).toBe(before + LEASE_HEARTBEAT_MS)
    for (let beat = 1; beat <= 4; beat++) {
      const now = before + beat * (LEASE_HEARTBEAT_MS + 100)
      setClock(now)
      expect(await ringAlarm(id)).toBe(true)
      expect((await checkpointOf(id)).state?.active?.leaseUntilMs).toBe(now + LEASE_MS)
      expect(await alarmOf(id)).toBe(now + LEASE_HEARTBEAT_MS)
    }
    expect(await refused(await client.execute(id, makeExecute('other')))).toMatchObject({ status: 409 })
    hold.release()
    await turnAs(await served, 'completed')
    expect(await alarmOf(id)).toBeNull()
  })

  it('[D21] that nobody renewed is free after its lease, and the turn under it is cut', async () => {
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] }, { text: ['next'] })
    const now = stopClock()
    const stuck = client.execute(id, makeExecute('hi'))
    await hold.reached()
    setClock(now + LEASE_MS - 5_000)
    expect(await refused(await client.execute(id, makeExecute('other')))).toMatchObject({ status: 409 })
    setClock(now + LEASE_MS + 5_000)
    await turnAs(await client.execute(id, makeExecute('other')), 'completed')
    expect(await refused(await stuck)).toMatchObject({ status: 409, code: 'run_in_flight' })
    expect(models.aborted).toBe(1)
    hold.release()
    expect((await transcriptOf(id)).map(({ text }) => text)).toEqual(['hi', 'other', 'next'])
  })
})

describe('after a turn', () => {
  beforeEach(quietGateway)
  const endings: { name: string; run: (id: string) => Promise<unknown> }[] = [
    {
      name: 'that completed',
      run: async (id) => {
        models.script({ text: ['x'] })
        await turnAs(await client.execute(id, makeExecute('hi')), 'completed')
      },
    },
    {
      name: 'that was streamed',
      run: async (id) => {
        models.script({ text: ['x'.repeat(20_000), 'y'] })
        await eventsOf(await client.execute(id, makeExecute('hi'), STREAM))
      },
    },
    {
      name: 'that waits for a tool',
      run: async (id) => {
        models.script({ text: ['x'], calls: [READ] })
        await turnAs(await client.execute(id, makeExecute('hi')), 'awaiting_tool')
      },
    },
    {
      name: 'that failed',
      run: async (id) => {
        models.script({ text: ['x'], ending: 'break' })
        await client.execute(id, makeExecute('hi'))
      },
    },
    {
      name: 'whose provider could not be reached',
      run: async (id) => {
        models.script({ unreachable: true })
        await client.execute(id, makeExecute('hi'))
      },
    },
    {
      name: 'that was refused',
      run: async (id) => {
        await client.execute(id, makeExecute('hi', { policy: { routing: {} } }))
      },
    },
    {
      name: 'that was broken off',
      run: async (id) => {
        const hold = new Hold()
        models.script({ text: ['x'], hold: hold.wait })
        const served = client.execute(id, makeExecute('hi'))
        await hold.reached()
        await client.proceed(id, { type: 'break' })
        await served
        hold.release()
      },
    },
    {
      name: 'whose reader left',
      run: async (id) => {
        const hold = new Hold()
        models.script({ text: ['x'], hold: hold.wait, after: ['y'] })
        const stream = new TurnStream(await client.execute(id, makeExecute('hi'), STREAM))
        await stream.next()
        await stream.cancel()
        hold.release()
        await eventsOf(await client.run(id, STREAM))
      },
    },
  ]

  eachCase(
    endings,
    ({ name }) => `[D21] ${name} no timer and no alarm is left`,
    async ({ run }) => {
      const id = await client.newSession()
      const timers = watchTimers()
      await run(id)
      // What is still being put away is cleared; what rings was left behind.
      const left = timers.pending()
      await until(() => left.every(({ fate }) => fate !== 'pending'))
      expect(left.filter(({ fate }) => fate === 'rang')).toEqual([])
      expect(await alarmOf(id)).toBeNull()
    },
  )

  it('[D21] while a turn is served there are some: the watch sees them', async () => {
    const id = await client.newSession()
    const timers = watchTimers()
    const hold = new Hold()
    models.script({ text: ['x'], hold: hold.wait })
    const served = client.execute(id, makeExecute('hi'))
    await hold.reached()
    expect(timers.pending()).not.toEqual([])
    expect(await alarmOf(id)).not.toBeNull()
    hold.release()
    await served
  })
})
