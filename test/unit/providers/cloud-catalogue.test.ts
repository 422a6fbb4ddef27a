import { describe, expect, it } from 'vitest'
import { parseProviderConfig } from '../../../src/providers/config.ts'
import { makeProviders } from '../../../src/providers/registry.ts'
import { type Script, scriptedFetch } from '../../support/node/scripted-upstream.ts'
import { KEY, makeContext } from './support.ts'

const json = (value: unknown) => ({
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(value),
})
const NEVER: Script = ({ url }) => {
  throw new Error(`${url} was asked`)
}

async function list(
  id: string,
  script: Script,
  options: { names?: string[]; credential?: string; facts?: unknown[]; vars?: Record<string, string> } = {},
) {
  const { names, facts, vars, ...rest } = options
  const MODEL_FACTS = facts === undefined ? undefined : JSON.stringify(facts)
  const providers = makeProviders(parseProviderConfig({ ...vars, MODEL_FACTS }))
  const upstream = scriptedFetch(script)
  const { context, routes } = makeContext({ fetch: upstream.fetch, purpose: 'catalogue', ...rest })
  const listed = await providers.get(id)?.listModels(context, names)
  if (listed === undefined) throw new Error(`no ${id}`)
  return {
    listed,
    models: listed.ok ? listed.value : [],
    names: listed.ok ? listed.value.map(({ model }) => model) : [],
    urls: upstream.requests.map(({ url }) => url),
    requests: upstream.requests,
    routes,
  }
}

describe.each(['anthropic', 'gemini', 'openai'])('%s', (id) => {
  it('[EC 21] is not asked without a credential', async () => {
    const { listed, urls } = await list(id, NEVER)
    expect(listed).toMatchObject({ ok: false, error: { category: 'missing_credentials' } })
    expect(urls).toEqual([])
  })

  it('a key that it refuses is told as such, and is not in the message', async () => {
    const refused = { status: 401, body: JSON.stringify({ error: { message: `no such key ${KEY}` } }) }
    const { listed } = await list(id, () => refused, { credential: KEY })
    expect(listed).toMatchObject({ error: { category: 'invalid_credentials' } })
    expect(JSON.stringify(listed)).not.toContain(KEY)
  })

  it('an answer that is no listing is a failure as data', async () => {
    const { listed } = await list(id, () => ({ body: '<html>' }), { credential: KEY })
    expect(listed).toMatchObject({ ok: false, error: { category: 'unknown' } })
  })

  it('[D12] a name whose window the owner states is not asked about, with a key or without', async () => {
    const facts = [{ model: `${id}/my-model`, max_context_tokens: 4_000 }]
    for (const rest of [{}, { credential: KEY }]) {
      const { models, urls } = await list(id, NEVER, { names: ['my-model'], facts, ...rest })
      expect(models).toMatchObject([
        { provider: id, model: 'my-model', max_context_tokens: 4_000, auth: 'api_key', local: false },
      ])
      expect(models[0]).not.toHaveProperty('input_cost_per_million_tokens')
      expect(urls).toEqual([])
    }
  })
})

describe('the models of Anthropic', () => {
  const told = {
    type: 'model',
    id: 'claude-next',
    display_name: 'Claude Next',
    max_input_tokens: 500_000,
    max_tokens: 50_000,
    capabilities: {
      image_input: { supported: false },
      structured_outputs: { supported: true },
      thinking: { supported: true, types: { adaptive: { supported: false }, enabled: { supported: true } } },
    },
  }

  it('[EC 21] are listed page by page, with the key in its own header', async () => {
    const script: Script = ({ url }) =>
      new URL(url).searchParams.get('after_id') === 'a b'
        ? json({ data: [{ id: 'claude-opus-5-5' }], has_more: false, last_id: 'claude-opus-5-5' })
        : json({ data: [told, { type: 'odd' }], has_more: true, last_id: 'a b' })
    const { names, requests } = await list('anthropic', script, { credential: KEY })
    expect(names).toEqual(['claude-next', 'claude-opus-5-5'])
    expect(requests.map(({ url }) => url)).toEqual([
      'https://api.anthropic.com/v1/models?limit=1000',
      'https://api.anthropic.com/v1/models?limit=1000&after_id=a%20b',
    ])
    expect(requests[0]?.headers).toMatchObject({ 'x-api-key': KEY, 'anthropic-version': '2023-06-01' })
    expect(requests[0]?.headers).not.toHaveProperty('authorization')
  })

  it('a listing that never ends is cut', async () => {
    const { listed, urls } = await list('anthropic', () => json({ data: [], has_more: true, last_id: 'x' }), {
      credential: KEY,
    })
    expect(listed.ok).toBe(true)
    expect(urls).toHaveLength(10)
  })

  it('[EC 21] what nobody knew before is what the listing states, and it has no price', async () => {
    const { models } = await list('anthropic', () => json({ data: [told] }), { credential: KEY })
    expect(models).toEqual([
      {
        provider: 'anthropic',
        model: 'claude-next',
        display_name: 'Claude Next',
        local: false,
        auth: 'api_key',
        capabilities: {
          streaming: true,
          tools: true,
          json_output: true,
          system_prompt: true,
          images: false,
          reasoning: true,
          memory: true,
        },
        max_context_tokens: 500_000,
        max_output_tokens: 50_000,
        default_parameters: {},
        provider_options: { thinking: 'budget' },
      },
    ])
  })

  it('[D12] a known model looks the same whether the API was asked or not', async () => {
    const other = { ...told, id: 'claude-sonnet-5-5' }
    const { models } = await list('anthropic', () => json({ data: [other] }), { credential: KEY })
    const { models: known } = await list('anthropic', NEVER, { names: ['claude-sonnet-5-5'] })
    expect(models[0]?.max_context_tokens).toBe(known[0]?.max_context_tokens)
    expect(models[0]?.display_name).toBe('Claude Sonnet 5.5')
    expect(models[0]?.provider_options).toEqual(known[0]?.provider_options)
  })

  it('[D12] by name only the unknown ones are asked for; what is not offered is left out', async () => {
    const script: Script = ({ path }) =>
      path.endsWith('/claude-next') ? json(told) : { status: 404, body: '{}' }
    const names = ['claude-next', 'claude-opus-5', 'claude/odd']
    const { names: found, urls } = await list('anthropic', script, { names, credential: KEY })
    expect(found).toEqual(['claude-opus-5', 'claude-next'])
    expect(urls).toEqual([
      'https://api.anthropic.com/v1/models/claude-next',
      'https://api.anthropic.com/v1/models/claude%2Fodd',
    ])
  })

  it('[EC 4] an alias that the API resolves is not a name', async () => {
    const { listed } = await list('anthropic', () => json(told), {
      names: ['claude-latest'],
      credential: KEY,
    })
    expect(listed).toEqual({ ok: true, value: [] })
  })

  it('a model whose window nobody tells is left out', async () => {
    const { listed } = await list('anthropic', () => json({ data: [{ id: 'claude-bare' }] }), {
      credential: KEY,
    })
    expect(listed).toEqual({ ok: true, value: [] })
  })

  it('[EC 21] the owner’s facts beat those of the program, field by field', async () => {
    const facts = [
      { model: 'anthropic/claude-*', max_output_tokens: 9_000 },
      {
        model: 'anthropic/claude-opus-5-5',
        input_cost_per_million_tokens: '3.5',
        capabilities: { images: false },
      },
    ]
    const { models } = await list('anthropic', NEVER, { names: ['claude-opus-5-5'], facts })
    expect(models).toMatchObject([
      {
        max_context_tokens: 1_000_000,
        max_output_tokens: 9_000,
        input_cost_per_million_tokens: '3.5',
        output_cost_per_million_tokens: '20',
        capabilities: { images: false, tools: true },
        provider_options: { thinking: 'adaptive' },
      },
    ])
    expect(models[0]).not.toHaveProperty('prices_as_of')
  })
})

describe('the models of Gemini', () => {
  const model = (name: string, rest = {}) => ({
    name: `models/${name}`,
    displayName: name.toUpperCase(),
    inputTokenLimit: 900_000,
    outputTokenLimit: 70_000,
    supportedGenerationMethods: ['generateContent', 'countTokens'],
    ...rest,
  })

  it('[EC 21] are those that generate content, over all pages, without the prefix of their names', async () => {
    const script: Script = ({ url }) =>
      new URL(url).searchParams.get('pageToken') === 't+1'
        ? json({ models: [model('gemini-next', { thinking: false })] })
        : json({
            models: [model('embed', { supportedGenerationMethods: ['embedContent'] }), { name: 'odd' }],
            nextPageToken: 't+1',
          })
    const { models, requests } = await list('gemini', script, { credential: KEY })
    expect(models).toMatchObject([
      {
        model: 'gemini-next',
        display_name: 'GEMINI-NEXT',
        max_context_tokens: 900_000,
        max_output_tokens: 70_000,
        capabilities: { reasoning: false, tools: true },
        provider_options: { thinking: 'level' },
      },
    ])
    expect(models[0]).not.toHaveProperty('input_cost_per_million_tokens')
    expect(requests.map(({ url }) => url)).toEqual([
      'https://generativelanguage.googleapis.com/v1beta/models?pageSize=1000',
      'https://generativelanguage.googleapis.com/v1beta/models?pageSize=1000&pageToken=t%2B1',
    ])
    expect(
      requests.every(({ headers, url }) => headers['x-goog-api-key'] === KEY && !url.includes(KEY)),
    ).toBe(true)
  })

  it('an output limit that is the whole window keeps nothing free', async () => {
    const wide = model('gemini-wide', { outputTokenLimit: 900_000 })
    const { models } = await list('gemini', () => json({ models: [wide] }), { credential: KEY })
    expect(models).toMatchObject([{ max_context_tokens: 900_000, max_output_tokens: null }])
  })

  it('[D12] by name one is asked for alone', async () => {
    const script: Script = ({ path }) =>
      path === '/v1beta/models/gemini-next' ? json(model('gemini-next')) : { status: 404, body: '{}' }
    const { names, urls } = await list('gemini', script, {
      names: ['gemini-next', 'gemini-none', 'gemini-4-neon'],
      credential: KEY,
      vars: { GEMINI_BASE_URL: 'http://127.0.0.1:9002' },
    })
    expect(names).toEqual(['gemini-4-neon', 'gemini-next'])
    expect(urls).toEqual([
      'http://127.0.0.1:9002/v1beta/models/gemini-next',
      'http://127.0.0.1:9002/v1beta/models/gemini-none',
    ])
  })

  it('one lookup that fails is the failure of what is unknown', async () => {
    const script: Script = ({ path }) =>
      path.endsWith('next') ? json(model('gemini-next')) : { status: 503, body: '{}' }
    const names = ['gemini-next', 'gemini-down']
    expect((await list('gemini', script, { names, credential: KEY })).listed).toMatchObject({
      error: { category: 'provider_unavailable' },
    })
  })
})

describe('the models of OpenAI', () => {
  const script: Script = () =>
    json({
      object: 'list',
      data: ['gpt-5.5', 'whisper-1', 'gpt-mine', 'text-embedding-3-large'].map((id) => ({ id })),
    })

  it('[EC 21] are those of the account of which facts are known: the API tells names of every kind', async () => {
    const { names, requests } = await list('openai', script, {
      credential: KEY,
      vars: { OPENAI_BASE_URL: 'https://proxy.test/openai/v1' },
    })
    expect(names).toEqual(['gpt-5.5'])
    expect(requests).toMatchObject([
      { url: 'https://proxy.test/openai/v1/models', headers: { authorization: `Bearer ${KEY}` } },
    ])
  })

  it('[EC 21] the owner’s facts bring in others', async () => {
    const facts = [{ model: 'openai/gpt-mine', max_context_tokens: 64_000 }]
    expect((await list('openai', script, { credential: KEY, facts })).names).toEqual(['gpt-5.5', 'gpt-mine'])
    const priced = [{ model: 'openai/gpt-mine', input_cost_per_million_tokens: '1' }]
    expect((await list('openai', script, { credential: KEY, facts: priced })).names).toEqual(['gpt-5.5'])
  })

  it('[D12] by name nothing is ever asked: a name without a window cannot be offered', async () => {
    const { listed, urls } = await list('openai', NEVER, {
      names: ['gpt-mine', 'gpt-5.4-2026-03-05'],
      credential: KEY,
    })
    expect(listed).toMatchObject({ ok: true, value: [{ model: 'gpt-5.4-2026-03-05' }] })
    expect(urls).toEqual([])
  })
})
