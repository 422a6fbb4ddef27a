import { env } from 'cloudflare:workers'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { MAX_FACTS_PER_SCOPE, type MemoryChange } from '../../src/core/memory.ts'
import { ExecuteRequest } from '../../src/protocol/execution/execute.ts'
import {
  DeleteMemoryResponse,
  ListMemoryResponse,
  type MemoryRecord,
  PutMemoryResponse,
} from '../../src/protocol/execution/memory.ts'
import { PreviewResponse } from '../../src/protocol/execution/preview.ts'
import { TraceResponse } from '../../src/protocol/execution/trace.ts'
import { openDatabase } from '../../src/storage/d1/database.ts'
import { writeChanges } from '../../src/storage/d1/memory.ts'
import { newId } from '../../src/storage/ids.ts'
import { loadFacts, loadOwed } from '../../src/storage/session/memories.ts'
import { type BodyChanges, makeExecute, routeTo } from '../support/workers/bodies.ts'
import { setClock, stopClock } from '../support/workers/clock.ts'
import { down, onFlush } from '../support/workers/d1.ts'
import { Hold, until } from '../support/workers/hold.ts'
import { type Client, makeClient, parsed, refused, turnAs } from '../support/workers/router.ts'
import { type Reply, scriptModels } from '../support/workers/scripted-models.ts'
import {
  alarmOf,
  checkpointOf,
  crash,
  inside,
  ringAlarm,
  transcriptOf,
} from '../support/workers/session-object.ts'
import { eventsOf, STREAM } from '../support/workers/turn-stream.ts'

const models = scriptModels()

let client: Client
let id: string
beforeEach(async () => {
  client = await makeClient()
  id = await client.newSession()
  vi.spyOn(console, 'warn').mockImplementation(() => {})
})
afterEach(() => {
  vi.restoreAllMocks()
})

const record = (key: string, value: string, scope = 'user') => ({
  name: 'memory',
  arguments: { op: 'record', scope, key, value },
})
const forget = (key: string, scope = 'user') => ({ name: 'memory', arguments: { op: 'forget', scope, key } })
const calls = (...made: Reply['calls'] & object): Reply => ({ calls: made })
const DONE: Reply = { text: ['Noted.'] }

/** One turn in which a model makes these calls and then ends. */
async function remember(made: Reply['calls'] & object, changes: BodyChanges = {}, session = id) {
  models.script(calls(...made), DONE)
  return turnAs(await client.execute(session, makeExecute('remember this', changes)), 'completed')
}
/** What a model is told before a conversation. */
async function system(session = id, changes: BodyChanges = {}): Promise<string> {
  models.script(DONE)
  await turnAs(await client.execute(session, makeExecute('what do you know?', changes), KEY), 'completed')
  return models.chats.at(-1)?.messages.find(({ role }) => role === 'system')?.content ?? ''
}
const KEY = { 'X-Smista-Provider-Cloud-Api-Key': 'k' }
const REMOTE: BodyChanges = {
  policy: { ...routeTo('openai-compat:cloud/big'), privacy: { remote: { mode: 'allow' } } },
}

const list = async (query = ''): Promise<MemoryRecord[]> =>
  (await parsed(await client.send('GET', `/api/v1/memory${query}`), ListMemoryResponse)).memories
const put = (memoryId: string, body: object, who = client) =>
  who.send('PUT', `/api/v1/memory/${memoryId}`, body)
const putOk = async (memoryId: string, body: object) =>
  (await parsed(await put(memoryId, body), PutMemoryResponse)).memory
const remove = (memoryId: string, who = client) => who.send('DELETE', `/api/v1/memory/${memoryId}`)
const keysOf = (memories: MemoryRecord[]) => memories.map(({ key, content }) => `${key}=${content}`).sort()
const owedIn = (session = id) => inside(session, (sql) => loadOwed(sql).map(({ change }) => change))
const rowsOf = async (table: 'user_memory' | 'context_memory') =>
  (
    await env.DB.prepare(
      table === 'user_memory'
        ? 'SELECT * FROM user_memory WHERE user_id = ?'
        : 'SELECT * FROM context_memory WHERE session_id = ?',
    )
      .bind(table === 'user_memory' ? client.userId : id)
      .all()
  ).results

describe('[EC 16] a call of the tool', () => {
  it.each([
    ['buffered', {}],
    ['streamed', STREAM],
  ] as const)('is answered by the router in a %s turn', async (_, headers) => {
    models.script(calls(record('editor', 'vim'), forget('nothing')), DONE)
    const response = await client.execute(id, makeExecute('I use vim'), headers)
    if (headers === STREAM) {
      const types = (await eventsOf(response)).map(({ type }) => type)
      expect(types.filter((type) => type.startsWith('tool_call'))).toEqual([])
      expect(types.at(-1)).toBe('turn_end')
    } else await turnAs(response, 'completed')
    expect((await transcriptOf(id))[1]?.calls).toEqual([
      { name: 'memory', result: 'Remembered under `editor`.', isError: false },
      { name: 'memory', result: 'Nothing is remembered under `nothing`.', isError: false },
    ])
    // The round after it knows already.
    expect(JSON.stringify(models.chats[1]?.messages[0])).toContain('editor: vim')
    expect(keysOf(await list())).toEqual(['editor=vim'])
  })

  it('beside calls of the client does not reach the client', async () => {
    models.script(calls(record('k', 'v', 'session'), { name: 'read_file', arguments: { path: 'a' } }), DONE)
    const paused = await turnAs(await client.execute(id, makeExecute('go')), 'awaiting_tool')
    expect(paused.data.tool_requests.map(({ name }) => name)).toEqual(['read_file'])
    expect(keysOf(await list(`?session_id=${id}`))).toEqual(['k=v'])
    const results = [{ call_id: paused.data.tool_requests[0]?.call_id ?? '', content: 'R' }]
    await turnAs(await client.proceed(id, { type: 'tool_results', data: { results } }), 'completed')
  })

  it('[EC 19] is traced without what it says', async () => {
    await remember([record('where', 'in the cellar')])
    const { trace } = await parsed(await client.send('GET', `/api/v1/sessions/${id}/traces`), TraceResponse)
    const told = trace.events.filter(({ event_type: type }) => type === 'tool_call')
    expect(told).toMatchObject([{ payload: { plaintext: { tool_name: 'memory', status: 'completed' } } }])
    expect(JSON.stringify(trace)).not.toContain('cellar')
  })

  it('[EC 12.2] of a tool that the policy takes away stores nothing', async () => {
    await remember([record('k', 'v')], {
      policy: { tools: { permissions: { memory: 'ask' } } },
    })
    expect(models.chats[0]?.tools).not.toContain('memory')
    expect(await list()).toEqual([])
  })

  it('[EC 6] again and again ends the run', async () => {
    models.script(calls(record('k', 'v')))
    expect((await refused(await client.execute(id, makeExecute('go')))).code).toBe('provider_error')
    expect(models.chats).toHaveLength(8)
  })
})

describe('[EC 16] recall', () => {
  it('tells the user’s facts in all sessions of the user, a session’s in that one, and nobody else', async () => {
    await remember([record('editor', 'vim'), record('branch', 'main', 'session')])
    const other = await client.newSession()
    expect(await system()).toMatch(/About the user:\n- editor: vim\n\nAbout this session:\n- branch: main/)
    const elsewhere = await system(other)
    expect([elsewhere.includes('editor: vim'), elsewhere.includes('branch')]).toEqual([true, false])
    client = await makeClient()
    expect(await system(await client.newSession())).not.toContain('vim')
  })

  it('tells the newest forty, and a preview the same', async () => {
    for (let n = 0; n < 42; n++) await putOk(newId(), { key: `k${n}`, content: `fact ${n}` })
    const known = await system()
    expect([...known.matchAll(/fact \d+/g)]).toHaveLength(40)
    const body = makeExecute('what do you know?')
    const preview = await parsed(
      await client.send('POST', `/api/v1/sessions/${id}/preview`, body),
      PreviewResponse,
    )
    expect(preview.included_context.filter((label) => label.startsWith('memory '))).toHaveLength(40)
    expect(preview.excluded_context).toContain('2 older facts')
  })

  it('[U37] never shows a remote model what a turn bound to local models recorded', async () => {
    await remember([record('plan', 'buy the cellar'), record('door', 'green', 'session')], {
      local_preferences: { local_only: true },
    })
    expect(await list()).toMatchObject([{ local_only: true }, { local_only: true }])
    const remote = await system(id, REMOTE)
    expect([remote.includes('cellar'), remote.includes('green')]).toEqual([false, false])
    expect(models.chats.at(-1)?.origin).toBe('https://cloud.test')
    // Nor in the call that recorded it, which stands in the history of its session.
    const sent = JSON.stringify(models.chats.at(-1))
    expect([sent.includes('cellar'), sent.includes('green')]).toEqual([false, false])
    const local = await system()
    expect([local.includes('cellar'), local.includes('green')]).toEqual([true, true])
    // What a turn recorded that was shown nothing secret is no secret.
    models.script(calls(record('plan', 'buy the attic')), DONE)
    await turnAs(await client.execute(await client.newSession(), makeExecute('go', REMOTE), KEY), 'completed')
    expect(await system(await client.newSession(), REMOTE)).toContain('attic')
  })

  it('[D32] a Worker of the release before tells no facts, and its turns are served', async () => {
    models.script(DONE)
    const { userId } = client
    const answer = await inside(id, (_sql, _state, session) =>
      session.execute(
        { userId, credentials: {}, deploymentProviders: true },
        ExecuteRequest.parse(makeExecute('hello')),
        { stream: false, digest: 'd', idempotencyKey: null },
      ),
    )
    expect(answer).toMatchObject({ kind: 'json', body: { status: 'completed' } })
  })

  it('[D25] is read where a turn is decided, and with no other request', async () => {
    await putOk(newId(), { key: 'editor', content: 'vim' })
    const read: string[] = []
    const batch = env.DB.batch.bind(env.DB)
    vi.spyOn(env.DB, 'batch').mockImplementation(async <T>(statements: D1PreparedStatement[]) => {
      const results = await batch<T>(statements)
      read.push(JSON.stringify(results.map(({ results: rows }) => rows)))
      return results
    })
    for (const path of ['', '/run', '/traces', '/usage', '/export'])
      await (await client.send('GET', `/api/v1/sessions/${id}${path}`)).arrayBuffer()
    expect(read.length).toBeGreaterThan(0)
    expect(read.filter((rows) => rows.includes('vim'))).toEqual([])
    await client.send('POST', `/api/v1/sessions/${id}/preview`, makeExecute('hello'))
    expect(read.filter((rows) => rows.includes('vim'))).toHaveLength(1)
  })

  it('[D25] costs a turn no trip of its own to D1', async () => {
    const trips = vi.spyOn(env.DB, 'batch')
    await remember([record('k', 'v'), record('k', 'v', 'session')])
    expect(trips).toHaveBeenCalledTimes(2)
    expect(await owedIn()).toEqual([])
  })
})

describe('[D26] while D1 fails', () => {
  beforeEach(() => {
    stopClock()
  })

  it('what was recorded is known to later turns of the session, and follows once', async () => {
    const flush = onFlush(id, down)
    await remember([record('editor', 'vim'), record('branch', 'main', 'session')])
    expect(await list()).toEqual([])
    expect(await system()).toMatch(/editor: vim[\s\S]*branch: main/)
    await remember([forget('editor'), record('shell', 'fish')])
    expect(await system()).toMatch(/About the user:\n- shell: fish\n/)
    flush.mockRestore()
    setClock((await alarmOf(id)) ?? 0)
    await ringAlarm(id)
    expect(keysOf(await list())).toEqual(['branch=main', 'shell=fish'])
    expect(await owedIn()).toEqual([])
    expect((await checkpointOf(id)).outbox.memory).toBe(false)
    expect(await alarmOf(id)).toBeNull()
  })

  it('a batch that is stored and fails all the same doubles nothing', async () => {
    const flush = onFlush(id, async (send) => {
      await send()
      return down()
    })
    await remember([record('k', 'a'), forget('k'), record('k', 'b'), record('s', 'c', 'session')])
    const before = [await rowsOf('user_memory'), await rowsOf('context_memory')]
    flush.mockRestore()
    setClock((await alarmOf(id)) ?? 0)
    await ringAlarm(id)
    expect([await rowsOf('user_memory'), await rowsOf('context_memory')]).toEqual(before)
    expect(keysOf(await list())).toEqual(['k=b', 's=c'])
    expect(await owedIn()).toEqual([])
  })

  it('a crash between the commit and the flush loses nothing', async () => {
    const hold = new Hold()
    const flush = onFlush(id, async (send) => {
      await hold.wait()
      return send()
    })
    models.script(calls(record('editor', 'vim'), record('branch', 'main', 'session')), DONE)
    const served = client.execute(id, makeExecute('remember'))
    await hold.reached()
    vi.spyOn(console, 'error').mockImplementation(() => {})
    await crash(id)
    await served
    flush.mockRestore()
    expect(await system()).toMatch(/editor: vim[\s\S]*branch: main/)
    await until(async () => (await owedIn()).length === 0)
    expect(keysOf(await list())).toEqual(['branch=main', 'editor=vim'])
    expect(await rowsOf('user_memory')).toHaveLength(1)
  })

  it('a batch of the object that died cannot bring back what its successor forgot', async () => {
    const late: (() => Promise<unknown>)[] = []
    const flush = onFlush(id, async (send) => {
      late.push(send)
      return new Promise(() => {})
    })
    await remember([record('k', 'old'), record('k', 'old', 'session')])
    await crash(id)
    flush.mockRestore()
    await remember([forget('k'), forget('k', 'session')])
    expect(await list()).toEqual([])
    await Promise.all(late.map((send) => send()))
    expect(late).toHaveLength(1)
    expect(await list()).toEqual([])
    expect(await system()).not.toContain('old')
  })

  it('a session that is deleted leaves the user’s facts behind, those of its own not', async () => {
    const flush = onFlush(id, down)
    await remember([record('editor', 'vim'), record('branch', 'main', 'session')])
    flush.mockRestore()
    await client.send('DELETE', `/api/v1/sessions/${id}`)
    expect(keysOf(await list())).toEqual(['editor=vim'])
    expect(await rowsOf('context_memory')).toEqual([])
  })

  it('a session that is gone from D1 still hands over the user’s facts', async () => {
    const flush = onFlush(id, down)
    await remember([record('editor', 'vim'), record('branch', 'main', 'session')])
    flush.mockRestore()
    await env.DB.prepare('DELETE FROM sessions WHERE id = ?').bind(id).run()
    for (let rings = 0; rings < 2; rings++) {
      setClock((await alarmOf(id)) ?? Date.now())
      await ringAlarm(id)
    }
    expect(keysOf(await list())).toEqual(['editor=vim'])
    expect(await owedIn()).toEqual([])
    expect(await alarmOf(id)).toBeNull()
  })
})

describe('[D26] changes of the user’s facts', () => {
  const change = (content: string, atMs: number, key = 'k'): MemoryChange => ({
    op: 'record',
    scope: 'user',
    id: newId(),
    key,
    content,
    localOnly: false,
    createdAtMs: atMs,
    atMs,
  })
  const write = (...changes: MemoryChange[]) =>
    writeChanges(
      openDatabase(env.DB),
      { userId: client.userId, sessionId: id },
      changes.map((one) => ({ change: one })),
    )

  it('pass only where nothing later is known, in whatever order they arrive', async () => {
    const first = change('first', 10)
    await write(first, change('third', 30))
    await write(change('second', 20), first)
    expect(keysOf(await list())).toEqual(['k=third'])
    await write({ op: 'forget', scope: 'user', key: 'k', atMs: 25 })
    expect(keysOf(await list())).toEqual(['k=third'])
    await write({ op: 'forget', scope: 'user', key: 'k', atMs: 40 }, change('late', 35))
    expect(await list()).toEqual([])
    expect(await rowsOf('user_memory')).toMatchObject([{ content: '', forgotten_at: 40 }])
    await write(change('again', 50))
    expect(await list()).toMatchObject([{ content: 'again', created_at: '1970-01-01T00:00:00.050Z' }])
  })

  it('that come again after the fact got another key make no second one', async () => {
    const made = change('a', 10)
    await write(made)
    await putOk(made.op === 'record' ? made.id : '', { key: 'renamed', content: 'a' })
    await write(made)
    expect(keysOf(await list())).toEqual(['renamed=a'])
  })

  it('of a session’s facts pass only where nothing later is known, too', async () => {
    const made: MemoryChange = { ...change('now', 30), scope: 'session' } as MemoryChange
    const factId = made.op === 'record' ? made.id : ''
    await write(made)
    await write({ op: 'forget', scope: 'session', id: factId, atMs: 20 })
    expect(keysOf(await list())).toEqual(['k=now'])
    await write({ op: 'forget', scope: 'session', id: factId, atMs: 40 })
    expect(await list()).toEqual([])
  })

  it('of a user who is gone have nowhere to go, and do no harm', async () => {
    await env.DB.prepare('DELETE FROM users WHERE id = ?').bind(client.userId).run()
    await write(change('a', 10))
    expect(await rowsOf('user_memory')).toEqual([])
  })
})

describe('[D50] PUT /memory/{id}', () => {
  /** So many facts about the user, all of long ago. */
  const fill = async (count: number) => {
    const statement = env.DB.prepare(
      `INSERT INTO user_memory (id, user_id, key, content, local_only, created_at, updated_at)
       VALUES (?, ?, ?, 'x', 0, 1, 1)`,
    )
    await env.DB.batch(
      Array.from({ length: count }, (_, n) => statement.bind(newId(), client.userId, `k${n}`)),
    )
  }

  it('makes a fact, changes it, and repeats harmlessly', async () => {
    const memoryId = newId()
    const made = await putOk(memoryId.toUpperCase(), { key: 'k', content: 'a', local_only: true })
    expect(made).toMatchObject({ id: memoryId, scope: 'user', key: 'k', content: 'a', local_only: true })
    const changed = await putOk(memoryId, { content: 'b' })
    expect(changed).toEqual({
      id: memoryId,
      scope: 'user',
      content: 'b',
      local_only: true,
      created_at: made.created_at,
      updated_at: expect.any(String),
    })
    await putOk(memoryId, { content: 'b' })
    expect(await list()).toHaveLength(1)
    expect(await putOk(memoryId, { content: 'b', local_only: false })).not.toHaveProperty('local_only')
  })

  it('does the same with a fact of a session, through its object', async () => {
    const memoryId = newId()
    const body = { scope: 'session', session_id: id, key: 'k', content: 'a' }
    expect(await putOk(memoryId, body)).toMatchObject({ id: memoryId, scope: 'session', session_id: id })
    await putOk(memoryId, { ...body, content: 'b' })
    expect(await inside(id, (sql) => loadFacts(sql))).toMatchObject([{ id: memoryId, content: 'b' }])
    expect(keysOf(await list(`?session_id=${id}`))).toEqual(['k=b'])
    expect(await system()).toContain('k: b')
  })

  it.each([
    ['about the user', () => ({})],
    ['of a session', () => ({ scope: 'session', session_id: id })],
  ])('%s: refuses a key that another fact has, and names that one', async (_, where) => {
    const [one, two] = [newId(), newId()]
    await putOk(one, { ...where(), key: 'k', content: 'a' })
    await putOk(two, { ...where(), key: 'other', content: 'a' })
    expect(await refused(await put(two, { ...where(), key: 'k', content: 'a' }))).toMatchObject({
      status: 422,
      code: 'invalid_request',
      details: { memory_id: one },
    })
    await remove(one)
    await putOk(two, { ...where(), key: 'k', content: 'mine now' })
    expect(keysOf(await list())).toEqual(['k=mine now'])
  })

  it('refuses what moves a fact: its scope and its session are chosen once', async () => {
    const other = await client.newSession()
    const [ofUser, ofSession] = [newId(), newId()]
    await putOk(ofUser, { content: 'a' })
    await putOk(ofSession, { scope: 'session', session_id: id, content: 'a' })
    for (const [memoryId, body] of [
      [ofUser, { scope: 'session', session_id: id, content: 'b' }],
      [ofSession, { content: 'b' }],
      [ofSession, { scope: 'session', session_id: other, content: 'b' }],
      [newId(), { scope: 'session', content: 'b' }],
      [newId(), { scope: 'user', session_id: id, content: 'b' }],
    ] as const)
      expect(await refused(await put(memoryId, body))).toMatchObject({ status: 422, code: 'invalid_request' })
    expect((await list()).map(({ content }) => content)).toEqual(['a', 'a'])
  })

  it('knows no session of somebody else, and changes no fact of theirs', async () => {
    const other = await makeClient()
    const foreign = await other.newSession()
    const body = { scope: 'session', session_id: foreign, content: 'a' }
    expect((await refused(await put(newId(), body))).code).toBe('session_not_found')
    expect((await refused(await put(newId(), { ...body, session_id: newId() }))).code).toBe(
      'session_not_found',
    )
    const memoryId = newId()
    await putOk(memoryId, { content: 'mine' })
    expect(await refused(await put(memoryId, { content: 'theirs' }, other))).toMatchObject({ status: 422 })
    expect(await refused(await remove(memoryId, other))).toMatchObject({
      status: 404,
      code: 'invalid_request',
    })
    expect(await list()).toMatchObject([{ content: 'mine' }])
  })

  it('[D50] of many facts at once under one key one is stored, and the others are told which', async () => {
    const ids = Array.from({ length: 24 }, newId)
    const answers = await Promise.all(ids.map((memoryId) => put(memoryId, { key: 'k', content: memoryId })))
    const [stored, ...more] = await list()
    expect([more, stored?.content]).toEqual([[], stored?.id])
    const losers = answers.filter(({ status }) => status !== 200)
    expect(losers).toHaveLength(23)
    for (const loser of losers)
      expect(await refused(loser)).toMatchObject({
        status: 422,
        code: 'invalid_request',
        details: { memory_id: stored?.id },
      })
  })

  it('[D50] of two facts that change to one key at once one keeps its old one', async () => {
    const [one, two] = [newId(), newId()]
    await putOk(one, { key: 'a', content: '1' })
    await putOk(two, { key: 'b', content: '2' })
    const both = await Promise.all([one, two].map((memoryId) => put(memoryId, { key: 'c', content: 'new' })))
    expect(both.map(({ status }) => status).sort()).toEqual([200, 422])
    expect((await list()).filter(({ key }) => key === 'c')).toHaveLength(1)
  })

  it('[D27] of many facts at once no more are stored than there is room for', async () => {
    await fill(MAX_FACTS_PER_SCOPE - 3)
    const answers = await Promise.all(Array.from({ length: 12 }, () => put(newId(), { content: 'x' })))
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(3).fill(200), ...Array(9).fill(422)])
    expect(await list()).toHaveLength(MAX_FACTS_PER_SCOPE)
  })

  it('[EC 16] what sessions were promised at once is kept beyond the limit, and the newest are recalled', async () => {
    await fill(MAX_FACTS_PER_SCOPE - 1)
    const other = await client.newSession()
    const hold = new Hold()
    // Both turns have begun, and know 199 facts, before either of them records one.
    models.script(async ({ messages }) => {
      const said = messages.filter(({ role }) => role === 'user').at(-1)?.content ?? ''
      if (messages.at(-1)?.role !== 'user') return DONE
      await hold.wait()
      return calls(record(said, `noted in ${said}`))
    })
    const served = [
      [id, 'one'],
      [other, 'two'],
    ].map(([session = '', text = '']) => client.execute(session, makeExecute(text)))
    await until(() => models.chats.length === 2)
    hold.release()
    for (const turn of served) await turnAs(await turn, 'completed')
    expect(await list()).toHaveLength(MAX_FACTS_PER_SCOPE + 1)
    const known = await system()
    expect([known.includes('one: noted in one'), known.includes('two: noted in two')]).toEqual([true, true])
    expect((await refused(await put(newId(), { content: 'x' }))).details).toEqual({
      max_facts: MAX_FACTS_PER_SCOPE,
    })
  })

  it.each([
    ['a blank content', { content: ' \n' }],
    ['a blank key', { key: '  ', content: 'a' }],
    ['half of a surrogate pair as content', { content: 'a\ud83d' }],
    ['half of a surrogate pair as key', { key: '\ude00', content: 'a' }],
  ])('refuses %s, about the user and of a session', async (_, body) => {
    for (const where of [{}, { scope: 'session', session_id: id }])
      expect(await refused(await put(newId(), { ...where, ...body }))).toMatchObject({
        status: 422,
        code: 'invalid_request',
      })
    expect(await list()).toEqual([])
    const whole = { key: ' k ', content: ' a😀\n' }
    expect(await putOk(newId(), whole)).toMatchObject(whole)
  })

  it('[D27] refuses one fact too many', async () => {
    await fill(MAX_FACTS_PER_SCOPE)
    expect(await refused(await put(newId(), { key: 'more', content: 'x' }))).toMatchObject({
      status: 422,
      details: { max_facts: MAX_FACTS_PER_SCOPE },
    })
    const [known] = await list()
    await putOk(known?.id ?? '', { content: 'changed' })
    await remember([record('more', 'v')])
    expect((await transcriptOf(id))[1]?.calls).toMatchObject([{ isError: true }])
  })

  it('refuses a fact of an encrypted session, and takes one of an archived session', async () => {
    const created = await client.send('POST', '/api/v1/sessions', { title: 't', key_id: 'kf_1' })
    const { session } = (await created.json()) as { session: { id: string } }
    const body = { scope: 'session', session_id: session.id, content: 'a' }
    expect(await refused(await put(newId(), body))).toMatchObject({ status: 422, code: 'invalid_request' })
    await client.send('PUT', `/api/v1/sessions/${id}`, { archived: true })
    await putOk(newId(), { ...body, session_id: id })
  })
})

describe('[D50] DELETE /memory/{id}', () => {
  it.each([
    ['about the user', () => ({ key: 'k', content: 'a' })],
    ['of a session', () => ({ scope: 'session', session_id: id, key: 'k', content: 'a' })],
  ])('a fact %s is forgotten, its content with it; a second time it is unknown', async (_, body) => {
    const memoryId = newId()
    await putOk(memoryId, body())
    expect(await parsed(await remove(memoryId), DeleteMemoryResponse)).toEqual({ deleted: true })
    expect(await refused(await remove(memoryId))).toMatchObject({ status: 404, code: 'invalid_request' })
    expect(await list()).toEqual([])
    expect(JSON.stringify([await rowsOf('user_memory'), await rowsOf('context_memory')])).not.toContain('"a"')
    expect(await system()).not.toContain('k: a')
    expect(await putOk(memoryId, body())).toMatchObject({ content: 'a' })
  })

  it('of an id that is none, or nobody’s', async () => {
    expect(await refused(await remove('nonsense'))).toMatchObject({ status: 400, code: 'invalid_request' })
    expect(await refused(await put('nonsense', { content: 'a' }))).toMatchObject({ status: 400 })
    expect(await refused(await remove(newId()))).toMatchObject({ status: 404, code: 'invalid_request' })
  })
})

describe('[D50] GET /memory', () => {
  it('lists both scopes, the newest first, by scope and by session', async () => {
    const start = stopClock()
    await putOk(newId(), { key: 'a', content: '1' })
    setClock(start + 10)
    await putOk(newId(), { scope: 'session', session_id: id, key: 'b', content: '2' })
    setClock(start + 20)
    await putOk(newId(), { content: '3' })
    const contents = async (query: string) => (await list(query)).map(({ content }) => content)
    expect(await contents('')).toEqual(['3', '2', '1'])
    expect(await contents('?scope=user')).toEqual(['3', '1'])
    expect(await contents('?scope=session')).toEqual(['2'])
    expect(await contents(`?session_id=${id}`)).toEqual(['2'])
    expect(await contents(`?scope=user&session_id=${id}`)).toEqual([])
    expect(await contents(`?session_id=${newId()}`)).toEqual([])
    client = await makeClient()
    expect(await contents(`?session_id=${id}`)).toEqual([])
  })

  it('refuses a filter that is none', async () => {
    for (const query of ['?scope=all', '?session_id=x'])
      expect(await refused(await client.send('GET', `/api/v1/memory${query}`))).toMatchObject({ status: 400 })
  })

  it('[U34] answers nobody without a token', async () => {
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['PUT', `/${newId()}`, { content: 'a' }],
      ['DELETE', `/${newId()}`, undefined],
    ] as const) {
      const headers = { Authorization: 'Bearer nonsense' }
      expect((await client.send(method, `/api/v1/memory${path}`, body, headers)).status).toBe(401)
    }
  })
})
