import { describe, expect, test } from 'vitest'
import { ContinueRequest } from '../../../src/protocol/execution/continue.ts'
import { ExecuteRequest } from '../../../src/protocol/execution/execute.ts'
import { issuesOf, MAX_ISSUES, misfit } from '../../../src/worker/body-issues.ts'
import { loosenedPermissions, unknownCapabilities } from '../../../src/worker/policy-refusals.ts'
import { makeRequest, type RequestParts } from '../../support/core/builders.ts'

const RULE = { name: 'r', model: 'ollama/m', fallbacks: ['ollama/n'] }

/** A request as JSON, with values put in their places. */
function bodyWith(places: Record<string, unknown>, parts: RequestParts = {}): unknown {
  const request: unknown = JSON.parse(
    JSON.stringify(makeRequest({ rules: [RULE], classification: { rules: [{ intent: 'edit' }] }, ...parts })),
  )
  for (const [path, value] of Object.entries(places)) {
    const keys = path.split('.')
    const last = keys.pop() ?? ''
    const parent = keys.reduce<unknown>((at, key) => Reflect.get(Object(at), key), request)
    Reflect.set(Object(parent), last, value)
  }
  return request
}

/** What a body is told: place, code, what was meant. */
function told(body: unknown, schema: typeof ExecuteRequest | typeof ContinueRequest = ExecuteRequest) {
  const { error } = schema.safeParse(body, { reportInput: true })
  return error ? issuesOf(error).map(({ path, code, suggestion }) => [path, code, suggestion]) : []
}

describe('[EC 3] each name that nothing bears is told with its place and what was meant', () => {
  test.each<[path: string, value: unknown, code: string, suggestion: string | undefined]>([
    ['input.command', 'Plan', 'unknown_intent', 'plan'],
    ['policy.classification.default_intent', 'summarise', 'unknown_intent', 'summarize'],
    ['policy.classification.rules.0.intent', 'edits', 'unknown_intent', 'edit'],
    ['policy.routing.rules.0.effort', 'hihg', 'unknown_effort', 'high'],
    ['policy.routing.rules.0.effort', 'extreme', 'unknown_effort', undefined],
    ['policy.routing.rules.0.effort', 3, 'invalid_request', undefined],
    ['policy.routing.rules.0.fallbacks.0', 'antropic/x', 'unknown_provider', 'anthropic/x'],
    ['policy.routing.rules.0.model', 'mistral/large', 'unknown_provider', undefined],
    ['policy.routing.default.model', 'ollama:qwen3', 'invalid_model_reference', 'ollama/qwen3'],
    ['input.explicit_model', 'openai-compat:my lab/m', 'invalid_provider_name', 'openai-compat:my-lab/m'],
    ['input.explicit_model', '/m', 'invalid_model_reference', undefined],
    ['policy.tools.permissions.shell', 'alow', 'invalid_request', 'allow'],
    ['policy.privacy.remote.mode', 'denny', 'invalid_request', 'deny'],
    ['local_preferences.no_netwrk', true, 'invalid_request', 'no_network'],
    ['policy.routing.rules.0.name', 7, 'invalid_request', undefined],
  ])('%s = %j', (path, value, code, suggestion) => {
    const parts: RequestParts = { privacy: { remote: { mode: 'ask' } } }
    expect(told(bodyWith({ [path]: value }, parts))).toEqual([[path, code, suggestion]])
  })

  test('the kind of a continuation, too', () => {
    expect(told({ type: 'tool_result', data: {} }, ContinueRequest)).toEqual([
      ['type', 'invalid_request', 'tool_results'],
    ])
  })

  test('the sentence about a model reference says what a good one looks like', () => {
    const { error } = ExecuteRequest.safeParse(bodyWith({ 'input.explicit_model': 'gpt' }), {
      reportInput: true,
    })
    expect(error && issuesOf(error)).toMatchObject([{ message: expect.stringContaining('ollama/qwen3:8b') }])
  })
})

describe('[EC 8.4] capabilities that nobody knows', () => {
  const requiring = (...required: unknown[]): unknown =>
    bodyWith({ 'policy.routing.rules': required.map((one) => ({ ...RULE, requires_capabilities: one })) })

  test('are refused where they are required, each with its place', () => {
    const issues = unknownCapabilities(requiring({ tools: true }, { image: true, telepathy: true }))
    expect(issues).toEqual([
      {
        code: 'missing_capability',
        path: 'policy.routing.rules.1.requires_capabilities.image',
        message: expect.stringContaining('streaming, tools, json_output'),
        suggestion: 'images',
        details: { capability: 'image' },
      },
      {
        code: 'missing_capability',
        path: 'policy.routing.rules.1.requires_capabilities.telepathy',
        message: expect.any(String),
        details: { capability: 'telepathy' },
      },
    ])
  })

  test.each([false, null, 'true', 1, { any: ['thing'] }])('[EC 1] are ignored when set to %j', (value) => {
    expect(unknownCapabilities(requiring({ tools: true, telepathy: value }))).toEqual([])
  })

  test.each([null, undefined, 'tools', 7, ['tools']])('are none in %j', (value) => {
    expect(unknownCapabilities(requiring(value))).toEqual([])
  })

  test.each([null, [], 'x', { policy: { routing: { rules: 'all' } } }, { policy: 3 }])(
    'a body of another shape (%j) has none',
    (body) => {
      expect(unknownCapabilities(body)).toEqual([])
      expect(loosenedPermissions(body)).toEqual([])
    },
  )
})

describe('[EC 8.4][EC 12.3] permissions that rules loosen', () => {
  const loosening = bodyWith(
    {
      'policy.routing.rules': [
        { ...RULE, required_permissions: { permissions: { shell: 'allow', git: 'deny' } } },
        {
          ...RULE,
          name: 'never wins',
          priority: 9999,
          required_permissions: { permissions: { git: 'allow' } },
        },
      ],
    },
    { permissions: { shell: 'ask', git: 'deny' } },
  )

  test('are told of every rule, whether or not it would win', () => {
    expect(loosenedPermissions(loosening)).toMatchObject([
      {
        path: 'policy.routing.rules.0.required_permissions.permissions.shell',
        suggestion: 'ask',
        details: { tool: 'shell', base: 'ask', requested: 'allow' },
      },
      {
        path: 'policy.routing.rules.1.required_permissions.permissions.git',
        suggestion: 'deny',
        details: { tool: 'git', base: 'deny', requested: 'allow' },
      },
    ])
  })

  test('are told of a body that does not fit otherwise, too', () => {
    const broken: unknown = JSON.parse(JSON.stringify(loosening).replace('"text":"hello"', '"text":7'))
    expect(told(broken)).toHaveLength(1)
    expect(loosenedPermissions(broken)).toHaveLength(2)
  })
})

describe('the refusal', () => {
  const issue = (code: 'unknown_effort' | 'permission_expansion', path: string) => ({
    code,
    path,
    message: 'no',
    suggestion: 'yes',
    details: { from: path },
  })

  test('[EC 3] has the code, the place, the suggestion and the details of the first issue, and tells all', () => {
    const failure = misfit(issue('unknown_effort', 'a.b'), [issue('permission_expansion', 'c')])
    expect(failure).toEqual({
      code: 'unknown_effort',
      message: 'the body does not fit: `a.b`: no; did you mean `yes`? (and 1 more)',
      details: {
        from: 'a.b',
        issues: [
          { path: 'a.b', message: 'no', suggestion: 'yes' },
          { path: 'c', message: 'no', suggestion: 'yes' },
        ],
      },
    })
  })

  test(`tells at most ${MAX_ISSUES} issues, and how many more there are`, () => {
    const others = (count: number) => Array.from({ length: count }, () => issue('unknown_effort', 'x'))
    const full = misfit(issue('unknown_effort', 'x'), others(MAX_ISSUES - 1)).details
    expect(full?.issues).toHaveLength(MAX_ISSUES)
    expect(full).not.toHaveProperty('more_issues')
    const over = misfit(issue('unknown_effort', 'x'), others(MAX_ISSUES + 6)).details
    expect(over?.issues).toHaveLength(MAX_ISSUES)
    expect(over?.more_issues).toBe(7)
  })
})
