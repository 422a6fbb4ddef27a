import { beforeAll, describe, expect, it } from 'vitest'
import openapi from '../../schemas/execution/openapi.json'
import type { Route } from '../../src/protocol/execution/route-parts.ts'
import { ROUTES } from '../../src/protocol/execution/routes.ts'
import { SHAPES } from '../../src/protocol/execution/shapes.ts'
import { RunResponse } from '../../src/protocol/execution/turn.ts'
import { newId } from '../../src/storage/ids.ts'
import { app } from '../../src/worker/app.ts'
import { makeExecute, routeTo } from '../support/workers/bodies.ts'
import { describeEach } from '../support/workers/each-case.ts'
import { askToConnect, openPairing, pairDevice } from '../support/workers/gateway-device.ts'
import { Hold } from '../support/workers/hold.ts'
import {
  type Client,
  type Headers,
  makeClient,
  parsed,
  refused,
  send,
  sendWith,
  turnAs,
  turnOf,
} from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { endOf, eventsOf } from '../support/workers/turn-stream.ts'

const models = scriptModels()

let client: Client
beforeAll(async () => {
  client = await makeClient()
})

/** A body that each route accepts. */
const BODIES: Partial<Record<Route['operationId'], unknown>> = {
  createSession: { title: 'one', scope: '/project' },
  updateSession: { title: 'another' },
  executeTurn: makeExecute('hi'),
  streamTurn: makeExecute('hi'),
  previewTurn: makeExecute('hi'),
  continueTurn: { type: 'break' },
  putMemory: { content: 'likes tea' },
  putDefaultPolicy: { policy: makeExecute('hi').policy },
  renameDevice: { name: 'another' },
}

let askedFrom = 0

/** What has to be there for a path to name it. */
const NAMED: Readonly<Record<string, (who: Client, sessionId: string) => Promise<string>>> = {
  '{key_id}': async (who) => (await (await who.send('POST', '/api/v1/auth/keys')).json<{ id: string }>()).id,
  '{memory_id}': async (who) => {
    const id = newId()
    await who.send('PUT', `/api/v1/memory/${id}`, BODIES.putMemory)
    return id
  },
  '{device_id}': async (who) => (await pairDevice(who)).deviceId,
  '{request_id}': async (who) => {
    await who.send('POST', '/api/v1/connect-requests/listen')
    // One request per address: each test asks from another.
    const headers = { 'CF-Connecting-IP': `10.0.0.${++askedFrom}` }
    const { gateway_id } = await openPairing(who)
    return (await askToConnect(gateway_id, {}, { headers })).requestId
  },
  '{grant_id}': async (who, sessionId) => {
    const asking = { ...routeTo('ollama/small'), privacy: { local: { mode: 'ask' as const } } }
    const paused = await who.execute(sessionId, makeExecute('hi', { policy: asking }))
    // Of a foreign session there is no grant to name.
    if (!paused.ok) return newId()
    const { approval } = (await turnAs(paused, 'awaiting_approval')).data
    const decisions = [{ approval_id: approval.approval_id, decision: 'approved' as const }]
    models.script({ calls: [{ name: 'read_file', arguments: { path: 'a' } }] })
    await turnOf(await who.proceed(sessionId, { type: 'approval_decisions', data: { decisions } }))
    const [grant] = (await parsed(await who.run(sessionId), RunResponse)).grants ?? []
    return grant?.id ?? newId()
  },
}

async function ask(who: Client, route: Route, sessionId: string, headers: Headers = {}): Promise<Response> {
  let path = route.path.replace('{session_id}', sessionId)
  for (const [name, make] of Object.entries(NAMED)) {
    if (path.includes(name)) path = path.replace(name, await make(who, sessionId))
  }
  return who.send(route.method.toUpperCase(), path, BODIES[route.operationId], headers)
}

/** A session that has had a run, so that every route has something to say about it. */
async function sessionWithRun(): Promise<string> {
  models.script({ text: ['hello'] })
  const sessionId = await client.newSession()
  await (await client.execute(sessionId, makeExecute('hi'))).text()
  return sessionId
}

it('[EC 2] the Worker serves exactly the routes of the contract, its front page and the sockets', () => {
  const served = app.routes
    .filter(({ method }) => method !== 'ALL')
    .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`)
  const published = ROUTES.map(({ method, path }) => `${method.toUpperCase()} ${path}`)
  // What devices and programs dial is described with the remote protocol, and is no operation of this API.
  const sockets = ['GET /g/{gateway_id}', 'GET /api/v1/gateway']
  expect([...new Set(served)].sort()).toEqual([...published, 'GET /', ...sockets].sort())
})

it('[D53] the front page says what this is', async () => {
  const response = await send('GET', '/')
  expect(response.headers.get('Content-Type')).toContain('text/html')
  expect(await response.text()).toContain('Switchyard')
})

describeEach(
  ROUTES,
  ({ method, path }) => `${method} ${path}`,
  (route) => {
    const { operationId, success } = route
    const extra: Headers = operationId === 'signIn' ? { Authorization: '' } : {}

    if (success.json === 'OpenApi') {
      it('[EC 2] answers with the published document', async () => {
        expect(await (await ask(client, route, '')).json()).toEqual(openapi)
      })
    } else if (success.json) {
      const shape = SHAPES[success.json]
      it(`[EC 2] answers ${success.status} with a ${success.json}`, async () => {
        const sessionId = await sessionWithRun()
        // Signing out, or deleting the account, would end the session of all the other tests.
        const ends = operationId === 'signOut' || operationId === 'deleteAccount'
        const who = ends ? await makeClient() : client
        const needsKey = operationId === 'signIn' || operationId === 'deleteAccount'
        const key = needsKey ? { 'X-Smista-Api-Key': who.key } : {}
        await parsed(await ask(who, route, sessionId, { ...extra, ...key }), shape, success.status)
      })
    }

    if (success.lines) {
      const shape = SHAPES[success.lines]
      it(`[EC 2] answers with lines, each a ${success.lines}`, async () => {
        const response = await ask(client, route, await sessionWithRun())
        expect(response.headers.get('Content-Type')).toBe('application/x-ndjson')
        const text = new TextDecoder().decode(await response.arrayBuffer())
        const lines = text.trimEnd().split('\n')
        expect(lines.length).toBeGreaterThan(2)
        for (const line of lines) shape.parse(JSON.parse(line))
      })
    }

    if (success.stream === 'TurnEvent') {
      it('[EC 18] answers with a stream of events that ends with one turn_end', async () => {
        const sessionId = await sessionWithRun()
        endOf(await eventsOf(await ask(client, route, sessionId, { Accept: 'text/event-stream' })))
      })
    }

    if (route.security === 'bearer') {
      it('[U34] does not answer without a credential', async () => {
        const sessionId = await client.newSession()
        const path = route.path.replace('{session_id}', sessionId)
        const answer = await refused(await send(route.method.toUpperCase(), path, BODIES[operationId]))
        expect(answer).toMatchObject({ status: 401, code: 'missing_credentials' })
      })
    }

    if (route.path.includes('{session_id}')) {
      it('[EC 2] a foreign session looks like none', async () => {
        const sessionId = await sessionWithRun()
        const stranger = await makeClient()
        const answerTo = async (id: string) => {
          const response = await ask(stranger, route, id)
          return {
            status: response.status,
            type: response.headers.get('Content-Type'),
            text: await response.text(),
          }
        }
        const foreign = await answerTo(sessionId)
        expect(foreign).toMatchObject({ status: 404, text: expect.stringContaining('"session_not_found"') })
        expect(foreign).toEqual(await answerTo('01890000-0000-7000-8000-000000000000'))
        expect((await ask(client, route, sessionId)).status).toBeLessThan(300)
      })

      it('[EC 1] takes any spelling of the id and refuses what is none', async () => {
        const sessionId = await sessionWithRun()
        const spelt = `%7B${sessionId.toUpperCase().replaceAll('-', '')}%7D`
        expect((await ask(client, route, spelt)).status).toBeLessThan(300)
        expect(await refused(await ask(client, route, `${sessionId}0`))).toMatchObject({
          status: 400,
          code: 'invalid_session_id',
        })
      })
    }
  },
)

describe('providers and models', () => {
  const DEPLOYED = { LOCAL_DEV: undefined }
  const LOCAL = ['ollama', 'openai-compat:gone', 'openai-compat:lan']
  const CLOUDS = ['anthropic', 'gemini', 'openai']
  const keyless = CLOUDS.map((provider) => ({ provider, reason: 'missing_credentials' }))
  const providersOf = async (who: Client, vars = {}) => {
    const headers = { Authorization: `Bearer ${who.token}` }
    const response = await sendWith(vars, 'GET', '/api/v1/llm/providers', undefined, headers)
    const { providers } = await parsed(response, SHAPES.ListProvidersResponse)
    return providers.map(({ id }) => id).sort()
  }
  const modelsOf = async (headers: Headers = {}) =>
    parsed(await client.send('GET', '/api/v1/llm/models', undefined, headers), SHAPES.ListModelsResponse)

  it('[D14] local endpoints of a deployment serve its first account, and others only where they are shared', async () => {
    const second = await makeClient()
    expect(await providersOf(client, DEPLOYED)).toEqual([...CLOUDS, 'openai-compat:cloud', ...LOCAL].sort())
    expect(await providersOf(second, DEPLOYED)).toEqual([...CLOUDS, 'openai-compat:cloud'])
    expect(await providersOf(second, { ...DEPLOYED, SHARED_PROVIDERS: 'true' })).toEqual(
      await providersOf(client, DEPLOYED),
    )
    expect(await providersOf(second)).toEqual(await providersOf(client))
  })

  it('[D14] another account cannot run on them either', async () => {
    const second = await makeClient()
    const sessionId = await second.newSession()
    const path = `/api/v1/sessions/${sessionId}/execute`
    const headers = { Authorization: `Bearer ${second.token}` }
    models.script({ text: ['x'] })
    const foreign = await sendWith(DEPLOYED, 'POST', path, makeExecute('hi'), headers)
    expect(await refused(foreign)).toMatchObject({ status: 503, code: 'fallback_exhausted' })
    expect(models.chats).toHaveLength(0)
    expect(models.listings).toHaveLength(0)
    expect((await sendWith({}, 'POST', path, makeExecute('hi'), headers)).status).toBe(200)
  })

  it('[EC 2.17] lists what can be reached, and why the rest cannot', async () => {
    const { models: listed, unavailable } = await modelsOf()
    const names = listed.map(({ provider, model }) => `${provider}/${model}`).sort()
    expect(names).toEqual([
      'ollama/other',
      'ollama/small',
      'ollama/tiny',
      'openai-compat:cloud/big',
      'openai-compat:cloud/plain',
      'openai-compat:lan/desk',
    ])
    expect(unavailable).toMatchObject([
      ...keyless,
      { provider: 'openai-compat:gone', reason: 'provider_unavailable' },
    ])
  })

  it('[EC 2.17] a provider that is too slow for the caller is left out with `timeout`', async () => {
    const hold = new Hold()
    models.onListing = hold.wait
    const { models: listed, unavailable } = await modelsOf({
      'X-Smista-Timeout-Ms': '20',
      // A key that nobody has listed with: what others have listed is not shown to it.
      'X-Smista-Provider-Ollama-Api-Key': 'new-here',
    })
    hold.release()
    expect(listed.map(({ provider }) => provider)).not.toContain('ollama')
    expect(unavailable).toMatchObject([
      ...keyless.slice(0, 2),
      { provider: 'ollama', reason: 'timeout' },
      ...keyless.slice(2),
      { provider: 'openai-compat:gone', reason: 'timeout' },
    ])
  })
})
