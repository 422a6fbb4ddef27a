import { listDurableObjectIds, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { ExecuteRequest } from '../../src/protocol/execution/execute.ts'
import {
  CreateSessionResponse,
  DeleteSessionResponse,
  GetSessionResponse,
  ListSessionsResponse,
  type SessionSummary,
  UpdateSessionResponse,
} from '../../src/protocol/execution/session.ts'
import { openDatabase } from '../../src/storage/d1/database.ts'
import { selectOwnedSession } from '../../src/storage/d1/sessions.ts'
import { MAX_KEY_ID_BYTES, MAX_SCOPE_BYTES, MAX_TITLE_BYTES } from '../../src/storage/limits.ts'
import { tokenIdOf } from '../../src/worker/secrets.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { setClock, stopClock } from '../support/workers/clock.ts'
import { copyOf, failStatements, onFlush } from '../support/workers/d1.ts'
import { Hold, until } from '../support/workers/hold.ts'
import { type Client, type Headers, makeClient, parsed, refused } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { alarmOf, crash, inside, ringAlarm } from '../support/workers/session-object.ts'

const models = scriptModels()
const SESSIONS = '/api/v1/sessions'

let client: Client
beforeEach(async () => {
  client = await makeClient()
})

const create = (body: unknown, headers: Headers = {}) => client.send('POST', SESSIONS, body, headers)
const created = async (body: unknown, headers: Headers = {}): Promise<SessionSummary> =>
  (await parsed(await create(body, headers), CreateSessionResponse, 201)).session
const list = async (query = '', who = client): Promise<SessionSummary[]> =>
  (await parsed(await who.send('GET', `${SESSIONS}${query}`), ListSessionsResponse)).sessions
const titles = async (query = '') => (await list(query)).map(({ title }) => title)
const read = (id: string) => client.send('GET', `${SESSIONS}/${id}`)
const update = (id: string, patch: unknown) => client.send('PUT', `${SESSIONS}/${id}`, patch)
const updated = async (id: string, patch: unknown) =>
  (await parsed(await update(id, patch), UpdateSessionResponse)).session
const remove = (id: string) => client.send('DELETE', `${SESSIONS}/${id}`)
const GONE = { session: undefined, messages: [], turns: [] }
const notFound = { status: 404, code: 'session_not_found' }
const tablesOf = (state: DurableObjectState) =>
  state.storage.sql.exec("SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_cf%' ESCAPE '\\'").toArray()
/** A statement that is sent when the hold is released. */
const heldStatement = (statement: D1PreparedStatement, hold: Hold) => {
  vi.spyOn(statement, 'run').mockImplementation(async () => {
    await hold.wait()
    throw new Error('never sent')
  })
  return statement
}

describe('create and read', () => {
  it('[EC 2.6] a new session is as it was asked for, and times start equal', async () => {
    const session = await created({ title: 'Grüße', scope: '/home/me/project', key_id: null })
    expect(session).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{14}7/),
      title: 'Grüße',
      scope: '/home/me/project',
      encrypted: false,
      created_at: session.created_at,
      updated_at: session.created_at,
      archived: false,
      shared: false,
    })
    expect(session.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(await list()).toEqual([session])
  })

  it('[EC 2.6] any title is accepted, the empty one and a repeated one too', async () => {
    for (const title of ['', 'twin', 'twin']) await created({ title })
    expect((await titles()).sort()).toEqual(['', 'twin', 'twin'])
  })

  it.each([
    ['title', MAX_TITLE_BYTES],
    ['scope', MAX_SCOPE_BYTES],
    ['key_id', MAX_KEY_ID_BYTES],
  ])('[D27] a %s of %i bytes is taken, and a longer one refused', async (name, most) => {
    const fits = 'ü'.repeat(most / 2)
    const session = await created({ title: 't', [name]: fits })
    const refusal = {
      status: 422,
      code: 'invalid_request',
      details: { field: name, max_bytes: most },
    }
    expect(await refused(await create({ title: 't', [name]: `${fits}!` }))).toMatchObject(refusal)
    expect(await list()).toEqual([session])
    if (name !== 'title') return
    expect(await refused(await update(session.id, { title: `${fits}!` }))).toMatchObject(refusal)
    expect(await list()).toEqual([session])
  })

  it('[EC 2.6] `key_id` marks a session as encrypted for life', async () => {
    const session = await created({ title: 't', key_id: 'kf_abc' })
    expect(session).toMatchObject({ encrypted: true, key_id: 'kf_abc' })
    expect(await updated(session.id, { title: 'u', key_id: null })).toMatchObject({
      encrypted: true,
      key_id: 'kf_abc',
    })
  })

  it('[EC 2.8] a session shows its messages oldest first; tool calls are none of them', async () => {
    const { id } = await created({ title: 't', scope: 's' })
    models.script({ text: ['Let me look.'], calls: [{ name: 'read_file', arguments: { path: 'a' } }] })
    await (await client.execute(id, makeExecute('first'))).text()
    models.script({ text: ['second answer'] })
    await (await client.execute(id, makeExecute('second'))).text()
    const { session } = await parsed(await read(id), GetSessionResponse)
    const said = (role: string, text: string) => ({ role, content: { plaintext: text } })
    const model = { provider: 'ollama', model: 'small' }
    expect(session).toEqual({
      id,
      title: 't',
      scope: 's',
      created_at: session.created_at,
      updated_at: session.updated_at,
      messages: [
        said('user', 'first'),
        { ...said('assistant', 'Let me look.'), ...model },
        said('user', 'second'),
        { ...said('assistant', 'second answer'), ...model },
      ],
      metadata: {},
    })
  })

  it('[U18] messages stand in the order in which they came, whatever the clock says', async () => {
    const id = await client.newSession()
    const now = stopClock()
    models.script({ text: ['answer'] })
    const sent = ['first', 'second', 'third']
    for (const [n, text] of sent.entries()) {
      setClock(now - n * 1_000)
      await (await client.execute(id, makeExecute(text))).text()
    }
    const { session } = await parsed(await read(id), GetSessionResponse)
    const texts = session.messages.map(({ content }) => content).map((content) => JSON.stringify(content))
    expect(texts.filter((text) => !text.includes('answer'))).toEqual(
      sent.map((text) => JSON.stringify({ plaintext: text })),
    )
  })

  it('[D25] who asks, and whether the session is theirs, is one read of D1', async () => {
    const { id } = await created({ title: 't' })
    const batch = vi.spyOn(env.DB, 'batch')
    const prepare = vi.spyOn(env.DB, 'prepare')
    for (const path of [`/${id}`, `/${id}/run`, `/${id}/traces`, `/${id}/usage`]) {
      batch.mockClear()
      expect((await client.send('GET', `${SESSIONS}${path}`)).status).toBe(200)
      expect(batch, path).toHaveBeenCalledTimes(1)
    }
    expect(prepare.mock.calls.every(([query]) => /^select/i.test(query))).toBe(true)
  })
})

describe('ownership', () => {
  it('[EC 2] the object answers its owner only, whatever the Worker let through', async () => {
    const { id } = await created({ title: 't' })
    const stranger = await makeClient()
    const who = { userId: stranger.userId, credentials: {}, deploymentProviders: true }
    const options = { stream: false, digest: 'd', idempotencyKey: null }
    const execute = ExecuteRequest.parse(makeExecute('hi'))
    const failed = { ok: false, error: { code: 'session_not_found' } }
    const refusedTurn = { kind: 'failure', failure: { code: 'session_not_found' } }
    await inside(id, async (_sql, _state, session) => {
      expect(await session.detail(stranger.userId)).toMatchObject(failed)
      expect(await session.update(stranger.userId, { title: 'mine' })).toMatchObject(failed)
      expect(await session.remove(stranger.userId)).toMatchObject(failed)
      expect(await session.traces(stranger.userId, { limit: 1, offset: 0 })).toMatchObject(failed)
      expect(await session.usage(stranger.userId)).toMatchObject(failed)
      expect(await session.preview(who, execute)).toMatchObject(failed)
      expect(await session.execute(who, execute, options)).toMatchObject(refusedTurn)
      expect(await session.continueRun(who, { type: 'break' }, options)).toMatchObject(refusedTurn)
      const view = { stream: true, lastEventId: null }
      expect(await session.currentRun(stranger.userId, view)).toMatchObject(refusedTurn)
    })
    expect((await read(id)).status).toBe(200)
  })

  it('[EC 2] a session is found under its owner’s token only', async () => {
    const { id } = await created({ title: 't' })
    const stranger = await makeClient()
    const found = (who: Client) =>
      selectOwnedSession(openDatabase(env.DB), id, tokenIdOf(who.token) ?? 'no token')
    expect(await found(client)).toEqual([{ id }])
    expect(await found(stranger)).toEqual([])
  })
})

describe('list', () => {
  it('[EC 2.7] the most recently updated comes first, archived ones included', async () => {
    const start = Date.now()
    const ids: string[] = []
    for (let n = 0; n < 3; n++) {
      setClock(start + n)
      ids.push((await created({ title: `${n}` })).id)
    }
    setClock(start + 10)
    await updated(ids[1] ?? '', { archived: true })
    expect(await titles()).toEqual(['1', '2', '0'])
    expect((await list()).map(({ archived }) => archived)).toEqual([true, false, false])
  })

  it('[EC 2.7] a turn counts as an update', async () => {
    const first = await created({ title: 'first' })
    setClock(Date.now() + 1000)
    await created({ title: 'second' })
    expect(await titles()).toEqual(['second', 'first'])
    setClock(Date.now() + 1000)
    models.script({ text: ['hello'] })
    await (await client.execute(first.id, makeExecute('hi'))).text()
    expect(await titles()).toEqual(['first', 'second'])
    const { session } = await parsed(await read(first.id), GetSessionResponse)
    expect((await list())[0]?.updated_at).toBe(session.updated_at)
  })

  it('[EC 2.7] `scope` matches exactly, byte for byte', async () => {
    for (const scope of ['/a', '/a/', '/A', '/a%', null]) await created({ title: `in ${scope}`, scope })
    expect(await titles('?scope=/a')).toEqual(['in /a'])
    expect(await titles('?scope=/A')).toEqual(['in /A'])
    expect(await titles('?scope=/a%25')).toEqual(['in /a%'])
    expect(await titles('?scope=')).toEqual([])
  })

  it('[EC 2.7] `title` is a substring in any case, with % and _ as they are', async () => {
    const all = ['Fix the Parser', 'fix 100% of it', 'fix_it', 'other']
    for (const title of all) await created({ title })
    const found = async (text: string) => (await titles(`?title=${encodeURIComponent(text)}`)).sort()
    expect(await found('FIX')).toEqual(['Fix the Parser', 'fix 100% of it', 'fix_it'])
    expect(await found('parser')).toEqual(['Fix the Parser'])
    expect(await found('%')).toEqual(['fix 100% of it'])
    expect(await found('_')).toEqual(['fix_it'])
    expect(await found('fix%it')).toEqual([])
    expect(await found('')).toEqual([...all].sort())
  })

  it('[D27] a title may be asked for that is longer than a LIKE pattern', async () => {
    const long = 'x'.repeat(300)
    await created({ title: `a ${long} b` })
    expect(await titles(`?title=${long}`)).toEqual([`a ${long} b`])
  })

  it('[EC 2.7] conditions combine with AND, and other users have lists of their own', async () => {
    await created({ title: 'one', scope: 's' })
    await created({ title: 'two', scope: 's' })
    await created({ title: 'one', scope: 't' })
    expect(await list('?scope=s&title=one')).toHaveLength(1)
    expect(await list('', await makeClient())).toEqual([])
  })

  it('[D52] `limit` and `after` page through without a gap, also among equal times', async () => {
    const now = Date.now()
    setClock(now)
    for (let n = 0; n < 3; n++) await created({ title: `${n}` })
    setClock(now + 1)
    for (let n = 3; n < 5; n++) await created({ title: `${n}` })
    const whole = await list()
    expect(whole).toHaveLength(5)
    const paged: SessionSummary[] = []
    for (let after = ''; ; ) {
      const page = await list(`?limit=2${after}`)
      expect(page.length).toBeLessThanOrEqual(2)
      if (page.length === 0) break
      paged.push(...page)
      after = `&after=${page.at(-1)?.id}`
    }
    expect(paged).toEqual(whole)
  })

  it.each(['?limit=0', '?limit=-1', '?limit=two', '?limit=1.5', '?limit=', '?after=nonsense'])(
    '[D49] %s is refused with 400',
    async (query) => {
      expect(await refused(await client.send('GET', `${SESSIONS}${query}`))).toMatchObject({
        status: 400,
        code: 'invalid_request',
      })
    },
  )

  it('[D52] a foreign session is no place to go on after', async () => {
    const stranger = await makeClient()
    const foreign = await stranger.newSession()
    await created({ title: 't' })
    expect(await list(`?after=${foreign}`)).toEqual([])
  })
})

describe('update', () => {
  it('[EC 2.9] absent and null fields stay, and `{}` alone refreshes the time', async () => {
    const before = await created({ title: 't', scope: 's' })
    setClock(Date.now() + 5000)
    const after = await updated(before.id, {})
    expect(after).toEqual({ ...before, updated_at: after.updated_at })
    expect(Date.parse(after.updated_at)).toBeGreaterThanOrEqual(Date.parse(before.updated_at) + 5000)
    expect(await updated(before.id, { title: null, archived: null })).toMatchObject({
      title: 't',
      archived: false,
    })
    expect(await updated(before.id, { title: '' })).toMatchObject({ title: '' })
  })

  it('[EC 2.9] what an update answers is what the list shows, at once', async () => {
    const { id } = await created({ title: 't' })
    const after = await updated(id, { title: 'renamed', archived: true })
    expect(await list()).toEqual([after])
  })

  it('[EC 2] an archived session looks like none, except to PUT and DELETE', async () => {
    const { id } = await created({ title: 't' })
    await updated(id, { archived: true })
    const base = `${SESSIONS}/${id}`
    for (const [method, path, body] of [
      ['GET', base, undefined],
      ['GET', `${base}/run`, undefined],
      ['GET', `${base}/traces`, undefined],
      ['GET', `${base}/usage`, undefined],
      ['POST', `${base}/execute`, makeExecute('hi')],
      ['POST', `${base}/stream`, makeExecute('hi')],
      ['POST', `${base}/preview`, makeExecute('hi')],
      ['POST', `${base}/continue`, { type: 'break' }],
    ] as const) {
      expect(await refused(await client.send(method, path, body)), path).toMatchObject(notFound)
    }
    expect(await updated(id, { archived: false })).toMatchObject({ archived: false })
    expect((await read(id)).status).toBe(200)
    await updated(id, { archived: true })
    await parsed(await remove(id), DeleteSessionResponse)
    expect(await refused(await update(id, { archived: false }))).toMatchObject(notFound)
  })
})

describe('delete', () => {
  it('[EC 2.10] takes every row with it, in D1 and in the object', async () => {
    const { id } = await created({ title: 't' })
    models.script({ text: ['hello'] })
    await (await client.execute(id, makeExecute('hi'))).text()
    expect(await copyOf(id)).toMatchObject({ session: {}, messages: [{}, {}], turns: [{}] })
    expect(await parsed(await remove(id), DeleteSessionResponse)).toEqual({ deleted: true })
    expect(await copyOf(id)).toEqual(GONE)
    expect(await refused(await read(id))).toMatchObject(notFound)
    expect(await refused(await remove(id))).toMatchObject(notFound)
    expect(await list()).toEqual([])
    expect(await inside(id, (_sql, state) => tablesOf(state))).toEqual([])
  })

  it('[D26] cuts a turn that is being served, and nothing of it arrives later', async () => {
    const { id } = await created({ title: 't' })
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] })
    const served = client.execute(id, makeExecute('hi'))
    await hold.reached()
    expect((await remove(id)).status).toBe(200)
    expect(await refused(await served)).toMatchObject({ status: 409, code: 'run_in_flight' })
    expect(models.aborted).toBe(1)
    hold.release()
    expect(await copyOf(id)).toEqual(GONE)
    expect(await refused(await client.run(id))).toMatchObject(notFound)
  })

  it('[D26] rows on their way to D1 while the session goes are discarded, and the object stays empty', async () => {
    const { id } = await created({ title: 't' })
    models.script({ text: ['hello'] })
    const hold = new Hold()
    let landed = false
    onFlush(id, async (send) => {
      await hold.wait()
      return send().finally(() => {
        landed = true
      })
    })
    const errors = vi.spyOn(console, 'error')
    const served = await client.execute(id, makeExecute('hi'))
    expect(served.status).toBe(200)
    await hold.reached()
    expect((await remove(id)).status).toBe(200)
    hold.release()
    await until(() => landed)
    expect(await copyOf(id)).toEqual(GONE)
    expect(await alarmOf(id)).toBeNull()
    expect(errors).not.toHaveBeenCalled()
  })

  it('[D26] holds although D1 fails, and is finished by the alarm, after a crash too', async () => {
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    stopClock()
    const { id } = await created({ title: 't' })
    const prepare = failStatements(/^delete/i)
    expect((await remove(id)).status).toBe(200)
    expect(await refused(await read(id))).toMatchObject(notFound)
    expect((await copyOf(id)).session).toBeDefined()
    await crash(id)
    expect(await refused(await read(id))).toMatchObject(notFound)
    prepare.mockRestore()
    expect(await ringAlarm(id)).toBe(true)
    expect(await copyOf(id)).toEqual(GONE)
    expect(await list()).toEqual([])
  })

  it('[D26] waits for D1 no longer than for anything else, and survives a crash meanwhile', async () => {
    stopClock()
    const { id } = await created({ title: 't' })
    const hold = new Hold()
    const real = env.DB.prepare.bind(env.DB)
    const prepare = vi.spyOn(env.DB, 'prepare').mockImplementation((query) => {
      const statement = real(query)
      if (/^delete/i.test(query)) vi.spyOn(statement, 'bind').mockReturnValue(heldStatement(statement, hold))
      return statement
    })
    expect((await remove(id)).status).toBe(200)
    await hold.reached()
    await crash(id)
    prepare.mockRestore()
    expect((await copyOf(id)).session).toBeDefined()
    expect(await ringAlarm(id)).toBe(true)
    expect(await copyOf(id)).toEqual(GONE)
    expect(await inside(id, (_sql, state) => tablesOf(state))).toEqual([])
  })

  it('[D26] a flush that comes through late does not take the deletion’s alarm away', async () => {
    stopClock()
    const { id } = await created({ title: 't' })
    models.script({ text: ['hello'] })
    const hold = new Hold()
    let landed = false
    onFlush(id, async (send) => {
      await hold.wait()
      const results = await send()
      landed = true
      return results
    })
    const prepare = failStatements(/^delete/i)
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    await (await client.execute(id, makeExecute('hi'))).text()
    await hold.reached()
    expect((await remove(id)).status).toBe(200)
    hold.release()
    await until(() => landed)
    expect(await alarmOf(id)).not.toBeNull()
    prepare.mockRestore()
    expect(await ringAlarm(id)).toBe(true)
    expect(await copyOf(id)).toEqual(GONE)
  })
})

describe('idempotent creation', () => {
  const keyed = (key: string) => ({ 'Idempotency-Key': key })

  it('[D20] the same key and body make one session', async () => {
    const body = { title: 't', scope: 's' }
    const first = await created(body, keyed('k1'))
    expect(await created(body, keyed('k1'))).toEqual(first)
    expect(await list()).toEqual([first])
    await created(body, keyed('k2'))
    await created(body)
    expect(await list()).toHaveLength(3)
  })

  it('[D20] the same key with another body is refused with 422', async () => {
    await created({ title: 't' }, keyed('k'))
    expect(await refused(await create({ title: 'u' }, keyed('k')))).toMatchObject({
      status: 422,
      code: 'invalid_request',
    })
    expect(await titles()).toEqual(['t'])
  })

  it('[D20] keys of different users have nothing to do with one another', async () => {
    const first = await created({ title: 't' }, keyed('k'))
    const other = await makeClient()
    const answer = await other.send('POST', SESSIONS, { title: 'u' }, keyed('k'))
    expect((await parsed(answer, CreateSessionResponse, 201)).session.id).not.toBe(first.id)
  })

  it('[U16] a creation can be retried hours later', async () => {
    const first = await created({ title: 't' }, keyed('k'))
    setClock(Date.now() + 23 * 3_600_000)
    expect(await created({ title: 't' }, keyed('k'))).toEqual(first)
  })

  it('[U14] a retry after the session was deleted is still the one action that was done', async () => {
    const first = await created({ title: 't', scope: 's' }, keyed('k'))
    expect((await remove(first.id)).status).toBe(200)
    expect(await created({ title: 't', scope: 's' }, keyed('k'))).toEqual(first)
    expect(await list()).toEqual([])
    expect(await refused(await create({ title: 'u' }, keyed('k')))).toMatchObject({ status: 422 })
  })

  it('[D20] of two at once with one key one session comes out', async () => {
    const [first, second] = await Promise.all([
      created({ title: 't' }, keyed('k')),
      created({ title: 't' }, keyed('k')),
    ])
    expect(second).toEqual(first)
    expect(await list()).toEqual([first])
  })

  it('[D20] of two at once with one key and different bodies one is refused', async () => {
    const answers = await Promise.all([
      create({ title: 't' }, keyed('k')),
      create({ title: 'u' }, keyed('k')),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 422])
    expect(await list()).toHaveLength(1)
  })

  it.each(['', ' ', 'two words', 'ü', 'x'.repeat(256)])('[D20] `%s` is no key', async (key) => {
    expect(await refused(await create({ title: 't' }, keyed(key)))).toMatchObject({ status: 422 })
  })

  it('[D26] a session whose row cannot be stored leaves nothing behind', async () => {
    const prepare = failStatements(/^insert into "sessions"/i)
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const idsOf = async () => (await listDurableObjectIds(env.SESSION)).map((id) => `${id}`)
    const before = await idsOf()
    expect(await refused(await create({ title: 't' }))).toMatchObject({ status: 502, code: 'storage_error' })
    prepare.mockRestore()
    expect(await list()).toEqual([])
    const made = (await idsOf()).filter((id) => !before.includes(id))
    expect(made).toHaveLength(1)
    const stub = env.SESSION.get(env.SESSION.idFromString(made[0] ?? ''))
    expect(await runInDurableObject(stub, (_session, state) => tablesOf(state))).toEqual([])
  })
})
