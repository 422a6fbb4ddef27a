import { afterEach, describe, expect, it, vi } from 'vitest'
import { chooseModel, type Demands } from '../../../src/core/select.ts'
import type { ModelDescriptor } from '../../../src/protocol/execution/models.ts'
import { makeAccess } from '../../../src/providers/access.ts'
import { OllamaRegistrations } from '../../../src/providers/catalogue/ollama-registrations.ts'
import { usableBy } from '../../../src/providers/catalogue/usable-provider.ts'
import { parseProviderConfig } from '../../../src/providers/config.ts'
import { EgressViolation } from '../../../src/providers/egress.ts'
import { makeProviders } from '../../../src/providers/registry.ts'
import { ModelCatalogue } from '../../../src/session/catalogue.ts'
import { type ScriptedAnswer, type SeenRequest, scriptedFetch } from '../../support/node/scripted-upstream.ts'
import { ollamaStream } from '../../support/node/scripted-upstream-dialects.ts'
import { collect, KEY, makeContext, makeRequest } from './support.ts'

const DAEMON = 'http://127.0.0.1:11434'
const CLOUD = 'https://ollama.com'
const BOTH = { OLLAMA_BASE_URL: DAEMON, OLLAMA_CLOUD_BASE_URL: CLOUD }

const json = (value: unknown) => ({
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(value),
})

type Side = {
  names: string[]
  fails?: ScriptedAnswer
  /** A model that is listed and cannot be shown. */
  broken?: string
}

/** A daemon and the cloud, each with its models; the window tells which of the two showed a model. */
function upstream(daemon: Side, cloud: Side) {
  return scriptedFetch(({ url, path, body }: SeenRequest) => {
    const isDaemon = url.startsWith(DAEMON)
    const side = isDaemon ? daemon : cloud
    if (side.fails) return side.fails
    if (path === '/api/tags') return json({ models: side.names.map((name) => ({ name })) })
    if (path === '/api/chat') return ollamaStream({ text: [isDaemon ? 'from home' : 'from the cloud'] })
    if (side.broken !== undefined && Object(body).model === side.broken) return { status: 500, body: '{}' }
    const model_info = { 'x.context_length': isDaemon ? 8_000 : 200_000 }
    return json({ capabilities: ['completion', 'tools'], model_info, asked: Object(body).model })
  })
}

const ollamaOf = (vars: Record<string, string> = BOTH) => {
  const provider = makeProviders(parseProviderConfig(vars)).get('ollama')
  if (!(provider instanceof OllamaRegistrations)) throw new Error('no Ollama')
  return provider
}

const home = { names: ['both:1b', 'home:1b'] }
const away = { names: ['both:1b', 'away:1b'] }

async function list(
  options: {
    daemon?: Side
    cloud?: Side
    names?: string[]
    credential?: string
    vars?: Record<string, string>
  } = {},
) {
  const { daemon = home, cloud = away, names, vars, ...rest } = options
  const server = upstream(daemon, cloud)
  const { context } = makeContext({ fetch: server.fetch, purpose: 'catalogue', ...rest })
  const { models, failure } = await ollamaOf(vars).listWithGaps(context, names)
  return {
    failure: failure?.category,
    models: models.map(({ model, max_context_tokens }) => [
      model,
      max_context_tokens === 8_000 ? 'home' : 'away',
    ]),
    descriptors: models,
    asked: (origin: string) => server.requests.filter(({ url }) => url.startsWith(origin)),
  }
}

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe('a daemon and Ollama’s cloud under one name', () => {
  it('[EC 21] have one catalogue, in which the daemon wins for equal names', async () => {
    const { models, failure } = await list({ credential: KEY })
    expect(models).toEqual([
      ['both:1b', 'home'],
      ['home:1b', 'home'],
      ['away:1b', 'away'],
    ])
    expect(failure).toBeUndefined()
  })

  it('[EC 21] the cloud’s models are remote, unpriced, need a key, and have a window of their own', async () => {
    const { descriptors } = await list({ credential: KEY, names: ['away:1b'] })
    expect(descriptors).toMatchObject([
      {
        local: false,
        auth: 'api_key',
        max_context_tokens: 200_000,
        provider_options: { registration: 'cloud' },
      },
    ])
    expect(Object.keys(descriptors[0] ?? {}).some((field) => field.includes('cost'))).toBe(false)
  })

  it('[EC 21] the key goes to the cloud only, never to the daemon', async () => {
    const { asked } = await list({ credential: KEY })
    expect(asked(CLOUD).every(({ headers }) => headers.authorization === `Bearer ${KEY}`)).toBe(true)
    expect(asked(DAEMON).length).toBeGreaterThan(0)
    expect(JSON.stringify(asked(DAEMON))).not.toContain(KEY)
    const alone = await list({ credential: KEY, vars: { OLLAMA_BASE_URL: DAEMON } })
    expect(JSON.stringify(alone.asked(DAEMON))).not.toContain(KEY)
  })

  it('[D12] by name the cloud is asked only for what the daemon lacks, and only with a key', async () => {
    const local = await list({ credential: KEY, names: ['home:1b', 'both:1b'] })
    expect(local.models).toHaveLength(2)
    expect(local.asked(CLOUD)).toEqual([])
    const mixed = await list({ credential: KEY, names: ['both:1b', 'away:1b'] })
    expect(mixed.models).toEqual([
      ['both:1b', 'home'],
      ['away:1b', 'away'],
    ])
    expect(mixed.asked(CLOUD).map(({ path, body }) => [path, body])).toEqual([
      ['/api/tags', undefined],
      ['/api/show', { model: 'away:1b' }],
    ])
    const keyless = await list({ names: ['away:1b'] })
    expect(keyless).toMatchObject({ models: [], failure: undefined })
    expect(keyless.asked(CLOUD)).toEqual([])
  })

  it('the failure of one does not hide the models of the other, and is told', async () => {
    const down = { names: [], fails: { status: 500, body: '{}' } }
    expect(await list({ credential: KEY, daemon: down })).toMatchObject({
      models: [
        ['both:1b', 'away'],
        ['away:1b', 'away'],
      ],
      failure: 'provider_unavailable',
    })
    expect(await list({ credential: KEY, cloud: down })).toMatchObject({
      models: [
        ['both:1b', 'home'],
        ['home:1b', 'home'],
      ],
      failure: 'provider_unavailable',
    })
    const refused = { names: [], fails: { status: 401, body: '{}' } }
    expect(await list({ credential: KEY, cloud: refused, names: ['home:1b', 'away:1b'] })).toMatchObject({
      models: [['home:1b', 'home']],
      failure: 'invalid_credentials',
    })
  })

  it('[D13] by name a daemon that fails leaves nothing to the cloud, not even what it may not have', async () => {
    const down = { names: [], fails: { status: 500, body: '{}' } }
    for (const names of [['both:1b'], ['away:1b'], ['home:1b', 'both:1b', 'away:1b']]) {
      const listed = await list({ credential: KEY, daemon: down, names })
      expect(listed).toMatchObject({ models: [], failure: 'provider_unavailable' })
      expect(listed.asked(CLOUD)).toEqual([])
    }
  })

  it('[D13] by name a daemon that is late leaves nothing to the cloud', async () => {
    const controller = new AbortController()
    const server = upstream({ names: [], fails: { body: '', ending: 'hang' } }, away)
    const { context } = makeContext({ fetch: server.fetch, purpose: 'catalogue', credential: KEY })
    const listing = ollamaOf().listWithGaps({ ...context, signal: controller.signal }, ['both:1b'])
    await vi.waitUntil(() => server.requests.length > 0)
    controller.abort(new DOMException('the listing took too long', 'TimeoutError'))
    expect(await listing).toMatchObject({ models: [], failure: { category: 'timeout' } })
    expect(server.requests.map(({ url }) => new URL(url).origin)).toEqual([DAEMON])
  })

  it('[D13] a model that the daemon has and cannot show is not left to the cloud, others are', async () => {
    const broken = { ...home, broken: 'both:1b' }
    const listed = await list({ credential: KEY, daemon: broken, names: ['home:1b', 'both:1b'] })
    expect(listed).toMatchObject({ models: [['home:1b', 'home']], failure: 'provider_unavailable' })
    expect(listed.asked(CLOUD)).toEqual([])
    const without = await list({ credential: KEY, daemon: broken, names: ['home:1b', 'away:1b'] })
    expect(without).toMatchObject({
      models: [
        ['home:1b', 'home'],
        ['away:1b', 'away'],
      ],
      failure: undefined,
    })
  })

  it('[EC 21] names that are not allowed are those of the cloud, or nobody’s', async () => {
    const vars = { ...BOTH, OLLAMA_ALLOWED_MODELS: 'home:1b' }
    expect((await list({ credential: KEY, vars })).models).toEqual([
      ['home:1b', 'home'],
      ['both:1b', 'away'],
      ['away:1b', 'away'],
    ])
    const only = await list({
      vars: { OLLAMA_BASE_URL: DAEMON, OLLAMA_ALLOWED_MODELS: 'x' },
      names: ['both:1b'],
    })
    expect(only.models).toEqual([])
    expect(only.asked(DAEMON)).toEqual([])
  })

  it('[EC 21] the owner’s facts hold for both, and cannot move a model from one to the other', async () => {
    const MODEL_FACTS = JSON.stringify([
      { model: 'ollama/home:1b', max_context_tokens: 5, input_cost_per_million_tokens: '1' },
      {
        model: 'ollama/away:1b',
        output_cost_per_million_tokens: '2',
        provider_options: { registration: 'home' },
      },
    ])
    const { descriptors } = await list({ credential: KEY, vars: { ...BOTH, MODEL_FACTS } })
    expect(descriptors.slice(1)).toMatchObject([
      { model: 'home:1b', local: true, max_context_tokens: 5, input_cost_per_million_tokens: '1' },
      { model: 'away:1b', output_cost_per_million_tokens: '2', provider_options: { registration: 'cloud' } },
    ])
  })
})

describe('a call', () => {
  const described = async (name: string): Promise<ModelDescriptor> => {
    const [model] = (await list({ credential: KEY, names: [name] })).descriptors
    if (model === undefined) throw new Error(`no ${name}`)
    return model
  }

  it('[EC 21] goes to the one that the chosen descriptor came from, and the key to the cloud only', async () => {
    for (const [name, origin, text] of [
      ['both:1b', DAEMON, 'from home'],
      ['away:1b', CLOUD, 'from the cloud'],
    ] as const) {
      const server = upstream(home, away)
      const { context, routes } = makeContext({ fetch: server.fetch, credential: KEY })
      const events = await collect(ollamaOf(), makeRequest({ model: await described(name) }), context)
      expect(events).toContainEqual({ type: 'text_delta', delta: text })
      expect(routes).toMatchObject([{ origin, local: origin === DAEMON }])
      expect(server.requests[0]?.headers.authorization).toBe(origin === CLOUD ? `Bearer ${KEY}` : undefined)
    }
  })

  it('to the cloud without a key reaches nothing', async () => {
    const { context, routes } = makeContext({ fetch: upstream(home, away).fetch })
    const events = await collect(ollamaOf(), makeRequest({ model: await described('away:1b') }), context)
    expect(events).toMatchObject([{ type: 'failed', failure: { category: 'missing_credentials' } }])
    expect(routes).toEqual([])
  })

  it('[U37] of a turn that is bound to local models cannot reach the cloud', async () => {
    const server = upstream(home, away)
    const { context } = makeContext({ fetch: server.fetch, credential: KEY, remoteAllowed: false })
    const request = makeRequest({ model: await described('away:1b') })
    await expect(collect(ollamaOf(), request, context)).rejects.toThrow(EgressViolation)
    expect(server.requests).toEqual([])
  })
})

describe('whom it serves', () => {
  const access = (deploymentProviders: boolean, credentials = {}) =>
    makeAccess({ userId: 'u', credentials, deploymentProviders }, new Map([['ollama', 'deployment-key']]))
  const demands: Demands = {
    references: ['ollama/both:1b'],
    overrideUsed: false,
    localBecause: null,
    localDenied: false,
    capabilities: {},
    derived: {},
    mayCallTools: false,
    requiredTokens: 0,
  }

  it('[D14] the daemon serves the first account; others are left with the cloud, and see it as remote', async () => {
    const ollama = ollamaOf()
    const first = usableBy(await access(true), ollama)
    const other = usableBy(await access(false), ollama)
    expect(first?.descriptor).toEqual({ id: 'ollama', display_name: 'Ollama', local: true })
    expect(other?.descriptor).toEqual({ id: 'ollama', display_name: 'Ollama', local: false })
    expect(usableBy(await access(false), ollamaOf({ OLLAMA_BASE_URL: DAEMON }))).toBeUndefined()
  })

  /** Routes one turn as a session's object does. */
  async function route(deploymentProviders: boolean, credentials: Record<string, string>, wanted = demands) {
    const server = upstream(home, away)
    vi.spyOn(globalThis, 'fetch').mockImplementation(server.fetch)
    const who = await access(deploymentProviders, credentials)
    const catalogue = new ModelCatalogue(makeProviders(parseProviderConfig(BOTH)))
    for (;;) {
      const choice = chooseModel(wanted, catalogue.view(who, Date.now()))
      if (choice.k !== 'list')
        return { choice, origins: new Set(server.requests.map(({ url }) => new URL(url).origin)) }
      const { signal } = new AbortController()
      await catalogue.list(choice.provider, choice.models, who, signal, wanted.localBecause !== null)
    }
  }

  it('[D14] another account reaches the cloud with its own key, and the daemon and the deployment’s key never', async () => {
    const own = await route(false, { ollama: 'own-key' })
    expect(own.choice).toMatchObject({
      k: 'use',
      model: { local: false, provider_options: { registration: 'cloud' } },
    })
    expect([...own.origins]).toEqual([CLOUD])
    const keyless = await route(false, {})
    expect(keyless.choice.k).toBe('none')
    expect([...keyless.origins]).toEqual([])
    const first = await route(true, {})
    expect(first.choice).toMatchObject({ k: 'use', model: { local: true } })
  })

  it('[U37] a turn that is bound to local models is offered the daemon’s only', async () => {
    const bound = { ...demands, localBecause: 'rule' as const }
    const home = await route(true, {}, bound)
    expect(home.choice).toMatchObject({ k: 'use', model: { local: true } })
    const cloudOnly = { ...bound, references: ['ollama/away:1b'] }
    const away = await route(true, {}, cloudOnly)
    expect(away.choice).toMatchObject({ k: 'none', failure: { code: 'no_route' } })
    // Not even asked what it offers.
    expect([...home.origins, ...away.origins]).toEqual([DAEMON, DAEMON])
    const other = await route(false, { ollama: 'own-key' }, bound)
    expect(other.choice).toMatchObject({ k: 'none', failure: { code: 'no_route' } })
    expect([...other.origins]).toEqual([])
    const overridden = { ...cloudOnly, localBecause: 'required_content' as const, overrideUsed: true }
    expect((await route(true, {}, overridden)).choice).toMatchObject({
      k: 'none',
      failure: { code: 'override_not_allowed' },
    })
  })

  it('[D13] a session whose daemon fails for a moment is not served by the cloud', async () => {
    const daemon: Side = { names: [], fails: { status: 500, body: '{}' } }
    const server = upstream(daemon, away)
    vi.spyOn(globalThis, 'fetch').mockImplementation(server.fetch)
    const who = await access(true)
    const catalogue = new ModelCatalogue(makeProviders(parseProviderConfig(BOTH)))
    await catalogue.list('ollama', ['both:1b'], who, new AbortController().signal)
    expect(catalogue.view(who, Date.now()).find('ollama', 'both:1b')).toMatchObject({
      k: 'unavailable',
      failure: { code: 'provider_unavailable' },
    })
    expect(server.requests.every(({ url }) => url.startsWith(DAEMON))).toBe(true)
  })

  it('[U37] what a bound turn did not ask the cloud, the next free turn asks', async () => {
    const server = upstream(home, away)
    vi.spyOn(globalThis, 'fetch').mockImplementation(server.fetch)
    const who = await access(true)
    const catalogue = new ModelCatalogue(makeProviders(parseProviderConfig(BOTH)))
    const { signal } = new AbortController()
    const find = () => catalogue.view(who, Date.now()).find('ollama', 'away:1b')
    await catalogue.list('ollama', ['away:1b'], who, signal, true)
    expect(find()).toEqual({ k: 'unlisted', remote: true })
    await catalogue.list('ollama', ['away:1b'], who, signal, false)
    expect(find()).toMatchObject({ k: 'found', model: { local: false } })
  })
})
