import { describe, expect, it } from 'vitest'
import { parseProviderConfig } from '../../../src/providers/config.ts'
import { makeProviders } from '../../../src/providers/registry.ts'
import { collect, makeContext, makeRequest } from './support.ts'

const instances = (...entries: unknown[]) => ({ PROVIDERS: JSON.stringify(entries) })
const lab = { name: 'lab', base_url: 'https://models.example/v1' }
const model = { model: 'lab-7b', max_context_tokens: 16_000 }
const CLOUD_ADDRESSES = [
  { id: 'anthropic', displayName: 'Anthropic', baseUrl: 'https://api.anthropic.com' },
  { id: 'gemini', displayName: 'Gemini', baseUrl: 'https://generativelanguage.googleapis.com' },
  { id: 'openai', displayName: 'OpenAI', baseUrl: 'https://api.openai.com/v1' },
]
const messages = (vars: Record<string, string | undefined>) =>
  parseProviderConfig(vars).problems.map(({ failure }) => failure.message)

describe('the Ollama daemon of the deployment', () => {
  const ollama = (OLLAMA_BASE_URL: string, rest = {}) => parseProviderConfig({ OLLAMA_BASE_URL, ...rest })

  it('is there only when it is named', () => {
    const nothing = {
      clouds: CLOUD_ADDRESSES,
      instances: [],
      facts: new Map(),
      secrets: new Map(),
      problems: [],
    }
    expect(parseProviderConfig({})).toEqual(nothing)
    expect(ollama(' ')).toEqual(nothing)
    expect(ollama('http://127.0.0.1:11434/')).toEqual({
      ...nothing,
      ollama: { baseUrl: 'http://127.0.0.1:11434', local: true, maxContextTokens: 32_768 },
    })
  })

  it.each([
    'http://localhost:11434',
    'http://127.0.0.1:11434',
    'http://[::1]:11434',
    'http://10.1.2.3:11434',
    'http://172.16.0.9:11434',
    'http://172.31.255.1:11434',
    'http://192.168.178.20:11434',
    'http://100.100.3.4:11434',
    'http://[fd00::12]:11434',
    'http://[fe80::1]:11434',
    'http://ollama:11434',
    'http://gpu-box.local:11434',
    'http://host.docker.internal:11434',
  ])('[EC 9] at %s, a private address, is local unless declared otherwise', (url) => {
    expect(ollama(url).ollama?.local).toBe(true)
    expect(ollama(url, { OLLAMA_LOCAL: 'false' }).ollama?.local).toBe(false)
  })

  it.each([
    'https://ollama.example.com',
    'http://8.8.8.8:11434',
    'http://172.32.0.1:11434',
    'http://100.128.0.1:11434',
    'http://192.169.0.1:11434',
    'http://[2001:db8::1]:11434',
    'http://localhost.example.com:11434',
    'http://10.example.com:11434',
  ])('[EC 9] at %s, a public address, is remote unless declared to be the owner’s', (url) => {
    expect(ollama(url).ollama?.local).toBe(false)
    expect(ollama(url, { OLLAMA_LOCAL: 'true' }).ollama?.local).toBe(true)
  })

  it('[D14] a cloud service cannot be declared local', () => {
    expect(ollama('https://ollama.com').ollama).toBeUndefined()
    expect(messages({ OLLAMA_BASE_URL: 'https://ollama.com' })).toEqual([
      'OLLAMA_BASE_URL is for a daemon; Ollama’s cloud belongs into OLLAMA_CLOUD_BASE_URL',
    ])
    expect(ollama('https://ollama.com', { OLLAMA_LOCAL: 'true' })).toMatchObject({
      problems: [
        {
          provider: 'ollama',
          failure: {
            code: 'invalid_provider_configuration',
            message: 'OLLAMA_LOCAL cannot be true for a cloud service',
          },
        },
      ],
    })
    expect(ollama('https://api.ollama.com', { OLLAMA_LOCAL: 'true' }).ollama).toBeUndefined()
  })

  it.each([
    ['http://127.0.0.1:11434/v1', 'OLLAMA_BASE_URL must be an origin without a path'],
    ['ftp://127.0.0.1', 'OLLAMA_BASE_URL must start with http:// or https://'],
    ['127.0.0.1:11434', 'OLLAMA_BASE_URL is not a URL'],
    ['http://me:hunter2@127.0.0.1:11434', 'OLLAMA_BASE_URL must not contain a user name or a password'],
    ['http://127.0.0.1:11434/?key=hunter2', 'OLLAMA_BASE_URL must not have a query or a fragment'],
  ])('[D15] %s is refused', (url, message) => {
    expect(ollama(url).ollama).toBeUndefined()
    expect(messages({ OLLAMA_BASE_URL: url })).toEqual([message])
  })

  it('a doubtful locality is refused, a wrong window only reported', () => {
    const url = 'http://127.0.0.1:11434'
    expect(ollama(url, { OLLAMA_LOCAL: 'yes' }).ollama).toBeUndefined()
    expect(ollama(url, { OLLAMA_MAX_CONTEXT_TOKENS: '65536' }).ollama?.maxContextTokens).toBe(65_536)
    for (const text of ['0', '-1', '32k', '1e5']) {
      const config = ollama(url, { OLLAMA_MAX_CONTEXT_TOKENS: text })
      expect(config.ollama?.maxContextTokens).toBe(32_768)
      expect(config.problems).toHaveLength(1)
    }
  })
})

describe('Ollama’s allowed models and its cloud', () => {
  const url = 'http://127.0.0.1:11434'

  it('[EC 21] the models of the daemon may be limited to exact names', () => {
    const allowed = (OLLAMA_ALLOWED_MODELS: string) =>
      parseProviderConfig({ OLLAMA_BASE_URL: url, OLLAMA_ALLOWED_MODELS }).ollama?.allowedModels
    expect(allowed(' qwen3:8b, llava:latest ,')).toEqual(['qwen3:8b', 'llava:latest'])
    expect(allowed(' , ')).toBeUndefined()
  })

  it('[EC 21] the cloud is used only when it is named, with a daemon or without', () => {
    const cloud = { OLLAMA_CLOUD_BASE_URL: 'https://ollama.com/' }
    expect(parseProviderConfig({ OLLAMA_BASE_URL: url }).ollamaCloud).toBeUndefined()
    expect(parseProviderConfig(cloud)).toMatchObject({
      ollamaCloud: { baseUrl: 'https://ollama.com' },
      problems: [],
    })
    const both = parseProviderConfig({ OLLAMA_BASE_URL: url, ...cloud })
    expect([both.ollama?.local, both.ollamaCloud?.baseUrl]).toEqual([true, 'https://ollama.com'])
  })

  it('[D15] a bad address of the cloud is reported and leaves the daemon alone', () => {
    const config = parseProviderConfig({ OLLAMA_BASE_URL: url, OLLAMA_CLOUD_BASE_URL: 'https://o.test/api' })
    expect(config.ollama?.baseUrl).toBe(url)
    expect(config.ollamaCloud).toBeUndefined()
    expect(config.problems.map(({ failure }) => failure.message)).toEqual([
      'OLLAMA_CLOUD_BASE_URL must be an origin without a path',
    ])
  })
})

describe('the built-in cloud providers', () => {
  it('[D15] take other addresses: origins, and for OpenAI one with its version path', () => {
    const { clouds, problems } = parseProviderConfig({
      ANTHROPIC_BASE_URL: 'http://127.0.0.1:9001/',
      GEMINI_BASE_URL: 'https://gemini.test',
      OPENAI_BASE_URL: 'https://openai.test/proxy/v1/',
    })
    expect(clouds.map(({ baseUrl }) => baseUrl)).toEqual([
      'http://127.0.0.1:9001',
      'https://gemini.test',
      'https://openai.test/proxy/v1',
    ])
    expect(problems).toEqual([])
  })

  it.each([
    ['ANTHROPIC_BASE_URL', 'https://a.test/v1', 'anthropic', 'must be an origin without a path'],
    ['GEMINI_BASE_URL', 'https://user:pw@g.test', 'gemini', 'must not contain a user name or a password'],
    ['OPENAI_BASE_URL', 'https://o.test', 'openai', 'must end in its version path, such as /v1'],
  ])('[D15] a bad %s makes that provider unusable and no other', async (name, value, id, why) => {
    const config = parseProviderConfig({ [name]: value })
    expect(config.problems).toMatchObject([{ provider: id, failure: { message: `${name} ${why}` } }])
    expect(config.clouds).toEqual(CLOUD_ADDRESSES.filter((cloud) => cloud.id !== id))
    const providers = makeProviders(config)
    const expected = CLOUD_ADDRESSES.find((cloud) => cloud.id === id)
    expect(providers.get(id)?.descriptor).toEqual({ id, display_name: expected?.displayName, local: false })
    expect(await providers.get(id)?.listModels(makeContext().context)).toMatchObject({
      error: { category: 'invalid_configuration' },
    })
  })

  it('[D14] a loopback address does not make one local', () => {
    const providers = makeProviders(parseProviderConfig({ OPENAI_BASE_URL: 'http://127.0.0.1:9001/v1' }))
    expect(providers.get('openai')?.descriptor.local).toBe(false)
  })
})

describe('MODEL_FACTS', () => {
  const factsOf = (entries: unknown, rest = {}) =>
    parseProviderConfig({ ...rest, MODEL_FACTS: JSON.stringify(entries) })

  it('[EC 21] speaks of exact names and of beginnings, of any provider', () => {
    const config = factsOf(
      [
        { model: 'OpenAI/gpt-next*', max_context_tokens: 1000 },
        { model: 'openai/gpt-next-mini', input_cost_per_million_tokens: '0.5' },
        { model: 'ollama/org/model:1b', max_output_tokens: 100 },
        { model: 'ollama/*', max_context_tokens: 500 },
        { model: 'openai-compat:lab/x', capabilities: { images: true } },
      ],
      instances(lab),
    )
    expect(config.problems).toEqual([])
    expect(Object.fromEntries(config.facts)).toEqual({
      openai: [
        { match: ['gpt-next*'], facts: { max_context_tokens: 1000 } },
        { match: ['gpt-next-mini'], facts: { input_cost_per_million_tokens: '0.5' } },
      ],
      ollama: [
        { match: ['org/model:1b'], facts: { max_output_tokens: 100 } },
        { match: ['*'], facts: { max_context_tokens: 500 } },
      ],
      'openai-compat:lab': [{ match: ['x'], facts: { capabilities: { images: true } } }],
    })
  })

  it('a bad entry is reported without its values, and takes nothing else down', () => {
    const config = factsOf([
      { model: 'openai/good', max_context_tokens: 1000 },
      { model: 'openai/a', max_context_tokens: 'hunter2' },
      { model: 'openai/b', input_price: 'hunter2' },
      { model: 'nobody/c' },
      { model: 'openai/d*e' },
      { model: 'openai/f', input_cost_per_million_tokens: 0 },
      { model: 'openai-compat:gone/g' },
      'hunter2',
    ])
    expect(config.facts.get('openai')).toEqual([{ match: ['good'], facts: { max_context_tokens: 1000 } }])
    const found = config.problems.map(({ provider, failure }) => [provider, failure.message])
    expect(found).toEqual([
      [undefined, 'MODEL_FACTS[1].max_context_tokens: Invalid input: expected number, received string'],
      [undefined, 'MODEL_FACTS[2]: Unrecognized key: "input_price"'],
      [undefined, 'MODEL_FACTS[3].model must be provider/name or provider/beginning*'],
      [undefined, 'MODEL_FACTS[4].model may have one * only, at its end'],
      [
        undefined,
        'MODEL_FACTS[5].input_cost_per_million_tokens: Invalid input: expected string, received number',
      ],
      [undefined, 'MODEL_FACTS[7]: Invalid input: expected object, received string'],
      [undefined, 'MODEL_FACTS speaks of gone, which is no instance in PROVIDERS'],
    ])
    expect(config.clouds).toEqual(CLOUD_ADDRESSES)
  })

  it.each(['{', '{"model":"openai/x"}', 'null'])('MODEL_FACTS = %s is reported as a whole', (MODEL_FACTS) => {
    expect(messages({ MODEL_FACTS })).toEqual(['MODEL_FACTS must be a JSON list of facts about models'])
  })
})

describe('OpenAI-compatible instances', () => {
  it('[EC 21] fill in the defaults of a declared model', () => {
    const { instances: parsed, problems } = parseProviderConfig(instances({ ...lab, models: [model] }))
    expect(problems).toEqual([])
    expect(parsed).toEqual([
      {
        id: 'openai-compat:lab',
        displayName: 'lab',
        baseUrl: 'https://models.example/v1',
        local: false,
        auth: 'none',
        models: [
          {
            provider: 'openai-compat:lab',
            model: 'lab-7b',
            display_name: null,
            local: false,
            auth: 'none',
            capabilities: {
              streaming: true,
              tools: true,
              json_output: true,
              system_prompt: true,
              images: false,
              reasoning: false,
              memory: true,
            },
            max_context_tokens: 16_000,
            max_output_tokens: null,
            default_parameters: {},
          },
        ],
      },
    ])
  })

  it('[D15] take every declared fact, and `name` for `model`', () => {
    const declared = {
      name: 'org/lab-70b',
      display_name: 'Lab 70B',
      local: true,
      auth: 'optional_api_key',
      capabilities: { tools: false, reasoning: true },
      max_context_tokens: 128_000,
      max_output_tokens: 8_000,
      input_cost_per_million_tokens: '0.15',
      output_cost_per_million_tokens: '0.60',
      cached_input_cost_per_million_tokens: '0.03',
      cache_write_cost_per_million_tokens: '0.20',
      prices_as_of: '2026-11-01',
      default_parameters: { temperature: 0, top_k: 20 },
    }
    const entry = {
      ...lab,
      base_url: 'http://10.0.0.4:8000/v1/',
      local: true,
      display_name: 'Lab',
      models: [declared],
    }
    expect(parseProviderConfig(instances(entry)).instances).toMatchObject([
      {
        displayName: 'Lab',
        baseUrl: 'http://10.0.0.4:8000/v1',
        local: true,
        models: [
          {
            model: 'org/lab-70b',
            display_name: 'Lab 70B',
            local: true,
            auth: 'optional_api_key',
            capabilities: { tools: false, reasoning: true, streaming: true, memory: true },
            max_output_tokens: 8_000,
            input_cost_per_million_tokens: '0.15',
            output_cost_per_million_tokens: '0.60',
            cached_input_cost_per_million_tokens: '0.03',
            cache_write_cost_per_million_tokens: '0.20',
            prices_as_of: '2026-11-01',
            default_parameters: { temperature: 0, top_k: 20 },
          },
        ],
      },
    ])
  })

  it('without models are to be asked; the auth of the instance then holds for what they serve', () => {
    const [instance] = parseProviderConfig(instances({ ...lab, auth: 'api_key' })).instances
    expect(instance).toMatchObject({ auth: 'api_key' })
    expect(instance).not.toHaveProperty('models')
  })

  it('a bad entry is reported and takes the others not down', () => {
    const config = parseProviderConfig(
      instances(
        { ...lab, name: 'one' },
        { ...lab, name: 'Two' },
        { ...lab, name: 'openai' },
        { ...lab, name: 'three', base_url: 'https://models.example' },
        'four',
        { ...lab, name: 'five', models: [{ ...model, model: 'good' }, { model: 'bad' }] },
        { ...lab, name: 'six', modles: [] },
      ),
    )
    expect(
      config.instances.map(({ id, models }) => [id, models?.map((described) => described.model)]),
    ).toEqual([
      ['openai-compat:one', undefined],
      ['openai-compat:five', ['good']],
    ])
    expect(config.problems.map(({ provider, failure }) => [provider, failure.message])).toEqual([
      [undefined, 'PROVIDERS[1].name must be made of a-z, 0-9, _ and -'],
      [undefined, 'PROVIDERS[2].name: openai is a built-in provider'],
      ['openai-compat:three', 'PROVIDERS[3] (three).base_url must end in its version path, such as /v1'],
      [undefined, 'PROVIDERS[4].name must be made of a-z, 0-9, _ and -'],
      [
        'openai-compat:five',
        'PROVIDERS[5] (five).models[1].max_context_tokens: Invalid input: expected number, received undefined',
      ],
      ['openai-compat:six', 'PROVIDERS[6] (six): Unrecognized key: "modles"'],
    ])
    expect(new Set(config.problems.map(({ failure }) => failure.code))).toEqual(
      new Set(['invalid_provider_configuration']),
    )
  })

  it.each(['{', '{"name":"lab"}', '"lab"', 'null'])('PROVIDERS = %s is reported as a whole', (PROVIDERS) => {
    expect(messages({ PROVIDERS })).toEqual(['PROVIDERS must be a JSON list of OpenAI-compatible instances'])
  })

  it('[EC 21] instance and model disagreeing on locality make the instance unusable', () => {
    for (const local of [true, false]) {
      const entry = { ...lab, local, models: [model, { ...model, model: 'other', local: !local }] }
      const config = parseProviderConfig(instances(entry))
      expect(config.instances).toEqual([])
      expect(config.problems).toHaveLength(1)
    }
  })

  it('an instance whose declared models are all unusable is not asked for others instead', () => {
    expect(parseProviderConfig(instances({ ...lab, models: [{ model: 'bad' }] })).instances).toEqual([])
    expect(parseProviderConfig(instances({ ...lab, models: [] })).instances).toEqual([])
  })

  it.each([
    ['money as a number', { input_cost_per_million_tokens: 0.15 }],
    ['money with an exponent', { output_cost_per_million_tokens: '1e-3' }],
    ['a window of zero', { max_context_tokens: 0 }],
    ['an auth that does not exist', { auth: 'oauth' }],
    ['a misspelt capability', { capabilities: { tool: true } }],
    ['a parameter that is ours', { default_parameters: { stream: false } }],
    ['two names', { name: 'other' }],
  ])('a model with %s is refused', (_what, wrong) => {
    const config = parseProviderConfig(
      instances({ ...lab, models: [model, { ...model, model: 'other-7b', ...wrong }] }),
    )
    expect(config.instances[0]?.models).toHaveLength(1)
    expect(config.problems).toHaveLength(1)
  })

  it('a model that is declared twice keeps its first declaration', () => {
    const twice = { ...lab, models: [model, { ...model, max_context_tokens: 1 }] }
    const config = parseProviderConfig(instances(twice))
    expect(config.instances[0]?.models?.map(({ max_context_tokens }) => max_context_tokens)).toEqual([16_000])
    expect(config.problems).toHaveLength(1)
  })

  it.each([
    ['https://models.example/v1/chat/completions', false],
    ['https://models.example/', false],
    ['https://user:pw@models.example/v1', false],
    ['file:///v1', false],
    ['https://models.example/v1?key=1', false],
    ['https://models.example/api/paas/v4', true],
    ['https://models.example/v1beta/openai/', true],
  ])('[D15] %s as a base URL: %s', (base_url, usable) => {
    expect(parseProviderConfig(instances({ ...lab, base_url })).instances).toHaveLength(usable ? 1 : 0)
  })
})

describe('keys of the deployment', () => {
  const two = instances({ ...lab, name: 'lab-one' }, { ...lab, name: 'two' })

  it('[D15] belong to the instance of their name', () => {
    const config = parseProviderConfig({
      ...two,
      PROVIDER_LAB_ONE_API_KEY: ' key-1 ',
      PROVIDER_TWO_API_KEY: '',
      PROVIDER_API_KEY: 'x',
    })
    expect(config.secrets).toEqual(new Map([['openai-compat:lab-one', 'key-1']]))
    expect(config.problems).toEqual([])
  })

  it('[D15] of built-in providers have names of their own; Ollama’s is the key of its cloud', () => {
    const keys = {
      ANTHROPIC_API_KEY: ' a ',
      GEMINI_API_KEY: 'g',
      OPENAI_API_KEY: 'o',
      OLLAMA_API_KEY: 'l',
    }
    const config = parseProviderConfig({ ...keys, OLLAMA_CLOUD_BASE_URL: 'https://ollama.com' })
    expect(Object.fromEntries(config.secrets)).toEqual({
      anthropic: 'a',
      gemini: 'g',
      openai: 'o',
      ollama: 'l',
    })
    expect(config.problems).toEqual([])
    const daemon = parseProviderConfig({ ...keys, OLLAMA_BASE_URL: 'http://127.0.0.1:11434' })
    expect([...daemon.secrets.keys()]).toEqual(['anthropic', 'gemini', 'openai'])
    expect(daemon.problems.map(({ failure }) => failure.message)).toEqual([
      'OLLAMA_API_KEY is the key of Ollama’s cloud, and OLLAMA_CLOUD_BASE_URL is not set',
    ])
  })

  it('a built-in key that cannot stand in a header is reported, and the provider stays', () => {
    const config = parseProviderConfig({ ANTHROPIC_API_KEY: 'hunter2 x' })
    expect(config.secrets.size).toBe(0)
    expect(config.clouds).toEqual(CLOUD_ADDRESSES)
    expect(config.problems).toMatchObject([
      {
        provider: 'anthropic',
        failure: { message: 'ANTHROPIC_API_KEY is not a key: it cannot stand in a header' },
      },
    ])
  })

  it('never serve two instances: names that differ only in - and _ are refused', () => {
    const config = parseProviderConfig({
      ...instances({ ...lab, name: 'a-b' }, { ...lab, name: 'a_b' }),
      PROVIDER_A_B_API_KEY: 'key-1',
    })
    expect(config.instances.map(({ id }) => id)).toEqual(['openai-compat:a-b'])
    expect([...config.secrets.keys()]).toEqual(['openai-compat:a-b'])
    expect(config.problems).toHaveLength(1)
  })

  it('a key of nobody, and one that cannot stand in a header, are reported without their value', () => {
    const found = messages({ ...two, PROVIDER_TOW_API_KEY: 'hunter2', PROVIDER_TWO_API_KEY: 'hunter2\nx' })
    expect(found).toEqual([
      'PROVIDER_TOW_API_KEY belongs to no instance in PROVIDERS',
      'PROVIDER_TWO_API_KEY is not a key: it cannot stand in a header',
    ])
    expect(found.join()).not.toContain('hunter2')
  })
})

describe('the registry', () => {
  it('offers what is configured; a broken provider answers with its problem and reaches nothing', async () => {
    const providers = makeProviders(
      parseProviderConfig({
        OLLAMA_BASE_URL: 'http://127.0.0.1:11434',
        ...instances(lab, { ...lab, name: 'broken', base_url: 'nowhere' }),
      }),
    )
    expect([...providers.values()].map(({ descriptor }) => descriptor)).toEqual([
      { id: 'anthropic', display_name: 'Anthropic', local: false },
      { id: 'gemini', display_name: 'Gemini', local: false },
      { id: 'openai', display_name: 'OpenAI', local: false },
      { id: 'ollama', display_name: 'Ollama', local: true },
      { id: 'openai-compat:lab', display_name: 'lab', local: false },
      { id: 'openai-compat:broken', display_name: 'openai-compat:broken', local: false },
    ])
    const broken = providers.get('openai-compat:broken')
    const { context, routes } = makeContext()
    const failure = {
      category: 'invalid_configuration',
      message: 'PROVIDERS[1] (broken).base_url is not a URL',
    }
    expect(await broken?.listModels(context)).toEqual({ ok: false, error: failure })
    expect(broken && (await collect(broken, makeRequest(), context))).toEqual([{ type: 'failed', failure }])
    expect(routes).toEqual([])
  })
})
