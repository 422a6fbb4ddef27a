import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { saveCredentials } from '../../../src/cli/credentials.ts'
import { runCli } from '../../../src/cli/program.ts'
import { configHome } from '../../support/node/config-home.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import {
  json,
  refusal,
  type ScriptedRouter,
  startScriptedRouter,
} from '../../support/node/scripted-router.ts'

const PROVIDERS = '/api/v1/llm/providers'
const MODELS = '/api/v1/llm/models'

let router: ScriptedRouter
let io: ScriptedIo

beforeEach(async () => {
  router = await startScriptedRouter()
  io = scriptedIo()
  configHome()
  vi.stubEnv('SWITCHYARD_URL', router.url)
  const token = { value: 't0', expires_at: '2099-01-01T00:00:00.000Z' }
  saveCredentials(router.url, { user_id: 'u1', api_key: 'sk-stored', token })
  router.always('GET', '/api/v1/auth/me', json({ user_id: 'u1' }))
})
afterEach(async () => {
  expect(router.unexpected).toEqual([])
  await router.close()
})

const cli = (...argv: string[]) => runCli(argv, { makeIo: () => io })

const provider = (id: string, local = false) => ({ id, display_name: id, local })
const model = (fields: Record<string, unknown> = {}) => ({
  provider: 'anthropic',
  model: 'large',
  display_name: null,
  local: false,
  auth: 'api_key',
  capabilities: { streaming: true, tools: true, images: false },
  max_context_tokens: 200_000,
  max_output_tokens: null,
  default_parameters: {},
  ...fields,
})
const gap = (id: string, reason: string, message?: string) => ({
  provider: id,
  reason,
  ...(message === undefined ? {} : { message }),
})

/** A router that has these providers, and says this of their models. */
function says(providers: object[], models: object[], unavailable?: object[]): void {
  router.always('GET', PROVIDERS, json({ providers }))
  router.always('GET', MODELS, json({ models, ...(unavailable ? { unavailable } : {}) }))
}

/** The provider keys of every request, by the provider's part of the header's name. */
const sentKeys = () =>
  router.requests.map(({ path, headers }) => [
    path,
    Object.fromEntries(
      Object.entries(headers).flatMap(([name, value]) => {
        const segment = /^x-smista-provider-(.+)-api-key$/.exec(name)?.[1]
        return segment === undefined ? [] : [[segment, value]]
      }),
    ),
  ])
const keysAt = (path: string) => sentKeys().find(([at]) => at === path)?.[1]

describe('the table', () => {
  test('[U43] an unknown price is `?`, a price of nothing is 0, and each has its day', async () => {
    says(
      [provider('anthropic'), provider('ollama', true)],
      [
        model({
          input_cost_per_million_tokens: '2.50',
          output_cost_per_million_tokens: '15',
          prices_up_to_input_tokens: 200_000,
          prices_as_of: '2026-01-02',
        }),
        model({ model: 'new', capabilities: {}, max_context_tokens: 1_000_000 }),
        model({
          provider: 'ollama',
          model: 'qwen3:8b',
          local: true,
          input_cost_per_million_tokens: '0',
          output_cost_per_million_tokens: '0',
        }),
      ],
    )
    expect(await cli('models')).toBe(0)
    expect(io.stdout).toBe(
      [
        'MODEL            WHERE    WINDOW  IN $/M  OUT $/M  PRICES AS OF                 CAPABILITIES',
        'anthropic/large  remote   200000    2.50       15  2026-01-02, up to 200000 in  streaming tools',
        'anthropic/new    remote  1000000       ?        ?  ?',
        'ollama/qwen3:8b  local    200000       0        0  ?                            streaming tools',
        '',
      ].join('\n'),
    )
    expect(io.stderr).toBe('')
  })

  test('a name with control characters stays on its line', async () => {
    says([provider('ollama', true)], [model({ provider: 'ollama', model: 'a\n\u001b[2Jb' })])
    expect(await cli('models')).toBe(0)
    expect(io.stdout.split('\n')).toHaveLength(3)
    expect(io.stdout).toContain('ollama/a \\u{1b}[2Jb  remote')
  })

  test('a router without models says so', async () => {
    says([provider('ollama', true)], [])
    expect(await cli('models')).toBe(0)
    expect(io.stdout).toBe('')
    expect(io.stderr).toBe('no models\n')
  })

  test('as JSON the descriptors come as they are, and those that gave none beside them', async () => {
    const gaps = [gap('openai', 'timeout')]
    says([provider('anthropic'), provider('openai')], [model()], gaps)
    expect(await cli('models', '--json')).toBe(0)
    expect(JSON.parse(io.stdout)).toEqual({ models: [model()], unavailable: gaps })
    expect(io.stderr).toContain('unavailable: openai (timeout)\n')
  })
})

describe('the keys', () => {
  beforeEach(() => {
    vi.stubEnv('ANTHROPIC_API_KEY', 'k-common')
    vi.stubEnv('SWITCHYARD_PROVIDER_ANTHROPIC_API_KEY', 'k-ours')
    vi.stubEnv('OPENAI_API_KEY', 'k-openai')
    vi.stubEnv('SWITCHYARD_PROVIDER_MY_LAB_API_KEY', 'k-lab')
  })

  test('[EC 2.17] each goes with the listing, if the router has its provider, and with nothing else', async () => {
    says([provider('anthropic'), provider('openai-compat:my-lab'), provider('ollama', true)], [model()])
    expect(await cli('models')).toBe(0)
    expect(sentKeys()).toEqual([
      ['/api/v1/auth/me', {}],
      [PROVIDERS, {}],
      [MODELS, { anthropic: 'k-ours', 'my-lab': 'k-lab' }],
    ])
    expect(io.stdout + io.stderr).not.toContain('k-')
  })

  test('--provider sends one key and shows one provider', async () => {
    says(
      [provider('anthropic'), provider('openai')],
      [model(), model({ provider: 'openai' })],
      [gap('anthropic', 'rate_limit')],
    )
    expect(await cli('models', '--provider', 'OpenAI', '--json')).toBe(0)
    expect(keysAt(MODELS)).toEqual({ openai: 'k-openai' })
    expect(JSON.parse(io.stdout)).toEqual({ models: [model({ provider: 'openai' })], unavailable: [] })
    expect(io.stderr).toBe('')
  })

  test('--provider with a name that the router does not have sends no key and tells those that it has', async () => {
    says([provider('anthropic'), provider('openai')], [])
    expect(await cli('models', '--provider', 'lab')).toBe(1)
    expect(io.stderr).toBe('error: this router has no provider "lab"; those that it has: anthropic, openai\n')
    expect(router.count('GET', MODELS)).toBe(0)
  })

  test('--help names their variables', async () => {
    expect(await cli('models', '--help')).toBe(0)
    for (const name of ['ANTHROPIC', 'OPENAI', 'GEMINI', 'SWITCHYARD_PROVIDER_<NAME>'])
      expect(io.stdout).toContain(`${name}_API_KEY`)
  })
})

describe('what could not be listed', () => {
  test('is told below with the reason, and some of it is no failure', async () => {
    says(
      [provider('anthropic'), provider('openai')],
      [model()],
      [gap('openai', 'missing_credentials', 'no key\nwas \u001b[1mgiven')],
    )
    expect(await cli('models')).toBe(0)
    expect(io.stdout).toContain('anthropic/large')
    expect(io.stderr).toBe(
      'unavailable: openai: no key was \\u{1b}[1mgiven (missing_credentials)\n' +
        '  set OPENAI_API_KEY to your key of this provider\n',
    )
  })

  test('is exit 1 when it is everybody, as JSON, too', async () => {
    says(
      [provider('anthropic'), provider('openai')],
      [],
      [gap('anthropic', 'timeout'), gap('openai', 'timeout')],
    )
    expect(await cli('models')).toBe(1)
    expect(await cli('models', '--json')).toBe(1)
    expect(io.stderr).not.toContain('no models')
  })

  test('a provider that has no models is not one that could not be asked', async () => {
    says([provider('anthropic'), provider('ollama', true)], [], [gap('anthropic', 'missing_credentials')])
    expect(await cli('models')).toBe(0)
    expect(io.stderr).toContain('no models')
  })

  test.each([
    ['anthropic', 'ANTHROPIC_API_KEY'],
    ['openai', 'OPENAI_API_KEY'],
    ['gemini', 'GEMINI_API_KEY'],
    ['ollama', 'SWITCHYARD_PROVIDER_OLLAMA_API_KEY'],
    ['openai-compat:my-lab', 'SWITCHYARD_PROVIDER_MY_LAB_API_KEY'],
  ])('the variable that is named for %s is the one that is sent', async (id, variable) => {
    says([provider(id)], [], [gap(id, 'missing_credentials')])
    expect(await cli('models')).toBe(1)
    expect(io.stderr).toContain(`  set ${variable} to`)
    expect(keysAt(MODELS)).toEqual({})
    vi.stubEnv(variable, 'k-own')
    router.requests.length = 0
    await cli('models')
    expect(keysAt(MODELS)).toEqual({ [id.replace('openai-compat:', '')]: 'k-own' })
  })

  test('a refused key is looked for where it came from', async () => {
    says([provider('openai')], [], [gap('openai', 'invalid_credentials')])
    await cli('models')
    expect(io.stderr).toContain("the key is the router's own; with OPENAI_API_KEY yours is used instead")
    io.stderr = ''
    vi.stubEnv('OPENAI_API_KEY', 'k-1')
    vi.stubEnv('SWITCHYARD_PROVIDER_OPENAI_API_KEY', 'k-2')
    await cli('models')
    expect(io.stderr).toContain('check the key in SWITCHYARD_PROVIDER_OPENAI_API_KEY\n')
  })

  test('a local provider that does not answer may not be running; a remote one is asked again later', async () => {
    says(
      [provider('ollama', true), provider('gemini')],
      [model()],
      [
        gap('ollama', 'provider_unavailable'),
        gap('gemini', 'provider_unavailable'),
        { provider: 'gemini', reason: 'unknown', message: null },
      ],
    )
    await cli('models')
    expect(io.stderr).toBe(
      'unavailable: ollama (provider_unavailable)\n  is it running where the router looks for it?\n' +
        'unavailable: gemini (provider_unavailable)\n  try again later\n' +
        'unavailable: gemini (unknown)\n',
    )
  })

  test('a router that refuses is told with its code', async () => {
    router.script('GET', PROVIDERS, refusal(500, 'internal_error'))
    expect(await cli('models')).toBe(1)
    expect(io.stderr).toContain('scripted internal_error (internal_error)')
  })
})
