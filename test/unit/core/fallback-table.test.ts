/**
 * A model fails: does the next one of the route get the call? Every kind of failure, at every moment, in every binding
 * of the turn, for every kind of next model. The oracle is four plain rules; the answer comes from a whole served run.
 */

import { describe, expect, test } from 'vitest'
import { sessionUsage } from '../../../src/core/usage.ts'
import type { ErrorCode } from '../../../src/protocol/execution/errors.ts'
import type { ProviderErrorCategory } from '../../../src/protocol/execution/models.ts'
import type { ModelEvent, ReportedUsage } from '../../../src/providers/provider.ts'
import { makeFile, makeModel, makeRequest, type RequestParts } from '../../support/core/builders.ts'
import { type ScriptedModel, type Served, serveRun } from '../../support/core/served-run.ts'

/** What each failure is called in the answer (EC 3). */
const CODES: Record<ProviderErrorCategory, ErrorCode> = {
  authentication: 'provider_authentication',
  context_length: 'context_length_exceeded',
  invalid_configuration: 'invalid_provider_configuration',
  invalid_credentials: 'invalid_provider_credentials',
  invalid_request: 'invalid_request',
  missing_credentials: 'missing_provider_credentials',
  model_not_found: 'model_not_found',
  provider_unavailable: 'provider_unavailable',
  rate_limit: 'rate_limited',
  storage: 'storage_error',
  timeout: 'request_timeout',
  unknown: 'provider_error',
  unsupported_capability: 'provider_unsupported_capability',
}
const CATEGORIES = Object.keys(CODES) as ProviderErrorCategory[]

/** The failures after which another model may help (EC 3). */
const MAY_FALL_BACK: ProviderErrorCategory[] = ['provider_unavailable', 'rate_limit', 'timeout', 'unknown']

const MOMENTS = [
  'while its models are listed',
  'before its first token',
  'behind an empty delta',
  'after its first text',
  'after its first reasoning',
] as const
type Moment = (typeof MOMENTS)[number]

const BINDINGS = ['nothing', 'required content', 'preference', 'no network', 'rule', 'remote denied'] as const
type Binding = (typeof BINDINGS)[number]

const KEYS = ['needs a key and has it', 'needs a key and has none', 'may have a key', 'needs no key'] as const
type Key = (typeof KEYS)[number]

const USAGES = ['tells its usage', 'tells no usage'] as const

type Case = {
  category: ProviderErrorCategory
  moment: Moment
  bound: Binding
  next: 'local' | 'remote'
  key: Key
  usage: (typeof USAGES)[number]
}

type Expected = { answers: 'next' } | { fails: ErrorCode; firstWasAsked: boolean }

/** The rules, in words as plain as code allows. */
function expected({ category, moment, bound, next, key }: Case): Expected {
  const nextMayServe = (bound === 'nothing' || next === 'local') && key !== 'needs a key and has none'
  // Whoever cannot even be asked for its models was never called: any failure then only means "not this one".
  if (moment === 'while its models are listed') {
    if (nextMayServe) return { answers: 'next' }
    return { fails: bound === 'nothing' ? 'fallback_exhausted' : 'no_route', firstWasAsked: false }
  }
  // What was said cannot be taken back.
  const spoke = moment === 'after its first text' || moment === 'after its first reasoning'
  if (!spoke && MAY_FALL_BACK.includes(category) && nextMayServe) return { answers: 'next' }
  return { fails: CODES[category], firstWasAsked: true }
}

const FIRST = 'openai-compat:first'
const NEXT = 'openai-compat:next'
const FIRST_USAGE: ReportedUsage = { inputTokens: 1_000, outputTokens: 10 }
const NEXT_USAGE: ReportedUsage = { inputTokens: 2_000, outputTokens: 20 }
/** By the rates of each model below, in USD. */
const FIRST_COST = '0.00102'
const NEXT_COST = '0.0061'

const BOUND_BY: Record<Binding, RequestParts> = {
  nothing: {},
  'required content': {
    privacy: { restricted_paths: ['secrets/**'] },
    attachments: { files: [makeFile('secrets/a', 's', true)] },
  },
  preference: { preferences: { local_only: true } },
  'no network': { preferences: { no_network: true } },
  rule: {},
  'remote denied': { privacy: { remote: { mode: 'deny' } } },
}

const AUTH = {
  'needs a key and has it': 'api_key',
  'needs a key and has none': 'api_key',
  'may have a key': 'optional_api_key',
  'needs no key': 'none',
} as const

const spokenBefore: Record<Moment, ModelEvent[]> = {
  'while its models are listed': [],
  'before its first token': [],
  'behind an empty delta': [{ type: 'text_delta', delta: '' }],
  'after its first text': [{ type: 'text_delta', delta: 'one' }],
  'after its first reasoning': [{ type: 'reasoning_delta', delta: 'hm' }],
}

function serve({ category, moment, bound, next, key, usage }: Case): Promise<Served> {
  const failure = { category, message: 'it failed' }
  const listing = moment === 'while its models are listed'
  const first: ScriptedModel = {
    // A remote first choice of a bound turn would not be called at all.
    model: makeModel(`${FIRST}/a`, {
      local: bound !== 'nothing',
      auth: 'none',
      input_cost_per_million_tokens: '1',
      output_cost_per_million_tokens: '2',
    }),
    ...(listing ? { listingFails: failure } : {}),
    says: [
      ...spokenBefore[moment],
      ...(usage === 'tells its usage' ? [{ type: 'usage' as const, usage: FIRST_USAGE }] : []),
      { type: 'failed', failure },
    ],
  }
  const second: ScriptedModel = {
    model: makeModel(`${NEXT}/b`, {
      local: next === 'local',
      auth: AUTH[key],
      input_cost_per_million_tokens: '3',
      output_cost_per_million_tokens: '5',
    }),
    says: [
      { type: 'text_delta', delta: 'from the next' },
      { type: 'usage', usage: NEXT_USAGE },
      { type: 'finished', reason: 'stop' },
    ],
  }
  const route = { model: `${FIRST}/a`, fallbacks: [`${NEXT}/b`] }
  const request = makeRequest({
    text: 'hello',
    defaultRoute: route,
    rules: bound === 'rule' ? [{ name: 'bound', local_only: true, ...route }] : [],
    ...BOUND_BY[bound],
  })
  return serveRun(request, [first, second], key === 'needs a key and has it' ? { [NEXT]: 'key-next' } : {})
}

/** What a whole run shows when it came to this. */
function check(one: Case, run: Served): void {
  const { moment, bound, next, key, usage } = one
  const listing = moment === 'while its models are listed'
  const want = expected(one)
  const told = usage === 'tells its usage'
  const firstCost = {
    type: 'cost',
    provider: FIRST,
    model: 'a',
    input_tokens: 1_000,
    output_tokens: 10,
    cost: FIRST_COST,
  }
  const nextCost = {
    type: 'cost',
    provider: NEXT,
    model: 'b',
    input_tokens: 2_000,
    output_tokens: 20,
    cost: NEXT_COST,
  }
  const firstCall = told
    ? { provider: FIRST, model: 'a', status: 'failed', usage: FIRST_USAGE, cost: FIRST_COST }
    : { provider: FIRST, model: 'a', status: 'failed', usage: null }
  const nextCall = { provider: NEXT, model: 'b', status: 'answered', usage: NEXT_USAGE, cost: NEXT_COST }
  const costs = run.traces.filter(({ type }) => type === 'cost')
  const routes = run.traces.flatMap((trace) =>
    trace.type === 'routing_decision' ? [[trace.provider, trace.model, trace.fallback_used]] : [],
  )

  if (bound !== 'nothing' && next === 'remote') {
    expect(run.listed, 'a bound turn asks no remote provider what it offers').not.toContain(NEXT)
    expect(run.invoked).not.toContain(NEXT)
  }

  if ('answers' in want) {
    const called = listing ? [NEXT] : [FIRST, NEXT]
    expect(run.invoked).toEqual(called)
    expect(run.keys[NEXT]).toBe(key === 'needs a key and has it' ? 'key-next' : undefined)
    expect(run.outcome).toMatchObject({
      status: 'completed',
      data: {
        message: { content: 'from the next', provider: NEXT, model: 'b' },
        routing: { provider: NEXT, model: 'b', fallback_used: true },
      },
    })
    expect(run.streamed).toBe('from the next')
    expect(run.messages).toMatchObject([
      { text: 'from the next', provider: NEXT, model: 'b', interrupted: false },
    ])
    expect(run.calls).toMatchObject(listing ? [nextCall] : [firstCall, nextCall])
    expect(costs).toEqual(!listing && told ? [firstCost, nextCost] : [nextCost])
    expect(routes).toEqual(
      listing
        ? [[NEXT, 'b', true]]
        : [
            [FIRST, 'a', false],
            [NEXT, 'b', true],
          ],
    )
    // Each model is priced with its own rates; what is not known is left out.
    const { by_model } = sessionUsage(run.calls)
    expect(by_model.map(({ provider, estimated_cost }) => [provider, estimated_cost])).toEqual(
      called.map((provider) => [provider, provider === NEXT ? NEXT_COST : told ? FIRST_COST : undefined]),
    )
    return
  }

  expect(run.outcome).toMatchObject({ status: 'error', data: { error: { code: want.fails } } })
  expect(run.invoked).toEqual(want.firstWasAsked ? [FIRST] : [])
  expect(run.calls).toMatchObject(want.firstWasAsked ? [firstCall] : [])
  expect(costs).toEqual(want.firstWasAsked && told ? [firstCost] : [])
  expect(run.streamed).toBe(
    moment === 'after its first text' ? 'one' : moment === 'after its first reasoning' ? 'hm' : '',
  )
  expect(run.messages).toMatchObject(
    moment === 'after its first text'
      ? [{ text: 'one', provider: FIRST, model: 'a', interrupted: true }]
      : [],
  )
}

const situations = BINDINGS.flatMap((bound) =>
  (['local', 'remote'] as const).flatMap((next) =>
    KEYS.flatMap((key) => USAGES.map((usage) => ({ bound, next, key, usage }))),
  ),
)

describe.each(MOMENTS)('[EC 3][EC 8.6][D24] a model fails %s', (moment) => {
  test.each(CATEGORIES)('with %s', async (category) => {
    for (const situation of situations) {
      const one = { category, moment, ...situation }
      const run = await serve(one)
      try {
        check(one, run)
      } catch (error) {
        const { bound, next, key, usage } = situation
        throw new Error(`bound by ${bound}; the next is ${next}, ${key}; the first ${usage}`, {
          cause: error,
        })
      }
    }
  })
})

describe('along the rest of the route', () => {
  const down: ModelEvent = { type: 'failed', failure: { category: 'provider_unavailable', message: 'down' } }
  const answer: ModelEvent[] = [
    { type: 'text_delta', delta: 'at last' },
    { type: 'finished', reason: 'stop' },
  ]
  const scripted = (name: string, says: ModelEvent[], local = true): ScriptedModel => ({
    model: makeModel(`openai-compat:${name}/m`, { local, auth: 'none' }),
    says,
  })
  const along = (models: ScriptedModel[], parts: RequestParts = {}) => {
    const [model = '', ...fallbacks] = models.map(({ model: { provider, model } }) => `${provider}/${model}`)
    return serveRun(makeRequest({ defaultRoute: { model, fallbacks }, ...parts }), models)
  }
  const names = (providers: string[]) => providers.map((id) => id.replace('openai-compat:', ''))

  test('[EC 8.6] the call goes from model to model until one answers, and each is accounted for', async () => {
    const run = await along([
      scripted('a', [{ type: 'usage', usage: { inputTokens: 1, outputTokens: 0 } }, down]),
      scripted('b', [down]),
      scripted('c', answer),
      scripted('d', answer),
    ])
    expect(names(run.invoked)).toEqual(['a', 'b', 'c'])
    // Nobody is asked what it offers before the call gets there (D12).
    expect(names(run.listed)).toEqual(['a', 'b', 'c'])
    expect(run.calls.map(({ provider, status }) => [...names([provider]), status])).toEqual([
      ['a', 'failed'],
      ['b', 'failed'],
      ['c', 'answered'],
    ])
    expect(run.outcome).toMatchObject({
      status: 'completed',
      data: { routing: { provider: 'openai-compat:c', fallback_used: true } },
    })
    expect(run.traces.flatMap((trace) => (trace.type === 'cost' ? names([trace.provider]) : []))).toEqual([
      'a',
    ])
  })

  test('[EC 26.4][U37] a bound turn passes over every remote model, wherever it stands', async () => {
    const models = [
      scripted('r1', answer, false),
      scripted('l1', [down]),
      scripted('r2', answer, false),
      scripted('l2', answer),
    ]
    const run = await along(models, { preferences: { local_only: true } })
    expect(names(run.invoked)).toEqual(['l1', 'l2'])
    expect(names(run.listed)).toEqual(['l1', 'l2'])
    const free = await along(models)
    expect(names(free.invoked)).toEqual(['r1'])
  })

  test('[EC 8.6] when all have failed, what the last one failed with is told', async () => {
    const limited: ModelEvent = { type: 'failed', failure: { category: 'rate_limit', message: 'slow down' } }
    const run = await along([scripted('a', [down]), scripted('b', [limited])])
    expect(run.outcome).toMatchObject({
      status: 'error',
      data: { error: { code: 'rate_limited', details: { provider: 'openai-compat:b' } } },
    })
    expect(run.calls.map(({ status }) => status)).toEqual(['failed', 'failed'])
  })

  test('[EC 8.3] an explicit model has no fallback', async () => {
    const models = [scripted('a', [down]), scripted('b', answer)]
    const run = await along(models, { explicitModel: 'openai-compat:a/m' })
    expect(names(run.invoked)).toEqual(['a'])
    expect(run.outcome).toMatchObject({ status: 'error', data: { error: { code: 'provider_unavailable' } } })
  })
})

test('the table holds both answers, and every error that can end it', () => {
  const all = MOMENTS.flatMap((moment) =>
    CATEGORIES.flatMap((category) =>
      situations.map((situation) => expected({ category, moment, ...situation })),
    ),
  )
  expect(all).toHaveLength(6240)
  expect(all.filter((one) => 'answers' in one)).not.toHaveLength(0)
  expect(new Set(all.flatMap((one) => ('fails' in one ? [one.fails] : [])))).toEqual(
    new Set([...Object.values(CODES), 'fallback_exhausted', 'no_route']),
  )
})
