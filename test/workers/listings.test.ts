import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { ListModelsResponse, ListProvidersResponse } from '../../src/protocol/execution/models.ts'
import { type Client, type Headers, makeClient, parsed, sendWith } from '../support/workers/router.ts'
import { watchTimers } from '../support/workers/timers.ts'

const DAEMON = 'http://127.0.0.1:11434'
const CLOUD = 'https://ollama.com'
/** Only the built-in providers and an Ollama of both kinds, deployed: nothing is shared. */
const VARS: Record<string, string | undefined> = {
  LOCAL_DEV: undefined,
  PROVIDERS: undefined,
  OLLAMA_BASE_URL: undefined,
}
const BOTH: typeof VARS = { ...VARS, OLLAMA_BASE_URL: DAEMON, OLLAMA_CLOUD_BASE_URL: CLOUD }

const keyHeader = (provider: string, key: string): Headers => ({
  [`X-Smista-Provider-${provider}-Api-Key`]: key,
})
/** What the cloud providers here show to a key: the model of its name. */
const facts = (...models: string[]) =>
  JSON.stringify(models.map((model) => ({ model, max_context_tokens: 10_000 })))

let first: Client
let second: Client
let asked: Request[]
let hang: string | null

beforeAll(async () => {
  first = await makeClient()
  second = await makeClient()
})

beforeEach(() => {
  asked = []
  hang = null
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const request = new Request(input, init)
    asked.push(request)
    const { origin, pathname } = new URL(request.url)
    const { signal } = init ?? {}
    if (origin === hang) {
      return new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason))
      })
    }
    const key =
      request.headers.get('x-api-key') ??
      request.headers.get('x-goog-api-key') ??
      request.headers.get('authorization')?.slice('Bearer '.length)
    if (key?.startsWith('bad')) return Response.json({ error: { message: 'no such key' } }, { status: 401 })
    if (pathname === '/api/tags') {
      return Response.json({
        models: [{ name: 'both:1b' }, { name: origin === DAEMON ? 'home:1b' : 'away:1b' }],
      })
    }
    if (pathname === '/api/show') return Response.json({ capabilities: ['completion'] })
    if (pathname === '/v1beta/models') return Response.json({ models: [] })
    return Response.json({ data: [{ id: `seen-by-${key}`, max_input_tokens: 10_000 }] })
  })
})

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

async function list(who: Client, headers: Headers = {}, vars = VARS) {
  const authorized = { Authorization: `Bearer ${who.token}`, ...headers }
  const response = await sendWith(vars, 'GET', '/api/v1/llm/models', undefined, authorized)
  const { models, unavailable = [] } = await parsed(response, ListModelsResponse)
  return {
    models: models.map(({ provider, model }) => `${provider}/${model}`),
    descriptors: models,
    unavailable: unavailable.map(({ provider, reason }) => `${provider}: ${reason}`),
  }
}

async function providersOf(who: Client, vars = VARS) {
  const headers = { Authorization: `Bearer ${who.token}` }
  const response = await sendWith(vars, 'GET', '/api/v1/llm/providers', undefined, headers)
  return (await parsed(response, ListProvidersResponse)).providers
}

describe('GET /llm/providers', () => {
  it('[EC 21] lists the built-in cloud providers always, as remote, and says nothing about credentials', async () => {
    expect(await providersOf(second, { ...VARS, ANTHROPIC_BASE_URL: 'http://127.0.0.1:9' })).toEqual([
      { id: 'anthropic', display_name: 'Anthropic', local: false },
      { id: 'gemini', display_name: 'Gemini', local: false },
      { id: 'openai', display_name: 'OpenAI', local: false },
    ])
    expect(asked).toEqual([])
  })

  it('[D14] shows one Ollama: local to whom the daemon serves, remote to others', async () => {
    const ollamas = async (who: Client, vars = BOTH) =>
      (await providersOf(who, vars)).filter(({ id }) => id === 'ollama').map(({ local }) => local)
    expect(await ollamas(first)).toEqual([true])
    expect(await ollamas(second)).toEqual([false])
    expect(await ollamas(second, { ...BOTH, OLLAMA_CLOUD_BASE_URL: undefined })).toEqual([])
    expect(await ollamas(second, { ...BOTH, SHARED_PROVIDERS: 'true' })).toEqual([true])
  })
})

describe('GET /llm/models', () => {
  it('[EC 2.17] says for each provider that cannot be listed why, in order', async () => {
    const vars = { ...VARS, GEMINI_BASE_URL: 'https://gemini.test/v1beta' }
    expect(await list(first, keyHeader('anthropic', 'bad-1'), vars)).toMatchObject({
      models: [],
      unavailable: [
        'anthropic: invalid_credentials',
        'gemini: invalid_configuration',
        'openai: missing_credentials',
      ],
    })
  })

  it('lists by provider and name, whatever order the providers answer in', async () => {
    const vars = { ...BOTH, MODEL_FACTS: facts('openai/seen-by-o') }
    const keys = { ...keyHeader('ollama', 'l'), ...keyHeader('openai', 'o'), ...keyHeader('anthropic', 'a') }
    expect((await list(first, keys, vars)).models).toEqual([
      'anthropic/seen-by-a',
      'ollama/away:1b',
      'ollama/both:1b',
      'ollama/home:1b',
      'openai/seen-by-o',
    ])
  })

  it('[D12] two keys never see each other’s listing, also while both are remembered', async () => {
    const of = async (key: string) => (await list(second, keyHeader('anthropic', key))).models
    expect(await of('one')).toEqual(['anthropic/seen-by-one'])
    expect(await of('two')).toEqual(['anthropic/seen-by-two'])
    asked = []
    expect(await of('one')).toEqual(['anthropic/seen-by-one'])
    expect(await of('two')).toEqual(['anthropic/seen-by-two'])
    expect(await list(second)).toMatchObject({ models: [] })
    expect(asked).toEqual([])
  })

  it('[D14] the deployment’s keys list for the first account only', async () => {
    const vars = { ...VARS, ANTHROPIC_API_KEY: 'of-the-deployment' }
    expect((await list(first, {}, vars)).models).toEqual(['anthropic/seen-by-of-the-deployment'])
    expect((await list(second, {}, vars)).models).toEqual([])
    const own = await list(first, keyHeader('anthropic', 'own'), vars)
    expect(own.models).toEqual(['anthropic/seen-by-own'])
    const changed = { ...vars, ANTHROPIC_API_KEY: 'the-next-one' }
    expect((await list(first, {}, changed)).models).toEqual(['anthropic/seen-by-the-next-one'])
  })

  it('[D14] another account lists the cloud’s Ollama with its own key, and nothing of the daemon', async () => {
    expect((await list(first, keyHeader('ollama', 'shared-key'), BOTH)).models).toEqual([
      'ollama/away:1b',
      'ollama/both:1b',
      'ollama/home:1b',
    ])
    asked = []
    const other = await list(second, keyHeader('ollama', 'shared-key'), BOTH)
    expect(other.models).toEqual(['ollama/away:1b', 'ollama/both:1b'])
    expect(other.descriptors.map(({ local }) => local)).toEqual([false, false])
    expect(new Set(asked.map(({ url }) => new URL(url).origin))).toEqual(new Set([CLOUD]))
    expect((await list(second, {}, BOTH)).unavailable).toContain('ollama: missing_credentials')
  })

  it('[EC 2.17] a provider out of time is a timeout, and what is there of it is listed', async () => {
    hang = DAEMON
    const slow = await list(first, { 'X-Smista-Timeout-Ms': '30', ...keyHeader('ollama', 'patient') }, BOTH)
    expect(slow.models).toEqual(['ollama/away:1b', 'ollama/both:1b'])
    expect(slow.unavailable).toContain('ollama: timeout')
    hang = null
    const again = await list(first, keyHeader('ollama', 'patient'), BOTH)
    expect(again.models).toContain('ollama/home:1b')
  })

  it('[D21] no timer outlives a listing', async () => {
    const timers = watchTimers()
    expect((await list(first, keyHeader('openai', 'bad-3'), BOTH)).models).toContain('ollama/home:1b')
    expect(vi.mocked(setTimeout).mock.calls.map(([, ms]) => ms)).toContain(10_000)
    expect(timers.pending()).toEqual([])
  })

  it('[EC 21] a changed configuration is seen at once, and nothing of another comes back', async () => {
    const ollama = async (allowed?: string) => {
      const vars = { ...BOTH, OLLAMA_CLOUD_BASE_URL: undefined, OLLAMA_ALLOWED_MODELS: allowed }
      return (await list(first, {}, vars)).models
    }
    expect(await ollama()).toEqual(['ollama/both:1b', 'ollama/home:1b'])
    expect(await ollama('home:1b')).toEqual(['ollama/home:1b'])
    asked = []
    expect(await ollama()).toEqual(['ollama/both:1b', 'ollama/home:1b'])
    expect(asked.length).toBeGreaterThan(0)
  })

  it('remembers the clouds for an hour and Ollama for a minute; failures not at all', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const keys = { ...keyHeader('anthropic', 'hourly'), ...keyHeader('gemini', 'bad-2') }
    const origins = async () => {
      asked = []
      await list(first, keys, BOTH)
      return [...new Set(asked.map(({ url }) => new URL(url).host))].sort()
    }
    const later = (ms: number) => vi.setSystemTime(Date.now() + ms)
    const google = 'generativelanguage.googleapis.com'
    expect(await origins()).toEqual(['127.0.0.1:11434', 'api.anthropic.com', google])
    later(59_999)
    expect(await origins()).toEqual([google])
    later(1)
    expect(await origins()).toEqual(['127.0.0.1:11434', google])
    later(3_540_000)
    expect(await origins()).toEqual(['127.0.0.1:11434', 'api.anthropic.com', google])
  })
})
