import { evictDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { CreateApiKeyResponse } from '../../src/protocol/execution/account.ts'
import { ListMemoryResponse } from '../../src/protocol/execution/memory.ts'
import { CreateSessionResponse, ListSessionsResponse } from '../../src/protocol/execution/session.ts'
import { D1_DEADLINE_MS } from '../../src/storage/d1/deadline.ts'
import { newId } from '../../src/storage/ids.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { setClock, stopClock } from '../support/workers/clock.ts'
import { copyOf, onFlush } from '../support/workers/d1.ts'
import { breakD1, everything, FAULT_TEXT, type Fault } from '../support/workers/d1-faults.ts'
import { eachCase } from '../support/workers/each-case.ts'
import { until } from '../support/workers/hold.ts'
import {
  type Client,
  makeClient,
  parsed,
  refused,
  send,
  sendWith,
  turnAs,
} from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { alarmOf, checkpointOf, messagesOf, ringAlarm } from '../support/workers/session-object.ts'
import { STREAM } from '../support/workers/turn-stream.ts'

const models = scriptModels()

let client: Client
beforeAll(async () => {
  client = await makeClient()
})
beforeEach(() => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  vi.spyOn(console, 'warn').mockImplementation(() => {})
})

/** Makes what the request is about, while D1 works; the request itself can be sent again and again. */
type Given = { ask(): Promise<Response>; sessionId?: string }
type Route = { route: string; given(): Promise<Given>; repeated?: number }

const get = (route: string, path: string): Route => ({
  route,
  given: async () => ({ ask: () => client.send('GET', path) }),
})
const inSession = (route: string, method: string, rest: string, body?: unknown, headers = {}): Route => ({
  route,
  given: async () => {
    const sessionId = await client.newSession()
    models.script({ text: ['Hello.'] })
    const path = `/api/v1/sessions/${sessionId}${rest}`
    return { ask: () => client.send(method, path, body, headers), sessionId }
  },
})

const READS: Route[] = [
  get('GET /auth/me', '/api/v1/auth/me'),
  get('GET /auth/keys', '/api/v1/auth/keys'),
  get('GET /llm/providers', '/api/v1/llm/providers'),
  get('GET /llm/models', '/api/v1/llm/models'),
  get('GET /memory', '/api/v1/memory'),
  get('GET /sessions', '/api/v1/sessions'),
  get('GET /export', '/api/v1/export'),
  inSession('GET /sessions/{id}', 'GET', ''),
  inSession('GET …/run', 'GET', '/run'),
  inSession('GET …/run, streamed', 'GET', '/run', undefined, STREAM),
  inSession('GET …/traces', 'GET', '/traces'),
  inSession('GET …/usage', 'GET', '/usage'),
  inSession('GET …/export', 'GET', '/export'),
  inSession('POST …/preview', 'POST', '/preview', makeExecute('hi')),
]

/** A session that waits for a tool, and the message that goes on from there. */
const fromPause = (route: string, type: 'tool_results' | 'inject' | 'break', headers = {}): Route => ({
  route,
  given: async () => {
    const sessionId = await client.newSession()
    models.script({ calls: [{ name: 'read_file', arguments: { path: 'a' } }] }, { text: ['Done.'] })
    const paused = await turnAs(await client.execute(sessionId, makeExecute('look')), 'awaiting_tool')
    const call_id = paused.data.tool_requests[0]?.call_id ?? ''
    const message =
      type === 'tool_results'
        ? { type, data: { results: [{ call_id, content: 'R' }] } }
        : type === 'inject'
          ? { type, data: { messages: [{ text: 'rather this' }] } }
          : { type }
    return { ask: () => client.proceed(sessionId, message, headers), sessionId }
  },
})

/** Requests that change the session's object: D1 says who asks, and gets the copy. */
const CHANGES_IN_OBJECT: Route[] = [
  inSession('POST …/execute', 'POST', '/execute', makeExecute('hi')),
  inSession('POST …/stream', 'POST', '/stream', makeExecute('hi')),
  fromPause('POST …/continue with results', 'tool_results'),
  fromPause('POST …/continue with results, streamed', 'tool_results', STREAM),
  fromPause('POST …/continue with an inject', 'inject'),
  fromPause('POST …/continue with a break', 'break'),
  inSession('PUT /sessions/{id}', 'PUT', '', { title: 'new' }),
  inSession('DELETE /sessions/{id}', 'DELETE', ''),
]

async function givenFact(scope: 'user' | 'session'): Promise<{ path: string; body: object }> {
  const path = `/api/v1/memory/${newId()}`
  const body = {
    content: 'uses vim',
    scope,
    ...(scope === 'session' ? { session_id: await client.newSession() } : {}),
  }
  expect((await client.send('PUT', path, body)).status).toBe(200)
  return { path, body }
}
const withFact = (method: 'PUT' | 'DELETE', scope: 'user' | 'session'): Route => ({
  route: `${method} /memory/{id} of a ${scope}`,
  ...(method === 'DELETE' ? { repeated: 404 } : {}),
  given: async () => {
    const { path, body } = await givenFact(scope)
    const changed = method === 'PUT' ? { ...body, content: 'uses emacs' } : undefined
    return { ask: () => client.send(method, path, changed) }
  },
})
/** A request about an account of its own, which it ends in some way. */
const ofAccount = (route: string, method: string, path: string): Route => ({
  route,
  repeated: 401,
  given: async () => {
    const account = await makeClient()
    return { ask: () => account.send(method, path, undefined, { 'X-Smista-Api-Key': account.key }) }
  },
})

/** Requests whose change is D1's alone: nothing else can keep it meanwhile. */
const CHANGES_IN_D1: Route[] = [
  {
    route: 'POST /sessions',
    given: async () => ({ ask: () => client.send('POST', '/api/v1/sessions', { title: 't' }) }),
  },
  withFact('PUT', 'user'),
  withFact('DELETE', 'user'),
  {
    route: 'POST /auth/keys',
    given: async () => ({ ask: () => client.send('POST', '/api/v1/auth/keys') }),
  },
  {
    route: 'DELETE /auth/keys/{id}',
    repeated: 404,
    given: async () => {
      const made = await parsed(await client.send('POST', '/api/v1/auth/keys'), CreateApiKeyResponse, 201)
      return { ask: () => client.send('DELETE', `/api/v1/auth/keys/${made.id}`) }
    },
  },
  {
    route: 'POST /auth/sign-in',
    given: async () => ({
      ask: () => send('POST', '/api/v1/auth/sign-in', undefined, { 'X-Smista-Api-Key': client.key }),
    }),
  },
  ofAccount('POST /auth/sign-out', 'POST', '/api/v1/auth/sign-out'),
  ofAccount('DELETE /auth/me', 'DELETE', '/api/v1/auth/me'),
]
const FACTS_OF_SESSIONS = [withFact('PUT', 'session'), withFact('DELETE', 'session')]

/** Reads the whole of an answer, and says what it was. */
async function statusOf(response: Response): Promise<number> {
  await response.arrayBuffer()
  return response.status
}

/** The one answer to a fault of D1: the contract's shape, and nothing of what D1 said. */
async function expectStorageError(response: Response): Promise<void> {
  const told = await response.clone().text()
  expect(await refused(response)).toEqual({
    status: 502,
    code: 'storage_error',
    message: expect.any(String),
  })
  expect(told).not.toContain(FAULT_TEXT)
  expect(told).not.toMatch(/\.ts\b|select |insert /i)
}

describe('D1 fails when a request begins', () => {
  // Who asks cannot be told, so nothing is done. A read that D1 carried out is lost like any other.
  for (const fault of ['refused', 'lost'] satisfies Fault[]) {
    it(`[EC 3][D26] every route says storage_error, changes nothing, and works later (${fault})`, async () => {
      const routes = [...READS, ...CHANGES_IN_OBJECT, ...CHANGES_IN_D1, ...FACTS_OF_SESSIONS]
      const given = []
      for (const { route, given: make } of routes) given.push({ route, ...(await make()) })
      const ids = given.flatMap(({ sessionId }) => sessionId ?? [])
      const stored = async () => [await everything(), await Promise.all(ids.map(checkpointOf))]
      const before = await stored()
      models.chats = []
      // A sign-in asks for the key, and nothing before it.
      const d1 = breakD1(fault, /^select/i)
      for (const { route, ask } of given) {
        const failedBefore = d1.failed
        await expectStorageError(await ask())
        expect(d1.failed, route).toBeGreaterThan(failedBefore)
      }
      d1.repair()
      expect(await stored()).toEqual(before)
      expect(models.chats).toEqual([])
      for (const { route, ask } of given) {
        models.script({ text: ['Hello.'] })
        expect(await statusOf(await ask()), route).toBeLessThan(300)
      }
    })
  }

  it('[EC 3][D26] a D1 that is silent counts as failed after 30 s: no request waits for ever', async () => {
    const batch = vi.spyOn(env.DB, 'batch').mockImplementation(() => new Promise(() => {}))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    let answered = false
    const authorization = { Authorization: `Bearer ${client.token}` }
    // In the context of the test, whose clock it is.
    const asked = sendWith({}, 'GET', '/api/v1/sessions', undefined, authorization).finally(() => {
      answered = true
    })
    await until(() => batch.mock.calls.length > 0)
    await vi.advanceTimersByTimeAsync(D1_DEADLINE_MS - 1)
    expect(answered).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await expectStorageError(await asked)
    expect(vi.getTimerCount()).toBe(0)
  })
})

const WRITES = /^(insert|update|delete)/i
const WRITE_FAULTS = ['lost', 'lost after it was stored'] satisfies Fault[]

/** Rings the alarm at its times until none is set. */
async function ringOut(id: string): Promise<void> {
  for (let rings = 0; rings < 5; rings++) {
    const at = await alarmOf(id)
    if (at === null) return
    setClock(at)
    await ringAlarm(id)
  }
  expect(await alarmOf(id)).toBeNull()
}

describe('D1 fails when a request writes', () => {
  eachCase(
    WRITE_FAULTS.flatMap((fault) => CHANGES_IN_OBJECT.map((route) => ({ ...route, fault }))),
    ({ route, fault }) => `[D26] ${route} is answered as ever, and D1 gets it later, once (${fault})`,
    async ({ given, fault }) => {
      const { ask, sessionId = '' } = await given()
      stopClock()
      const d1 = breakD1(fault, WRITES)
      expect(await statusOf(await ask())).toBe(200)
      await until(() => d1.failed > 0)
      d1.repair()
      const said = (await messagesOf(sessionId).catch(() => [])).map(({ text }) => text)
      await ringOut(sessionId)
      expect((await copyOf(sessionId)).messages.map(({ content }) => content)).toEqual(said)
    },
  )

  eachCase(
    WRITE_FAULTS.flatMap((fault) => CHANGES_IN_D1.map((route) => ({ ...route, fault }))),
    ({ route, fault }) => `[EC 3] ${route} says so, and can be sent again (${fault})`,
    async ({ given, fault, repeated }) => {
      const { ask } = await given()
      const d1 = breakD1(fault, WRITES)
      const answer = await ask()
      expect(d1.failed).toBeGreaterThan(0)
      if (answer.status === 201) {
        // The router looked, and found it stored.
        expect(fault).toBe('lost after it was stored')
        return
      }
      await expectStorageError(answer)
      d1.repair()
      const later = await statusOf(await ask())
      // What has been done already is told as such.
      if (fault === 'lost after it was stored' && repeated !== undefined) expect(later).toBe(repeated)
      else expect(later).toBeLessThan(300)
    },
  )

  it('[D43] an account whose first key was lost on the way stays empty, and the next one is another', async () => {
    const d1 = breakD1('lost after it was stored', WRITES)
    await expectStorageError(await send('POST', '/api/v1/auth/bootstrap'))
    d1.repair()
    expect((await send('POST', '/api/v1/auth/bootstrap')).status).toBe(201)
  })
})

describe('a session whose row may or may not be stored', () => {
  const create = (key: string | null, title = 't') =>
    client.send('POST', '/api/v1/sessions', { title }, key === null ? {} : { 'Idempotency-Key': key })
  const listed = async (title: string) => {
    const response = await client.send('GET', `/api/v1/sessions?title=${title}`)
    return (await parsed(response, ListSessionsResponse)).sessions
  }
  const isThere = async (id: string) => statusOf(await client.send('GET', `/api/v1/sessions/${id}`))

  for (const key of [null, 'stored']) {
    it(`[D26][U14] that was stored although D1 said no is told of, and is there (key: ${key})`, async () => {
      const title = `stored-${key}`
      const d1 = breakD1('lost after it was stored', WRITES)
      const { session } = await parsed(await create(key, title), CreateSessionResponse, 201)
      d1.repair()
      expect(await isThere(session.id)).toBe(200)
      expect(await listed(title)).toEqual([session])
      if (key !== null)
        expect((await parsed(await create(key, title), CreateSessionResponse, 201)).session).toEqual(session)
    })

    it(`[D26][U14] that cannot even be looked for is taken back, and the same request makes one (key: ${key})`, async () => {
      const title = `unknown-${key}`
      stopClock()
      // Nothing of it is known: its row was stored, and no question about it is answered.
      const d1 = breakD1('lost after it was stored', /^insert/i, { forGood: true })
      await expectStorageError(await create(key === null ? null : 'unknown', title))
      d1.repair()
      const [ghost] = await listed(title)
      if (ghost) await ringOut(ghost.id)
      expect(await listed(title)).toEqual([])
      const { session } = await parsed(
        await create(key === null ? null : 'unknown', title),
        CreateSessionResponse,
        201,
      )
      expect(await isThere(session.id)).toBe(200)
      expect(await listed(title)).toEqual([session])
    })
  }
})

describe('while D1 lags behind', () => {
  const RECORD = {
    name: 'memory',
    arguments: { op: 'record', scope: 'session', key: 'branch', value: 'main' },
  }
  const LOOK = { name: 'read_file', arguments: { path: 'a' } }

  it('[D25][D26] every read of one session shows what D1 has not got', async () => {
    const id = await client.newSession()
    const paths = ['', '/run', '/traces', '/usage', '/export'].map((part) => `/api/v1/sessions/${id}${part}`)
    paths.push(`/api/v1/memory?session_id=${id}`, `/api/v1/memory?scope=session&session_id=${id}`)
    const read = () =>
      Promise.all(
        paths.map(async (path) => {
          const answer = await client.send('GET', path)
          const text = new TextDecoder().decode(await answer.arrayBuffer())
          return `${answer.status} ${text.replace(/"exported_at":"[^"]*"/, '')}`
        }),
      )
    stopClock()
    const d1 = breakD1('lost', WRITES)
    models.script({ calls: [RECORD, LOOK] }, { text: ['Done.'] })
    const paused = await turnAs(await client.execute(id, makeExecute('remember')), 'awaiting_tool')
    const call_id = paused.data.tool_requests[0]?.call_id ?? ''
    const data = { results: [{ call_id, content: 'contents' }] }
    await turnAs(await client.proceed(id, { type: 'tool_results', data }), 'completed')
    await client.send('PUT', `/api/v1/sessions/${id}`, { title: 'renamed' })
    const fact = newId()
    const body = { content: 'strict', key: 'style', scope: 'session', session_id: id }
    await client.send('PUT', `/api/v1/memory/${fact}`, body)
    const lagging = await read()
    expect(lagging.join()).toMatch(/renamed[\s\S]*Done\.[\s\S]*contents[\s\S]*strict/)
    expect(lagging.at(-1)).toMatch(/branch.*main/)
    expect((await copyOf(id)).messages).toEqual([])
    d1.repair()
    await ringOut(id)
    expect(await read()).toEqual(lagging)
    expect((await copyOf(id)).messages).toHaveLength(3)
  })

  it('[D50] the facts of a session of somebody else, or of none, are an empty list', async () => {
    const id = await client.newSession()
    const body = { content: 'strict', scope: 'session', session_id: id }
    await client.send('PUT', `/api/v1/memory/${newId()}`, body)
    const factsOf = async (who: Client, sessionId: string) =>
      (await parsed(await who.send('GET', `/api/v1/memory?session_id=${sessionId}`), ListMemoryResponse))
        .memories
    expect(await factsOf(client, id)).toHaveLength(1)
    expect(await factsOf(await makeClient(), id)).toEqual([])
    expect(await factsOf(client, newId())).toEqual([])
    await client.send('PUT', `/api/v1/sessions/${id}`, { archived: true })
    expect(await factsOf(client, id)).toHaveLength(1)
    await client.send('DELETE', `/api/v1/sessions/${id}`)
    expect(await factsOf(client, id)).toEqual([])
  })

  for (const headers of [{}, STREAM]) {
    it(`[D26] a D1 that never answers holds an answer up for 250 ms and no longer (${'Accept' in headers ? 'streamed' : 'buffered'})`, async () => {
      const id = await client.newSession()
      models.script({ text: ['Hello.'] })
      onFlush(id, () => new Promise(() => {}))
      const startedMs = Date.now()
      const answer = await client.execute(id, makeExecute('hi'), headers)
      expect(await answer.text()).toContain('Hello.')
      const tookMs = Date.now() - startedMs
      expect(tookMs).toBeGreaterThanOrEqual(240)
      // Far from the 30 s after which D1 counts as failed, whatever else the machine does.
      expect(tookMs).toBeLessThan(5_000)
      expect((await checkpointOf(id)).outbox).toMatchObject({ messagesFrom: 1, failures: 0 })
    })
  }
})

describe('a deletion that D1 does not carry out', () => {
  it('[D26] is tried at growing intervals, also when the object is put away between two of them', async () => {
    const id = await client.newSession()
    const startMs = stopClock()
    const d1 = breakD1('lost', /^delete/i)
    expect((await client.send('DELETE', `/api/v1/sessions/${id}`)).status).toBe(200)
    await until(async () => ((await alarmOf(id)) ?? Number.POSITIVE_INFINITY) < startMs + 30_000)
    const waits: number[] = []
    for (let attempt = 0; attempt < 12; attempt++) {
      const at = (await alarmOf(id)) ?? 0
      setClock(at)
      await evictDurableObject(env.SESSION.getByName(id))
      await ringAlarm(id)
      waits.push(((await alarmOf(id)) ?? 0) - at)
    }
    expect(waits).toEqual([...waits].sort((a, b) => a - b))
    expect(waits[0]).toBeGreaterThanOrEqual(1_000)
    expect(waits.at(-1)).toBe(300_000)
    d1.repair()
    await ringOut(id)
    expect((await copyOf(id)).session).toBeUndefined()
  })
})
