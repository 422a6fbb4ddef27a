import { env } from 'cloudflare:workers'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { ExportRecord } from '../../src/protocol/execution/export.ts'
import { SessionUsageResponse } from '../../src/protocol/execution/usage.ts'
import { ok } from '../../src/protocol/result.ts'
import { lineStream } from '../../src/session/export.ts'
import { Session } from '../../src/session/session.ts'
import { newId } from '../../src/storage/ids.ts'
import { exportSession, toByteStream } from '../../src/worker/export.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { failStatements } from '../support/workers/d1.ts'
import { pairDevice } from '../support/workers/device.ts'
import { until } from '../support/workers/hold.ts'
import { type Client, makeClient, parsed, refused, turnAs } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { inside } from '../support/workers/session-object.ts'
import { addUserFact, rowsWith } from '../support/workers/tables.ts'

const models = scriptModels()
vi.setConfig({ testTimeout: 20_000 })

let client: Client
beforeEach(async () => {
  client = await makeClient()
})

const ask = (path: string, who = client) => who.send('GET', path)
const ofSession = (id: string) => `/api/v1/sessions/${id}/export`
const ALL = '/api/v1/export'

/** The lines of an export, each of which must fit the published shape. */
async function recordsOf(response: Response): Promise<ExportRecord[]> {
  expect(response.status).toBe(200)
  expect(response.headers.get('Content-Type')).toBe('application/x-ndjson')
  const text = new TextDecoder().decode(await response.arrayBuffer())
  expect(text.endsWith('\n')).toBe(true)
  return text
    .slice(0, -1)
    .split('\n')
    .map((line) => ExportRecord.parse(JSON.parse(line)))
}
const typesOf = (records: ExportRecord[]) =>
  records.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1])

/** Reads until the stream ends or breaks, and says which. */
async function readToBreak(response: Response): Promise<{ text: string; broke: boolean }> {
  let text = ''
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  try {
    for (;;) {
      const next = await reader?.read()
      if (!next || next.done) return { text, broke: false }
      text += next.value
    }
  } catch {
    return { text, broke: true }
  }
}

/** A session with a tool call that failed, one that is done, a question that waits, and a plan that was decided. */
async function makeRichSession(): Promise<string> {
  const id = await client.newSession('rich')
  models.script({
    text: ['Looking.'],
    calls: [
      { name: 'read_file', arguments: { path: 'a' } },
      { name: 'read_file', arguments: { path: 'b' } },
    ],
  })
  const turn = await turnAs(await client.execute(id, makeExecute('first')), 'awaiting_tool')
  const [one, two] = turn.data.tool_requests
  const results = [
    { call_id: one?.call_id ?? '', content: 'the file' },
    { call_id: two?.call_id ?? '', content: 'no such file', is_error: true },
  ]
  models.script({ text: ['An answer.'] })
  await turnAs(await client.proceed(id, { type: 'tool_results', data: { results } }), 'completed')
  models.script({ text: ['1. do it'] })
  const plan = makeExecute('make a plan', { input: { command: 'plan' } })
  const paused = await turnAs(await client.execute(id, plan), 'awaiting_approval')
  const decisions = [
    { approval_id: paused.data.approval.approval_id, decision: 'rejected' as const, reason: 'too short' },
  ]
  await (await client.proceed(id, { type: 'approval_decisions', data: { decisions } })).text()
  models.script({ text: [], calls: [{ name: 'shell', arguments: { command: 'ls' } }] })
  await turnAs(await client.execute(id, makeExecute('again')), 'awaiting_tool')
  await inside(id, (sql) => {
    sql.rows(
      `INSERT INTO memories (id, key, content, local_only, created_at, updated_at) VALUES (?, 'k', 'a fact', 1, 1, 2)`,
      newId(),
    )
  })
  return id
}

describe('one session', () => {
  it('[EC 22] holds everything that is kept of it, line by line, in order', async () => {
    const id = await makeRichSession()
    const response = await ask(ofSession(id))
    expect(response.headers.get('Content-Disposition')).toBe(
      `attachment; filename="switchyard-session-${id}.ndjson"`,
    )
    const records = await recordsOf(response)
    expect(typesOf(records)).toEqual([
      'export',
      'session',
      'memory',
      'message',
      'plan',
      'approval',
      'policy',
      'trace',
      'usage',
      'end',
    ])
    expect(records[0]).toMatchObject({ type: 'export', version: 1, user_id: client.userId })
    expect(records[1]).toMatchObject({ type: 'session', id, title: 'rich', archived: false })
    expect(records[2]).toMatchObject({
      scope: 'session',
      session_id: id,
      key: 'k',
      content: 'a fact',
      local_only: true,
    })
    const messages = records.filter((record) => record.type === 'message')
    expect(
      messages.map(({ role, content, tool_calls }) => [
        role,
        'plaintext' in content ? content.plaintext : '',
        tool_calls?.map(({ name, status, result }) => [name, status, result]),
      ]),
    ).toEqual([
      ['user', 'first', undefined],
      [
        'assistant',
        'Looking.',
        [
          ['read_file', 'completed', 'the file'],
          ['read_file', 'failed', 'no such file'],
        ],
      ],
      ['assistant', 'An answer.', undefined],
      ['user', 'make a plan', undefined],
      ['assistant', '1. do it', undefined],
      ['user', 'again', undefined],
      ['assistant', '', [['shell', 'pending', undefined]]],
    ])
    expect(messages[1]).toMatchObject({ provider: 'ollama', model: 'small', session_id: id })
    expect(records.find(({ type }) => type === 'plan')).toMatchObject({
      version: 1,
      status: 'rejected',
      content: '1. do it',
    })
    expect(records.filter(({ type }) => type === 'approval')).toContainEqual(
      expect.objectContaining({ target_type: 'plan', decision: 'rejected', reason: 'too short' }),
    )
    expect(records.at(-1)).toEqual({ type: 'end', sessions: 1 })
  })

  it('[EC 22] traces and usage are those of their endpoints', async () => {
    const id = await makeRichSession()
    const records = await recordsOf(await ask(ofSession(id)))
    const base = `/api/v1/sessions/${id}`
    const { trace } = await (await ask(`${base}/traces?limit=1000`)).json<{ trace: { events: unknown[] } }>()
    expect(records.flatMap((record) => (record.type === 'trace' ? [record.event] : []))).toEqual(trace.events)
    const usage = await parsed(await ask(`${base}/usage`), SessionUsageResponse)
    expect(records.flatMap((record) => (record.type === 'usage' ? [record.usage] : []))).toEqual([usage])
  })

  it('[EC 2.8] an archived one too, and a foreign or unknown one looks like none', async () => {
    const id = await client.newSession()
    await client.send('PUT', `/api/v1/sessions/${id}`, { archived: true })
    expect(typesOf(await recordsOf(await ask(ofSession(id))))).toEqual(['export', 'session', 'usage', 'end'])
    const stranger = await makeClient()
    for (const one of [id, newId()]) {
      expect(await refused(await ask(ofSession(one), stranger))).toMatchObject({
        status: 404,
        code: 'session_not_found',
      })
    }
  })

  it('[EC 2] the object gives it to its owner only', async () => {
    const id = await client.newSession()
    await inside(id, async (_sql, _state, session) => {
      expect(await session.exportLines('someone')).toMatchObject({ ok: false })
    })
  })

  it('[D27] texts that are stored in pieces come whole', async () => {
    const id = await client.newSession()
    const long = 'é'.repeat(300_000)
    models.script({ text: ['ok'] })
    await (await client.execute(id, makeExecute(long))).text()
    const records = await recordsOf(await ask(ofSession(id)))
    expect(records.find(({ type }) => type === 'message')).toMatchObject({ content: { plaintext: long } })
  })

  it('reading changes nothing', async () => {
    const id = await makeRichSession()
    const stored = () =>
      inside(id, (sql) =>
        ['session', 'checkpoint', 'messages', 'turns', 'plans'].map((table) =>
          sql.rows(`SELECT * FROM ${table}`),
        ),
      )
    const before = [await stored(), await rowsWith(id)]
    await recordsOf(await ask(ofSession(id)))
    expect([await stored(), await rowsWith(id)]).toEqual(before)
  })

  it('[U03] a failure in the middle breaks the stream, which then has no end', async () => {
    const id = await makeRichSession()
    vi.spyOn(console, 'error').mockImplementation(() => {})
    await inside(id, (sql) => sql.rows("UPDATE turns SET calls = 'no json' WHERE seq = 2"))
    const { text, broke } = await readToBreak(await ask(ofSession(id)))
    expect(text).toContain('"type":"export"')
    expect(text).not.toContain('"type":"end"')
    expect(broke).toBe(true)
  })
})

describe('everything', () => {
  it('[EC 22] facts about the user come first, then sessions in the order they were made, archived ones too', async () => {
    const ids = [
      await client.newSession('one'),
      await client.newSession('two'),
      await client.newSession('three'),
    ]
    await client.send('PUT', `/api/v1/sessions/${ids[1]}`, { archived: true })
    const [fact, forgotten] = [newId(), newId()]
    await addUserFact(client.userId, fact, 'likes tea')
    await addUserFact(client.userId, forgotten, '')
    await env.DB.prepare('UPDATE user_memory SET forgotten_at = 1 WHERE id = ?').bind(forgotten).run()
    const stranger = await makeClient()
    await stranger.newSession('theirs')
    await addUserFact(stranger.userId, newId(), 'likes coffee')
    const response = await ask(ALL)
    expect(response.headers.get('Content-Disposition')).toBe(
      'attachment; filename="switchyard-account.ndjson"',
    )
    const records = await recordsOf(response)
    expect(records[1]).toMatchObject({ type: 'memory', id: fact, scope: 'user', content: 'likes tea' })
    expect(records.filter(({ type }) => type === 'memory')).toHaveLength(1)
    const sessions = records.filter((record) => record.type === 'session')
    expect(sessions.map(({ id, archived }) => [id, archived])).toEqual([
      [ids[0], false],
      [ids[1], true],
      [ids[2], false],
    ])
    expect(records.at(-1)).toEqual({ type: 'end', sessions: 3 })
  })

  it('[EC 22] paired devices come before the sessions, without anything that opens them', async () => {
    const { id, paired } = await pairDevice(client)
    await client.newSession('one')
    const response = await ask(ALL)
    const text = await response.clone().text()
    expect(typesOf(await recordsOf(response))).toEqual(['export', 'device', 'session', 'usage', 'end'])
    expect(text).toContain(id)
    expect(text).not.toContain(String(paired.token))
  })

  it('an account without anything is an empty export', async () => {
    expect(typesOf(await recordsOf(await ask(ALL)))).toEqual(['export', 'end'])
  })

  it('[D49] an `after` that is no id is refused with 400', async () => {
    expect(await refused(await ask(`${ALL}?after=nonsense`))).toMatchObject({
      status: 400,
      code: 'invalid_request',
    })
  })

  it('[EC 3] D1 that fails before the first line is an ordinary error', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    failStatements(/^select "id" from "sessions" where \("sessions"\."user_id"/i)
    expect(await refused(await ask(ALL))).toMatchObject({ status: 502, code: 'storage_error' })
  })

  it('[U03] a session that fails breaks the page, which then has no end', async () => {
    const ids = [await client.newSession('one'), await client.newSession('two')]
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const exportLines = Session.prototype.exportLines
    let calls = 0
    vi.spyOn(Session.prototype, 'exportLines').mockImplementation(async function (this: Session, userId) {
      if (++calls === 2) throw new Error('out of order')
      return exportLines.call(this, userId)
    })
    const { text, broke } = await readToBreak(await ask(ALL))
    expect(text).toContain(ids[0])
    expect(text).not.toContain('"type":"end"')
    expect(broke).toBe(true)
  })
})

describe('reading as fast as the reader', () => {
  /** More than anybody will read, and whether it was told to stop. */
  function endless() {
    const source = { made: 0, stopped: false }
    const records = function* (): Generator<ExportRecord> {
      try {
        for (;;) {
          source.made++
          yield { type: 'end', sessions: source.made }
        }
      } finally {
        source.stopped = true
      }
    }
    return { source, records: records() }
  }
  const LINE_BYTES = '{"type":"end","sessions":1000}\n'.length

  it('[U12] records are made when they are asked for, a bounded piece at a time', async () => {
    const { source, records } = endless()
    const reader = lineStream(records).getReader()
    expect(source.made).toBe(0)
    const first = await reader.read()
    const perRead = source.made
    expect(first.value?.byteLength).toBeLessThan(64 * 1024 + LINE_BYTES)
    await reader.read()
    expect(source.made).toBeLessThan(2.1 * perRead)
    await reader.cancel()
    expect(source.stopped).toBe(true)
  })

  it('[U12] whoever leaves in the middle stops the source, not only the end of the request', async () => {
    const { source, records } = endless()
    const reader = toByteStream(exportSession(client.userId, lineStream(records))).getReader()
    for (let n = 0; n < 2; n++) expect((await reader.read()).done).toBe(false)
    expect(source).toMatchObject({ made: expect.any(Number), stopped: false })
    await reader.cancel()
    expect(source.stopped).toBe(true)
  })

  it('[U12] over HTTP the object stays a bounded piece ahead, and stops when the reader leaves', async () => {
    const id = await client.newSession()
    const { source, records } = endless()
    vi.spyOn(Session.prototype, 'exportLines').mockImplementation(async () => ok(lineStream(records)))
    const response = await ask(ofSession(id))
    const reader = response.body?.getReader()
    for (let n = 0; n < 10; n++) expect((await reader?.read())?.done).toBe(false)
    expect(source.made * LINE_BYTES).toBeLessThan(4 * 1024 * 1024)
    await reader?.cancel()
    await until(() => source.stopped)
  })
})
