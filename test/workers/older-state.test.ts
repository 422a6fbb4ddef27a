import { beforeEach, describe, expect, it, vi } from 'vitest'
import { ExportRecord } from '../../src/protocol/execution/export.ts'
import { GetSessionResponse } from '../../src/protocol/execution/session.ts'
import { TraceResponse } from '../../src/protocol/execution/trace.ts'
import { RunResponse } from '../../src/protocol/execution/turn.ts'
import { SessionUsageResponse } from '../../src/protocol/execution/usage.ts'
import { isDrained } from '../../src/storage/session/checkpoint.ts'
import { SESSION_MIGRATIONS } from '../../src/storage/session/migrations.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { stopClock } from '../support/workers/clock.ts'
import { copyOf } from '../support/workers/d1.ts'
import { until } from '../support/workers/hold.ts'
import { type OlderState, RELEASES, restore, STATES } from '../support/workers/older-state.ts'
import { type Client, makeClient, parsed, turnAs, turnOf } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { alarmOf, checkpointOf, inside, transcriptOf, turnsOf } from '../support/workers/session-object.ts'

const models = scriptModels()

let client: Client
beforeEach(async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  client = await makeClient()
})

const read = (id: string, part = '') => client.send('GET', `/api/v1/sessions/${id}${part}`)

/** What a session in this state has to come to. */
const WAYS: Record<OlderState, (id: string) => Promise<void>> = {
  idle: async (id) => {
    expect(await turnAs(await client.run(id), 'completed')).toMatchObject({
      data: { message: { content: 'It is a file.' } },
    })
    models.script({ text: ['Still.'] })
    await turnAs(await client.execute(id, makeExecute('and now?')), 'completed')
    expect(models.chats[0]?.messages.filter(({ role }) => role !== 'system')).toEqual([
      { role: 'user', content: 'look at a.ts' },
      { role: 'assistant', content: '' },
      { role: 'tool', content: 'contents of a.ts' },
      { role: 'assistant', content: 'It is a file.' },
      { role: 'user', content: 'and now?' },
    ])
    expect((await transcriptOf(id)).map(({ text }) => text)).toEqual([
      'look at a.ts',
      '',
      'It is a file.',
      'and now?',
      'Still.',
    ])
  },

  awaiting_tool: async (id) => {
    const paused = await turnAs(await client.run(id), 'awaiting_tool')
    // The key of the request that led here is known: it asks no model again.
    const again = await client.execute(id, makeExecute('look at a.ts'), { 'Idempotency-Key': 'older' })
    expect(await turnOf(again)).toEqual(paused)
    expect(models.chats).toHaveLength(0)
    models.script({ text: ['Done.'] })
    const call_id = paused.data.tool_requests[0]?.call_id ?? ''
    const data = { results: [{ call_id, content: 'R' }] }
    await turnAs(await client.proceed(id, { type: 'tool_results', data }), 'completed')
    expect(await transcriptOf(id)).toEqual([
      { role: 'user', text: 'look at a.ts' },
      {
        role: 'assistant',
        text: 'I look. ',
        calls: [{ name: 'read_file', result: 'R', isError: false }],
      },
      { role: 'assistant', text: 'Done.' },
    ])
  },

  awaiting_decision: async (id) => {
    const paused = await turnAs(await client.run(id), 'awaiting_tool')
    expect(paused.data.tool_requests).toMatchObject([{ name: 'shell', requires_approval: 'ask' }])
    models.script({ text: ['Instead.'] })
    const inject = { type: 'inject' as const, data: { messages: [{ text: 'do not' }] } }
    await turnAs(await client.proceed(id, inject), 'completed')
    expect((await transcriptOf(id)).map(({ text }) => text)).toEqual(['run ls', '', 'do not', 'Instead.'])
  },

  awaiting_plan: async (id) => {
    const paused = await turnAs(await client.run(id), 'awaiting_approval')
    models.script({ text: ['Done.'] })
    const { approval_id } = paused.data.approval
    const decisions = [{ approval_id, decision: 'approved' as const }]
    await turnAs(await client.proceed(id, { type: 'approval_decisions', data: { decisions } }), 'completed')
    expect(await inside(id, (sql) => sql.rows('SELECT content, status FROM plans'))).toEqual([
      { content: 'First this, then that.', status: 'approved' },
    ])
  },

  locked: async (id) => {
    // Its object is gone, whatever the lease says: nothing serves this turn.
    expect(await parsed(await client.run(id), RunResponse)).toMatchObject({ status: 'idle' })
    expect((await checkpointOf(id)).state?.active).toBeNull()
    models.script({ text: ['whole'] })
    await turnAs(await client.execute(id, makeExecute('say something')), 'completed')
    // The same request goes on with the run that was cut off, also over the change of releases (D20).
    expect(await transcriptOf(id)).toEqual([
      { role: 'user', text: 'say something' },
      { role: 'assistant', text: 'whole' },
    ])
    expect((await turnsOf(id)).map(({ status }) => status)).toEqual(['interrupted', 'done'])
  },

  owed: async (id) => {
    // The start of the object was enough.
    await read(id)
    await until(async () => isDrained((await checkpointOf(id)).outbox))
    expect((await copyOf(id)).messages).toMatchObject([{ content: 'hi' }, { content: 'Hello.' }])
    expect((await copyOf(id)).turns).toHaveLength(1)
    expect(await alarmOf(id)).toBeNull()
  },
}

describe.each(Object.keys(RELEASES))('a session that release %s left', (release) => {
  it.each(STATES)('[D32] %s is read, goes on and ends under this one', async (state) => {
    stopClock()
    const id = await restore(client, release, state)
    await parsed(await read(id), GetSessionResponse)
    await parsed(await client.run(id), RunResponse)
    const before = (await parsed(await read(id, '/traces'), TraceResponse)).trace.events
    expect(before.length).toBeGreaterThan(2)
    const newest = await inside(id, (sql) => sql.rows('SELECT max(version) AS newest FROM schema_migrations'))
    expect(newest).toEqual([{ newest: SESSION_MIGRATIONS.length }])
    await WAYS[state](id)
    const { trace } = await parsed(await read(id, '/traces?limit=1000'), TraceResponse)
    expect(trace.events.map((event) => event.id).slice(0, before.length)).toEqual(before.map(({ id }) => id))
    const usage = await parsed(await read(id, '/usage'), SessionUsageResponse)
    expect(usage.by_model.length).toBeGreaterThan(0)
    const exported = new TextDecoder().decode(await (await read(id, '/export')).arrayBuffer())
    const lines = exported.trimEnd().split('\n')
    const records = lines.map((line) => ExportRecord.parse(JSON.parse(line)))
    expect(records.filter(({ type }) => type === 'message')).toHaveLength((await transcriptOf(id)).length)
    await until(async () => isDrained((await checkpointOf(id)).outbox))
    expect((await checkpointOf(id)).state).toMatchObject({ active: null, phase: { k: 'Idle' } })
    expect((await client.send('DELETE', `/api/v1/sessions/${id}`)).status).toBe(200)
  })
})
