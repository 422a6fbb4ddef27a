import { createExecutionContext, createScheduledController } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { SessionUsageResponse } from '../../src/protocol/execution/usage.ts'
import { Session } from '../../src/session/session.ts'
import { openDatabase } from '../../src/storage/d1/database.ts'
import { expireTraceCopies } from '../../src/storage/d1/retention.ts'
import { newId } from '../../src/storage/ids.ts'
import type { Env } from '../../src/worker/env.ts'
import worker from '../../src/worker/main.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { setClock } from '../support/workers/clock.ts'
import { copyOf, down, failStatements, onFlush } from '../support/workers/d1.ts'
import { Hold, until } from '../support/workers/hold.ts'
import { type Client, clientWith, makeClient, parsed, send } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { inside, turnsOf } from '../support/workers/session-object.ts'

const models = scriptModels()
vi.setConfig({ testTimeout: 20_000 })

const DAY = 24 * 60 * 60 * 1000
/** Each test lives long after the one before it: ids only grow, as they do in life. At noon, far from where days change. */
let base = Math.ceil(Date.now() / DAY) * DAY + DAY / 2
let client: Client
beforeEach(async () => {
  base += 1000 * DAY
  setClock(base)
  client = await makeClient()
})

/** The clock shows this many days after the beginning of the test. */
const at = (days: number) => setClock(base + days * DAY)
/** The cron trigger rings. */
const ring = (vars: Partial<Env> = {}) =>
  worker.scheduled(
    createScheduledController({ scheduledTime: new Date(), cron: '23 * * * *' }),
    { ...(env as unknown as Env), ...vars },
    createExecutionContext(),
  )
const execute = async (id: string, text = 'a question') => {
  models.script({ text: ['an answer'] })
  await (await client.execute(id, makeExecute(text))).text()
}
/** The token of the beginning has long expired. */
const signedIn = async (): Promise<Client> => {
  const answer = await send('POST', '/api/v1/auth/sign-in', undefined, { 'X-Smista-Api-Key': client.key })
  return clientWith(client.userId, client.key, (await answer.json<{ token: string }>()).token)
}
const put = async (id: string, patch: unknown) =>
  (await signedIn()).send('PUT', `/api/v1/sessions/${id}`, patch)
const isGone = async (id: string) => {
  const tables = await inside(
    id,
    (sql) => sql.rows("SELECT 1 FROM sqlite_master WHERE name = 'session'").length,
  )
  return tables === 0 && (await copyOf(id)).session === undefined
}
const exists = async (id: string) => (await copyOf(id)).session !== undefined
const quiet = () => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  vi.spyOn(console, 'warn').mockImplementation(() => {})
}
/** Watches one method of all objects; which sessions it was called for. */
const watch = (method: 'expire' | 'expireTraces') => {
  const spy = vi.spyOn(Session.prototype, method)
  return {
    asked: () => spy.mock.contexts.map((session) => idOf(session)),
    forget: () => spy.mockClear(),
  }
}
const idOf = (session: unknown) => (session as { ctx: DurableObjectState }).ctx.id.name ?? ''

describe('sessions', () => {
  it('[D31] an archived one goes 30 days after it was archived, through its object', async () => {
    const [archived, restored] = [await client.newSession(), await client.newSession()]
    await execute(archived)
    at(0.5)
    await put(archived, { archived: true })
    await put(restored, { archived: true })
    await put(restored, { archived: false })
    at(30.4)
    await ring()
    expect(await exists(archived)).toBe(true)
    at(30.6)
    await ring()
    await until(() => isGone(archived))
    expect(await copyOf(archived)).toEqual({ session: undefined, messages: [], turns: [] })
    expect(await exists(restored)).toBe(true)
  })

  it('[D31] what is done to an archived one later does not lengthen its time', async () => {
    const id = await client.newSession()
    await put(id, { archived: true })
    at(20)
    await put(id, { title: 'renamed' })
    at(30.5)
    await ring()
    await until(() => isGone(id))
  })

  it('[D31] any other goes 365 days after it was last updated', async () => {
    const [idle, used] = [await client.newSession(), await client.newSession()]
    at(100)
    await put(used, {})
    at(364.9)
    await ring()
    expect([await exists(idle), await exists(used)]).toEqual([true, true])
    at(365.1)
    await ring()
    await until(() => isGone(idle))
    expect(await exists(used)).toBe(true)
    at(465.1)
    await ring()
    await until(() => isGone(used))
  })

  it('[D31] one that was updated after it was listed stays: its object decides', async () => {
    const [idle, archived] = [await client.newSession(), await client.newSession()]
    at(300)
    // D1 has not heard of the updates.
    await put(idle, { title: 'still in use' })
    await put(archived, { title: 'taken back' })
    const stale = env.DB.prepare('UPDATE sessions SET updated_at = ?, archived_at = ? WHERE id = ?')
    await env.DB.batch([stale.bind(base, null, idle), stale.bind(base, base, archived)])
    at(370)
    const visits = watch('expire')
    await ring()
    expect(visits.asked()).toEqual(expect.arrayContaining([idle, archived]))
    for (const id of [idle, archived]) {
      expect(await inside(id, (sql) => sql.rows('SELECT deleted_at FROM session'))).toEqual([
        { deleted_at: null },
      ])
      expect(await exists(id)).toBe(true)
    }
  })

  it('[D31] one whose turn is being served stays', async () => {
    const id = await client.newSession()
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] })
    const served = client.execute(id, makeExecute('hi'))
    await hold.reached()
    at(400)
    await ring()
    expect(await exists(id)).toBe(true)
    hold.release()
    expect((await served).status).toBe(200)
  })

  it('[D31] a row whose object holds nothing goes as well', async () => {
    const id = newId()
    await env.DB.prepare(
      'INSERT INTO sessions (id, user_id, created_at, updated_at, rev) VALUES (?, ?, ?, ?, 0)',
    )
      .bind(id, client.userId, base, base)
      .run()
    at(366)
    await ring()
    expect(await exists(id)).toBe(false)
  })

  it('[D31] the object lets nobody else’s listing remove it', async () => {
    const id = await client.newSession()
    at(400)
    const everything = { archivedBeforeMs: Date.now(), idleBeforeMs: Date.now() }
    await inside(id, async (_sql, _state, session) => {
      expect(await session.expire('someone', everything)).toMatchObject({ ok: false })
      expect(await session.expireTraces('someone', Date.now())).toMatchObject({ ok: false })
    })
    expect(await exists(id)).toBe(true)
  })
})

describe('traces', () => {
  const tracesOf = async (id: string) => (await turnsOf(id)).map(({ trace }) => trace.length > 0)
  const copiesOf = async (id: string) => (await copyOf(id)).turns.map(({ trace }) => trace !== '[]')

  it('[D31] of turns that ended more than 90 days ago are dropped, in the object and in D1; usage stays', async () => {
    const id = await client.newSession()
    await execute(id)
    at(50)
    client = await signedIn()
    await execute(id, 'another')
    const before = await turnsOf(id)
    const usage = () => client.send('GET', `/api/v1/sessions/${id}/usage`)
    const total = await parsed(await usage(), SessionUsageResponse)
    at(90)
    await ring()
    expect(await tracesOf(id)).toEqual([true, true])
    at(91)
    await ring()
    expect(await tracesOf(id)).toEqual([false, true])
    expect(await copiesOf(id)).toEqual([false, true])
    const after = await turnsOf(id)
    expect(after[0]).toEqual({ ...before[0], trace: [], rev: after[0]?.rev })
    expect(after[1]).toEqual(before[1])
    client = await signedIn()
    expect(await parsed(await usage(), SessionUsageResponse)).toEqual(total)
    expect(total.by_model).toMatchObject([{ request_count: 2 }])
    at(141)
    await ring()
    expect([await tracesOf(id), await copiesOf(id)]).toEqual([
      [false, false],
      [false, false],
    ])
  })

  it('[D31] those of an archived session as well', async () => {
    const id = await client.newSession()
    await execute(id)
    await put(id, { archived: true })
    at(92)
    await ring({ RETENTION_ARCHIVED_DAYS: '0' })
    expect([await tracesOf(id), await copiesOf(id)]).toEqual([[false], [false]])
  })

  it('[D31] dropping them does not count as an update of the session', async () => {
    const id = await client.newSession()
    await execute(id)
    const { session } = await copyOf(id)
    at(92)
    await ring()
    expect(await copiesOf(id)).toEqual([false])
    expect((await copyOf(id)).session).toMatchObject({ updated_at: session?.updated_at })
  })

  it('[D31] a session is asked once a day at most, and not at all without old traces', async () => {
    const [old, young] = [await client.newSession(), await client.newSession()]
    for (let day = 0; day < 3; day++) {
      at(day)
      client = await signedIn()
      await execute(old)
    }
    at(80)
    client = await signedIn()
    const recent = await client.newSession()
    await execute(recent)
    const visits = watch('expireTraces')
    const rounds = async (day: number) => {
      visits.forget()
      for (const hour of [0, 1, 5]) {
        at(day + hour / 24)
        await ring()
      }
      return visits
        .asked()
        .filter((id) => [old, young, recent].includes(id))
        .sort()
    }
    expect(await rounds(91)).toEqual([old, young].sort())
    expect(await rounds(92)).toEqual([old])
    expect(await rounds(93)).toEqual([old])
    expect(await tracesOf(old)).toEqual([false, false, false])
    // Everything before was looked through; the next trace to grow old is of tomorrow at the earliest.
    for (const day of [94, 120, 165]) expect(await rounds(day)).toEqual([])
  })

  it('[D31] a running turn is not touched', async () => {
    const id = await client.newSession()
    await execute(id)
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] })
    const served = client.execute(id, makeExecute('hi'))
    await hold.reached()
    const [, running] = await turnsOf(id)
    at(95)
    await ring()
    const [ended, still] = await turnsOf(id)
    expect(ended?.trace).toEqual([])
    expect(still).toEqual(running)
    hold.release()
    expect((await served).status).toBe(200)
    expect(await tracesOf(id)).toEqual([false, true])
  })

  it('[D26] a copy that arrives late does not bring them back', async () => {
    const id = await client.newSession()
    let late: (() => Promise<unknown>) | null = null
    const flush = onFlush(id, (sendIt) => {
      late = sendIt
      return sendIt()
    })
    await execute(id)
    flush.mockRestore()
    expect(await copiesOf(id)).toEqual([true])
    at(92)
    await ring()
    expect(await copiesOf(id)).toEqual([false])
    await (late as (() => Promise<unknown>) | null)?.()
    expect(await copiesOf(id)).toEqual([false])
  })

  it('[D26] an expiry that arrives late does not undo what was copied after it', async () => {
    const id = await client.newSession()
    await execute(id)
    const [turn] = (await copyOf(id)).turns
    const rev = Number(turn?.rev)
    const expire = (ofRev: number) =>
      expireTraceCopies(openDatabase(env.DB), {
        sessionId: id,
        beforeMs: Date.now() + DAY,
        tracesFromMs: Date.now() + DAY,
        rev: ofRev,
      })
    await expire(rev - 1)
    expect((await copyOf(id)).turns).toEqual([turn])
    await expire(rev)
    expect(await copiesOf(id)).toEqual([false])
  })

  it('[D31] D1 that fails then is made up for in the next hour', async () => {
    const id = await client.newSession()
    await execute(id)
    at(92)
    quiet()
    const failing = failStatements(/^update "turns" set "trace"/i)
    await ring()
    expect([await tracesOf(id), await copiesOf(id)]).toEqual([[false], [true]])
    failing.mockRestore()
    await ring()
    expect(await copiesOf(id)).toEqual([false])
  })
})

describe('rows', () => {
  it('[D31] tokens go 30 days after they ended, keys of creations after 7, forgotten facts after 30', async () => {
    const db = env.DB
    await client.send('POST', '/api/v1/sessions', { title: 't' }, { 'Idempotency-Key': 'a-key' })
    const fact =
      'INSERT INTO user_memory (id, user_id, key, content, local_only, created_at, updated_at, forgotten_at) '
    const insertFact = (key: string, forgottenAt: number | null) =>
      db
        .prepare(`${fact} VALUES (?, ?, ?, '', 0, 1, 1, ?)`)
        .bind(newId(), client.userId, key, forgottenAt)
        .run()
    await insertFact('kept', null)
    await insertFact('forgotten', base)
    const count = async (table: string) => {
      const row = await db
        .prepare(`SELECT count(*) AS n FROM ${table} WHERE user_id = ?`)
        .bind(client.userId)
        .first<{ n: number }>()
      return row?.n
    }
    const counts = async () => [
      await count('auth_tokens'),
      await count('create_keys'),
      await count('user_memory'),
    ]
    await (await signedIn()).send('POST', '/api/v1/auth/sign-out')
    expect(await counts()).toEqual([2, 1, 2])
    at(6.9)
    await ring()
    expect(await counts()).toEqual([2, 1, 2])
    at(7.1)
    await ring()
    expect(await counts()).toEqual([2, 0, 2])
    at(29.9)
    await ring()
    expect(await counts()).toEqual([2, 0, 2])
    // The one that was signed out ended a day before the one that expired.
    at(30.1)
    await ring()
    expect(await counts()).toEqual([1, 0, 1])
    at(31.1)
    await ring()
    expect(await counts()).toEqual([0, 0, 1])
  })

  it('[D31] forgotten facts of a session go like those of a user', async () => {
    const id = await client.newSession()
    const insert = env.DB.prepare(
      `INSERT INTO context_memory (id, session_id, key, content, local_only, created_at, updated_at, forgotten_at)
       VALUES (?, ?, ?, '', 0, 1, 1, ?)`,
    )
    await env.DB.batch([insert.bind(newId(), id, 'kept', null), insert.bind(newId(), id, 'forgotten', base)])
    at(31)
    await ring()
    const { results } = await env.DB.prepare('SELECT key FROM context_memory WHERE session_id = ?')
      .bind(id)
      .all()
    expect(results).toEqual([{ key: 'kept' }])
  })
})

describe('configuration', () => {
  it('[D31] days come from variables, and 0 keeps for ever', async () => {
    const [archived, idle, traced] = [
      await client.newSession(),
      await client.newSession(),
      await client.newSession(),
    ]
    await execute(traced)
    await put(archived, { archived: true })
    at(900)
    const forever = { RETENTION_ARCHIVED_DAYS: '0', RETENTION_SESSIONS_DAYS: '0', RETENTION_TRACES_DAYS: '0' }
    await ring(forever)
    for (const id of [archived, idle, traced]) expect(await exists(id)).toBe(true)
    expect((await turnsOf(traced))[0]?.trace).not.toEqual([])
    await ring({ ...forever, RETENTION_TRACES_DAYS: '898' })
    expect((await turnsOf(traced))[0]?.trace).toEqual([])
    await ring({ ...forever, RETENTION_ARCHIVED_DAYS: '899' })
    await until(() => isGone(archived))
    expect(await exists(idle)).toBe(true)
    await ring({ ...forever, RETENTION_SESSIONS_DAYS: '899' })
    await until(() => isGone(idle))
  })

  it.each(['-1', '1.5', 'ten', '1e3', '1234567'])(
    '[D31] %s days is told and the default holds',
    async (days) => {
      const id = await client.newSession()
      await put(id, { archived: true })
      const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
      at(29)
      await ring({ RETENTION_ARCHIVED_DAYS: days })
      expect(await exists(id)).toBe(true)
      expect(warn.mock.calls.flat()).toContainEqual(
        expect.stringContaining('RETENTION_ARCHIVED_DAYS must be'),
      )
      at(31)
      await ring({ RETENTION_ARCHIVED_DAYS: days })
      await until(() => isGone(id))
    },
  )
})

describe('a run', () => {
  it('[D31] one bad session holds up no other, and is tried again', async () => {
    const [bad, good] = [await client.newSession(), await client.newSession()]
    at(366)
    quiet()
    const real = Session.prototype.expire
    const broken = vi.spyOn(Session.prototype, 'expire').mockImplementation(async function (
      this: Session,
      ...args
    ) {
      if (idOf(this) === bad) throw new Error('out of order')
      return real.apply(this, args)
    })
    await ring()
    await until(() => isGone(good))
    expect(await exists(bad)).toBe(true)
    broken.mockRestore()
    await ring()
    await until(() => isGone(bad))
  })

  it('[D31] never throws, and one duty that fails stops no other', async () => {
    const id = await client.newSession()
    at(366)
    quiet()
    const failing = failStatements(/from "users"|auth_tokens/i)
    await ring()
    await until(() => isGone(id))
    failing.mockRestore()
    vi.spyOn(env.DB, 'batch').mockImplementation(down)
    failStatements(/./)
    await ring()
  })

  it('[D31] is bounded: what is left over is done in the next hour', async () => {
    const ids = Array.from({ length: 230 }, newId)
    const insert = env.DB.prepare(
      'INSERT INTO sessions (id, user_id, created_at, updated_at, rev) VALUES (?, ?, ?, ?, 0)',
    )
    await env.DB.batch(ids.map((id) => insert.bind(id, client.userId, base, base)))
    const left = async () => {
      const row = await env.DB.prepare('SELECT count(*) AS n FROM sessions WHERE user_id = ?')
        .bind(client.userId)
        .first<{ n: number }>()
      return row?.n
    }
    at(366)
    await ring({ RETENTION_TRACES_DAYS: '0' })
    expect(await left()).toBe(30)
    await ring({ RETENTION_TRACES_DAYS: '0' })
    expect(await left()).toBe(0)
  })

  it('[D31] twice in a row does nothing more', async () => {
    const id = await client.newSession()
    await execute(id)
    at(92)
    await ring()
    const after = [await turnsOf(id), await copyOf(id)]
    await ring()
    expect([await turnsOf(id), await copyOf(id)]).toEqual(after)
  })

  it('[D31] its queries walk an index, or a table that is small by nature', async () => {
    await execute(await client.newSession())
    at(92)
    const prepare = vi.spyOn(env.DB, 'prepare')
    await ring()
    const queries = [...new Set(prepare.mock.calls.map(([query]) => query))]
    prepare.mockRestore()
    const plans: Record<string, string[]> = {}
    for (const query of queries) {
      const parameters = query.match(/\?/g)?.length ?? 0
      const { results } = await env.DB.prepare(`EXPLAIN QUERY PLAN ${query}`)
        .bind(...Array.from({ length: parameters }, () => 1))
        .all<{ detail: string }>()
      plans[query] = results.map(({ detail }) => detail)
    }
    const scans = Object.values(plans)
      .flat()
      .filter((step) => step.startsWith('SCAN'))
    expect([...new Set(scans)].sort()).toEqual([
      'SCAN context_memory',
      'SCAN create_keys',
      'SCAN user_memory',
      'SCAN users USING INDEX sqlite_autoindex_users_1',
    ])
    const lists = Object.entries(plans).filter(([query]) =>
      /^select .* from "sessions" where \("sessions"\."id" >/.test(query),
    )
    expect(lists.map(([, plan]) => plan)).toEqual([
      ['SEARCH sessions USING INDEX sqlite_autoindex_sessions_1 (id>? AND id<?)'],
      ['SEARCH sessions USING INDEX sqlite_autoindex_sessions_1 (id>? AND id<?)'],
    ])
    expect(Object.keys(plans).some((query) => /^update "turns" set "trace"/.test(query))).toBe(true)
  })
})
