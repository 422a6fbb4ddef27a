import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, it, vi } from 'vitest'
import { Gateway } from '../../src/gateway/gateway.ts'
import { DeleteAccountResponse } from '../../src/protocol/execution/account.ts'
import { ListProvidersResponse } from '../../src/protocol/execution/models.ts'
import { ok } from '../../src/protocol/result.ts'
import type { SessionRpc } from '../../src/session/rpc.ts'
import { Session } from '../../src/session/session.ts'
import { markUserDeleted } from '../../src/storage/d1/accounts.ts'
import { openDatabase } from '../../src/storage/d1/database.ts'
import { newId } from '../../src/storage/ids.ts'
import { finishAccountDeletion } from '../../src/worker/account-deletion.ts'
import { cleanUp } from '../../src/worker/clean-up.ts'
import { type Env, gatewayStub, sessionStub } from '../../src/worker/env.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { down, failStatements } from '../support/workers/d1.ts'
import { pairDevice } from '../support/workers/gateway-device.ts'
import { until } from '../support/workers/hold.ts'
import { type Client, makeClient, parsed, refused, send, sendWith } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { inside } from '../support/workers/session-object.ts'
import { addUserFact, rowsWith } from '../support/workers/tables.ts'

const models = scriptModels()
/** Each test makes a few accounts, and waits for work that follows an answer. */
vi.setConfig({ testTimeout: 20_000 })
const ME = '/api/v1/auth/me'
const KEYS = '/api/v1/auth/keys'

/** The first account of this file: what it leaves behind is told apart from what any other leaves. */
const first = await makeClient()

const erase = (who: Client, key: string | null = who.key) =>
  who.send('DELETE', ME, undefined, key === null ? {} : { 'X-Smista-Api-Key': key })
const signIn = (key: string) => send('POST', '/api/v1/auth/sign-in', undefined, { 'X-Smista-Api-Key': key })
const isEmpty = (sessionId: string) =>
  inside(
    sessionId,
    (sql) => sql.rows("SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_cf%' ESCAPE '\\'").length === 0,
  )
const nothingOf = async (userId: string) => Object.keys(await rowsWith(userId)).length === 0
const tidy = () =>
  cleanUp({
    db: openDatabase(env.DB),
    session: (id) => sessionStub(env as unknown as Env, id),
    gateway: (id) => gatewayStub(env as unknown as Env, id),
    retention: { tracesDays: 0, archivedDays: 0, sessionsDays: 0 },
    now: Date.now,
  })

/** An account with two sessions, one of them archived, a run, a second key and something remembered. */
async function makeFull(): Promise<{ client: Client; sessions: string[] }> {
  const client = await makeClient()
  const sessions = [await client.newSession('one'), await client.newSession('two')]
  models.script({ text: ['an answer'] })
  await (await client.execute(sessions[0] ?? '', makeExecute('a question'))).text()
  await client.send('PUT', `/api/v1/sessions/${sessions[1]}`, { archived: true })
  await client.send('POST', '/api/v1/sessions', { title: 'keyed' }, { 'Idempotency-Key': newId() })
  await client.send('POST', KEYS)
  await addUserFact(client.userId, newId(), 'likes tea')
  return { client, sessions }
}

describe('deleting an account', () => {
  it('[EC 22] nothing of it is left, in D1 and in objects, and others have all of theirs', async () => {
    const { client, sessions } = await makeFull()
    const other = await makeFull()
    expect(Object.keys(await rowsWith(client.userId)).sort()).toEqual([
      'api_keys',
      'auth_tokens',
      'create_keys',
      'gateways',
      'sessions',
      'user_memory',
      'users',
    ])
    const before = await rowsWith(other.client.userId)
    expect(await parsed(await erase(client), DeleteAccountResponse)).toEqual({ deleted: true })
    await until(() => nothingOf(client.userId))
    for (const id of sessions) {
      await until(() => isEmpty(id))
      expect(await rowsWith(id)).toEqual({})
    }
    expect(await rowsWith(other.client.userId)).toEqual(before)
    expect((await other.client.send('GET', `/api/v1/sessions/${other.sessions[0]}`)).status).toBe(200)
  })

  it('[D30] from the answer on no token and no key of it works', async () => {
    const { client } = await makeFull()
    expect((await erase(client)).status).toBe(200)
    expect(await refused(await client.send('GET', ME))).toMatchObject({ status: 401, code: 'invalid_token' })
    expect(await refused(await signIn(client.key))).toMatchObject({ status: 401, code: 'invalid_api_key' })
    expect(await refused(await erase(client))).toMatchObject({ status: 401, code: 'invalid_token' })
  })

  it('[EC 3] without the key it is refused, with a wrong one too, and nothing changes', async () => {
    const { client, sessions } = await makeFull()
    const stranger = await makeClient()
    expect(await refused(await erase(client, null))).toMatchObject({
      status: 401,
      code: 'missing_credentials',
    })
    const wrong = [stranger.key, 'nonsense', `${client.key.slice(0, -1)}-`, '']
    for (const key of wrong) {
      expect(await refused(await erase(client, key))).toMatchObject({ status: 401, code: 'invalid_api_key' })
    }
    const spare = await (await client.send('POST', KEYS)).json<{ id: string; api_key: string }>()
    await client.send('DELETE', `${KEYS}/${spare.id}`)
    expect(await refused(await erase(client, spare.api_key))).toMatchObject({ code: 'invalid_api_key' })
    expect((await client.send('GET', `/api/v1/sessions/${sessions[0]}`)).status).toBe(200)
    expect((await signIn(client.key)).status).toBe(200)
  })

  it('[D26] a turn that is being served is cut', async () => {
    const client = await makeClient()
    const id = await client.newSession()
    let reached = false
    models.script({
      text: ['one '],
      hold: async () => {
        reached = true
        await until(() => models.aborted > 0)
      },
    })
    const served = client.execute(id, makeExecute('hi'))
    await until(() => reached)
    await erase(client)
    expect((await served).status).toBe(409)
    await until(() => nothingOf(client.userId))
  })
})

describe('what the request leaves', () => {
  it('[D31] a session whose object fails holds up no other, and the clean-up finishes', async () => {
    const { client, sessions } = await makeFull()
    const [broken, whole] = sessions
    const remove = Session.prototype.remove
    const spy = vi.spyOn(Session.prototype, 'remove').mockImplementation(async function (
      this: Session,
      userId,
    ) {
      const detail = await this.detail(userId)
      if (detail.ok && detail.value.id === broken) throw new Error('out of order')
      return remove.call(this, userId)
    })
    vi.spyOn(console, 'error').mockImplementation(() => {})
    await erase(client)
    await until(
      async () => (await isEmpty(whole ?? '')) && Object.keys(await rowsWith(client.userId)).length === 2,
    )
    expect(Object.keys(await rowsWith(client.userId))).toEqual(['sessions', 'users'])
    expect(await refused(await signIn(client.key))).toMatchObject({ code: 'invalid_api_key' })
    spy.mockRestore()
    expect(await tidy()).toMatchObject({ accounts: expect.any(Number), failures: 0 })
    await until(() => nothingOf(client.userId))
    expect(await isEmpty(broken ?? '')).toBe(true)
  })

  it('[D31] D1 that fails in the middle is made up for by the clean-up', async () => {
    const { client, sessions } = await makeFull()
    vi.spyOn(console, 'error').mockImplementation(() => {})
    vi.spyOn(console, 'warn').mockImplementation(() => {})
    const spy = failStatements(/^delete from "sessions"/i)
    await erase(client)
    await until(
      async () =>
        (await rowsWith(client.userId)).users !== undefined &&
        spy.mock.results.some(({ type }) => type === 'throw'),
    )
    spy.mockRestore()
    await tidy()
    await until(() => nothingOf(client.userId))
    for (const id of sessions) await until(() => isEmpty(id))
  })

  it('[EC 22] its gateway keeps nothing of its devices', async () => {
    const { client } = await makeFull()
    const { deviceId } = await pairDevice(client)
    const gateway = env.GATEWAY.getByName(client.userId)
    const stored = () =>
      runInDurableObject(gateway, (_object, { storage }) =>
        storage.sql
          .exec("SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_cf%' ESCAPE '\\'")
          .toArray()
          .map(({ name }) => String(name)),
      )
    expect(deviceId).toMatch(/^[0-9a-f]{16}$/)
    expect(await stored()).not.toEqual([])
    await erase(client)
    await until(() => nothingOf(client.userId))
    expect(await stored()).toEqual([])
  })

  it('[D31] a gateway that cannot be removed holds up no session, and is tried again', async () => {
    const { client, sessions } = await makeFull()
    const { socket } = await pairDevice(client)
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const broken = vi.spyOn(Gateway.prototype, 'remove').mockRejectedValue(new Error('out of order'))
    await erase(client)
    for (const id of sessions) await until(() => isEmpty(id))
    await until(async () => broken.mock.results.length > 1)
    expect((await rowsWith(client.userId)).users).toHaveLength(1)
    broken.mockRestore()
    await tidy()
    expect(await socket.next()).toMatchObject({ code: 'revoked' })
    await until(() => nothingOf(client.userId))
  })

  it('[D31] rows that were late when their object answered go in the same run', async () => {
    const { client, sessions } = await makeFull()
    const db = openDatabase(env.DB)
    await markUserDeleted(db, client.userId, Date.now())
    const asked: string[] = []
    await finishAccountDeletion(
      {
        db,
        now: Date.now,
        gateway: (id) => gatewayStub(env as unknown as Env, id),
        session: (id) => {
          const stub = sessionStub(env as unknown as Env, id)
          // The object has answered, and D1 has not heard of it yet.
          const remove: SessionRpc['remove'] = async (userId) => {
            asked.push(id)
            return asked.filter((earlier) => earlier === id).length === 1 ? ok(true) : stub.remove(userId)
          }
          return { remove } as SessionRpc
        },
      },
      client.userId,
      Date.now() + 20_000,
    )
    expect(new Set(asked).size).toBeGreaterThanOrEqual(sessions.length)
    await until(() => nothingOf(client.userId))
  })

  it('[D31] a mark that could not be set changes nothing', async () => {
    const { client, sessions } = await makeFull()
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const batch = env.DB.batch.bind(env.DB)
    const spy = vi.spyOn(env.DB, 'batch').mockImplementation(async (statements) => {
      const writes = (statements as unknown as { statement: string }[]).some(({ statement }) =>
        /^update/i.test(statement),
      )
      return writes ? down() : batch(statements)
    })
    expect(await refused(await erase(client))).toMatchObject({ status: 502, code: 'storage_error' })
    spy.mockRestore()
    expect((await client.send('GET', `/api/v1/sessions/${sessions[0]}`)).status).toBe(200)
  })

  it('[D14] the first account leaves its bare row, so that the deployment serves no stranger', async () => {
    const stranger = await makeClient()
    const id = await first.newSession()
    const providersOf = async (who: Client) => {
      const headers = { Authorization: `Bearer ${who.token}` }
      const answer = await sendWith(
        { LOCAL_DEV: undefined },
        'GET',
        '/api/v1/llm/providers',
        undefined,
        headers,
      )
      return (await parsed(answer, ListProvidersResponse)).providers.map((provider) => provider.id)
    }
    expect(await providersOf(first)).toContain('openai-compat:lan')
    const strangers = await providersOf(stranger)
    expect(strangers).not.toContain('openai-compat:lan')
    await erase(first)
    await until(async () => Object.keys(await rowsWith(first.userId)).join() === 'users')
    await until(() => isEmpty(id))
    await tidy()
    expect(await rowsWith(first.userId)).toMatchObject({
      users: [{ id: first.userId, disabled_at: expect.any(Number), deleted_at: expect.any(Number) }],
    })
    expect(await providersOf(stranger)).toEqual(strangers)
  })

  it('[D31] what a request under way stores under the tombstone goes with the next clean-up', async () => {
    const fact = newId()
    await addUserFact(first.userId, fact, 'late')
    const session = newId()
    await env.DB.prepare(
      'INSERT INTO sessions (id, user_id, created_at, updated_at, rev) VALUES (?, ?, 1, 1, 0)',
    )
      .bind(session, first.userId)
      .run()
    await tidy()
    expect(Object.keys(await rowsWith(first.userId))).toEqual(['users'])
  })
})
