import { afterEach, describe, expect, it, vi } from 'vitest'
import type { InstanceConfig } from '../../../src/providers/config.ts'
import { EgressViolation } from '../../../src/providers/egress.ts'
import { OllamaProvider } from '../../../src/providers/ollama.ts'
import { OpenAiCompatibleProvider } from '../../../src/providers/openai-compatible.ts'
import { type Script, scriptedFetch } from '../../support/node/scripted-upstream.ts'
import { KEY, makeContext, makeDescriptor } from './support.ts'

const DEADLINES = { firstByteMs: 3_000, totalMs: 10_000 }
const json = (value: unknown) => ({
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(value),
})

afterEach(() => {
  vi.useRealTimers()
})

describe('the models of an Ollama daemon', () => {
  const base = { capabilities: ['completion'], model_info: { 'qwen3.context_length': 40_960 } }
  const shows: Record<string, unknown> = {
    'qwen3:8b': { ...base, capabilities: ['completion', 'tools', 'thinking'], details: { family: 'qwen3' } },
    'llava:latest': {
      ...base,
      capabilities: ['completion', 'vision'],
      model_info: { 'llama.context_length': 4_096 },
    },
    'gpt-oss:20b': {
      capabilities: ['completion', 'tools', 'thinking'],
      model_info: { 'gptoss.context_length': 131_072 },
      parameters: 'temperature                    1\nnum_ctx                        8192',
      details: { family: 'gptoss' },
    },
    'nomic-embed:latest': { ...base, capabilities: ['embedding'] },
    'old:latest': { template: '{{ .Prompt }}' },
    'kimi:cloud': {
      ...base,
      capabilities: ['completion', 'tools'],
      model_info: { 'kimi.context_length': 262_144 },
      remote_host: 'https://ollama.com:443',
    },
    'renamed:latest': base,
  }
  const script: Script = ({ path, body }) => {
    if (path === '/api/tags') {
      return json({
        models: Object.keys(shows).map((name) => ({
          name,
          model: name,
          ...(name === 'renamed:latest' ? { remote_host: 'https://elsewhere.test' } : {}),
        })),
      })
    }
    const { model } = Object(body)
    return shows[model] === 'broken' ? { status: 500, body: '{"error":"corrupt"}' } : json(shows[model])
  }
  const provider = new OllamaProvider(
    { baseUrl: 'http://127.0.0.1:11434', local: true, maxContextTokens: 32_768 },
    DEADLINES,
  )
  const list = async (names?: string[], upstream = scriptedFetch(script)) => {
    const { context, routes } = makeContext({ fetch: upstream.fetch, purpose: 'catalogue' })
    return { listed: await provider.listModels(context, names), requests: upstream.requests, routes }
  }

  it('[EC 21] come with what the daemon says that they can do, are local and free', async () => {
    const { listed } = await list(['qwen3:8b', 'llava:latest'])
    const common = {
      provider: 'ollama',
      display_name: null,
      local: true,
      auth: 'none',
      max_output_tokens: null,
      input_cost_per_million_tokens: '0',
      output_cost_per_million_tokens: '0',
      default_parameters: {},
    }
    const can = { streaming: true, json_output: true, system_prompt: true }
    expect(listed).toEqual({
      ok: true,
      value: [
        {
          ...common,
          model: 'qwen3:8b',
          max_context_tokens: 32_768,
          capabilities: { ...can, tools: true, memory: true, images: false, reasoning: true },
        },
        {
          ...common,
          model: 'llava:latest',
          max_context_tokens: 4_096,
          capabilities: { ...can, tools: false, memory: false, images: true, reasoning: false },
        },
      ],
    })
  })

  it('the window is the smallest of training, Modelfile and configuration; thinking may come in levels', async () => {
    const { listed } = await list(['gpt-oss:20b', 'old:latest'])
    expect(listed).toMatchObject({
      value: [
        { max_context_tokens: 8_192, provider_options: { think: 'levels' } },
        { max_context_tokens: 32_768, capabilities: { tools: false } },
      ],
    })
  })

  it('[EC 4] a name is matched exactly: `llama3` is not `llama3:latest`', async () => {
    const { listed, requests } = await list(['llava', 'qwen3', 'LLAVA:latest'])
    expect(listed).toEqual({ ok: true, value: [] })
    expect(requests.map(({ path }) => path)).toEqual(['/api/tags'])
  })

  it('[D12] only the named models are looked up', async () => {
    const { requests } = await list(['llava:latest'])
    expect(requests.map(({ method, path, body }) => [method, path, body])).toEqual([
      ['GET', '/api/tags', undefined],
      ['POST', '/api/show', { model: 'llava:latest' }],
    ])
  })

  it('a daemon from before `capabilities` tells by the template whether its models call tools', async () => {
    const shown = {
      'a:latest': { template: '{{ if .Tools }}{{ end }}' },
      'b:latest': { template: '{{ .Prompt }}' },
    }
    const old: Script = ({ path, body }) =>
      path === '/api/tags'
        ? json({ models: Object.keys(shown).map((name) => ({ name })) })
        : json(new Map(Object.entries(shown)).get(Object(body).model))
    const { listed } = await list(undefined, scriptedFetch(old))
    expect(listed.ok && listed.value.map(({ capabilities }) => capabilities.tools)).toEqual([true, false])
  })

  it('what serves the format without /api/show is taken at its word', async () => {
    const bare: Script = ({ path }) =>
      path === '/api/tags'
        ? json({ models: [{ name: 'plain' }] })
        : { status: 404, body: '{"error":"not found"}' }
    const { listed } = await list(undefined, scriptedFetch(bare))
    expect(listed).toMatchObject({
      value: [{ model: 'plain', local: true, max_context_tokens: 32_768, capabilities: { tools: true } }],
    })
  })

  it('models that cannot chat are left out', async () => {
    const { listed } = await list()
    expect(listed.ok && listed.value.map(({ model }) => model)).toEqual([
      'qwen3:8b',
      'llava:latest',
      'gpt-oss:20b',
      'old:latest',
      'kimi:cloud',
      'renamed:latest',
    ])
  })

  it('[U37] a model that the daemon forwards to another host is remote, unpriced, and has its own window', async () => {
    const { listed } = await list(['kimi:cloud', 'renamed:latest'])
    expect(listed).toMatchObject({
      value: [
        { model: 'kimi:cloud', local: false, max_context_tokens: 262_144 },
        { model: 'renamed:latest', local: false },
      ],
    })
    expect(listed.ok && listed.value.some((model) => 'input_cost_per_million_tokens' in model)).toBe(false)
  })

  it('a broken model hides only itself; a daemon that shows nothing is unavailable', async () => {
    const broken: Script = (request) =>
      request.path === '/api/show' && Object(request.body).model === 'qwen3:8b'
        ? { status: 500, body: '{"error":"corrupt"}' }
        : script(request)
    const { listed } = await list(['qwen3:8b', 'llava:latest'], scriptedFetch(broken))
    expect(listed.ok && listed.value.map(({ model }) => model)).toEqual(['llava:latest'])
    expect((await list(['qwen3:8b'], scriptedFetch(broken))).listed).toEqual({
      ok: false,
      error: {
        category: 'provider_unavailable',
        message: 'the provider is not available (HTTP 500): corrupt',
        status: 500,
      },
    })
  })

  it('a daemon without models has an empty catalogue', async () => {
    expect((await list(undefined, scriptedFetch(json({ models: null })))).listed).toEqual({
      ok: true,
      value: [],
    })
  })

  it('are shown four at a time', async () => {
    let open = 0
    let most = 0
    const slow: Script = async (request) => {
      if (request.path === '/api/show') {
        open += 1
        most = Math.max(most, open)
        await new Promise((resolve) => setImmediate(resolve))
        open -= 1
      }
      return script(request)
    }
    await list(undefined, scriptedFetch(slow))
    expect(most).toBe(4)
  })
})

describe('the models of an OpenAI-compatible instance', () => {
  const instance: InstanceConfig = {
    id: 'openai-compat:lab',
    displayName: 'Lab',
    baseUrl: 'https://models.example/v1',
    local: false,
    auth: 'optional_api_key',
  }
  const list = async (
    answer: Parameters<typeof scriptedFetch>[0],
    options: Parameters<typeof makeContext>[0] & { config?: Partial<InstanceConfig>; names?: string[] } = {},
  ) => {
    const { config, names, ...rest } = options
    const upstream = scriptedFetch(answer)
    const { context, routes } = makeContext({ fetch: upstream.fetch, ...rest })
    const provider = new OpenAiCompatibleProvider({ ...instance, ...config }, DEADLINES)
    return { listed: await provider.listModels(context, names), requests: upstream.requests, routes }
  }

  it('[D12] that are declared are not asked for', async () => {
    const models = [makeDescriptor({ model: 'a' }), makeDescriptor({ model: 'b' })]
    const all = await list({}, { config: { models } })
    expect(all).toEqual({ listed: { ok: true, value: models }, requests: [], routes: [] })
    const named = await list({}, { config: { models }, names: ['b', 'c'] })
    expect(named.listed).toEqual({ ok: true, value: [models[1]] })
  })

  it('are discovered otherwise, with their window under any of its names, without a price', async () => {
    const { listed, requests, routes } = await list(
      json({
        object: 'list',
        data: [
          { id: 'a', context_length: 131_072, pricing: { prompt: '0' } },
          { id: 'b', max_model_len: 32_768 },
          { id: 'c', context_window: 200_000 },
          { id: 'd', max_context_length: 4_096 },
          { id: 'e' },
          { id: 'f', context_length: 'much' },
          { object: 'model' },
        ],
      }),
      { credential: KEY },
    )
    expect(
      listed.ok && listed.value.map(({ model, max_context_tokens }) => [model, max_context_tokens]),
    ).toEqual([
      ['a', 131_072],
      ['b', 32_768],
      ['c', 200_000],
      ['d', 4_096],
      ['e', 8_192],
      ['f', 8_192],
    ])
    expect(listed.ok && listed.value[4]).toEqual({
      provider: 'openai-compat:lab',
      model: 'e',
      display_name: null,
      local: false,
      auth: 'optional_api_key',
      capabilities: {
        streaming: true,
        tools: true,
        json_output: true,
        system_prompt: true,
        images: false,
        reasoning: false,
        memory: true,
      },
      max_context_tokens: 8_192,
      max_output_tokens: null,
      default_parameters: {},
    })
    expect(requests).toMatchObject([
      { method: 'GET', path: '/v1/models', headers: { authorization: `Bearer ${KEY}` } },
    ])
    expect(routes).toMatchObject([{ model: '', origin: 'https://models.example' }])
  })

  it('may come as a bare list', async () => {
    const { listed } = await list(json([{ id: 'a' }, { id: 'b' }]), { names: ['b'] })
    expect(listed.ok && listed.value.map(({ model }) => model)).toEqual(['b'])
  })

  it.each([
    [{ status: 401, body: '{"error":"bad key"}' }, 'invalid_credentials'],
    [{ status: 500, body: 'oops' }, 'provider_unavailable'],
    [{ status: 302, headers: { location: 'https://login.example' } }, 'unknown'],
    [{ body: '<html>' }, 'unknown'],
    [{ body: '{"models":[]}' }, 'unknown'],
  ])('a listing that fails is a failure as data: %j', async (answer, category) => {
    expect((await list(answer)).listed).toMatchObject({ ok: false, error: { category } })
  })

  it('[EC 2.17] a listing whose caller ran out of time is a timeout', async () => {
    const signal = AbortSignal.timeout(20)
    expect((await list({ body: '', ending: 'hang' }, { signal })).listed).toMatchObject({
      error: { category: 'timeout' },
    })
  })

  it('[EC 2.17] no listing takes longer than a minute; no timer is left', async () => {
    vi.useFakeTimers()
    const listing = list({ body: '', ending: 'hang' })
    await vi.advanceTimersByTimeAsync(60_000)
    expect((await listing).listed).toMatchObject({ error: { category: 'timeout' } })
    expect(vi.getTimerCount()).toBe(0)
  })

  it('[U37] a remote instance is not even asked in a local-only turn', async () => {
    await expect(list(json({ data: [] }), { remoteAllowed: false })).rejects.toThrow(EgressViolation)
  })
})
