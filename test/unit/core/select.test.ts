import { describe, expect, test } from 'vitest'
import { chooseModel, type Demands, type Lookup, promptBudget } from '../../../src/core/select.ts'
import { failure } from '../../../src/protocol/execution/errors.ts'
import { LOCAL, makeCatalogue, makeModel, REMOTE } from '../../support/core/builders.ts'

const demands = (fields: Partial<Demands> = {}): Demands => ({
  references: [REMOTE, LOCAL],
  overrideUsed: false,
  localBecause: null,
  localDenied: false,
  capabilities: {},
  derived: {},
  mayCallTools: false,
  requiredTokens: 100,
  ...fields,
})

const down = failure('provider_unavailable', 'nobody answers')

/** What stands in a model's way, as the catalogue and the demands say it. */
type Obstacle = 'nothing' | 'absent' | 'unavailable' | 'credential' | 'capability' | 'window' | 'failed'

const OBSTACLES: Obstacle[] = [
  'nothing',
  'absent',
  'unavailable',
  'credential',
  'capability',
  'window',
  'failed',
]

const NEEDS = { reasoning: true, tools: true }

function situation(obstacles: Record<string, Obstacle>, fields: Partial<Demands>) {
  const models = Object.entries(obstacles).map(([reference, obstacle]) =>
    makeModel(reference, {
      local: reference.startsWith('ollama/'),
      auth: obstacle === 'credential' ? 'api_key' : 'none',
      capabilities: { tools: true, ...(obstacle === 'capability' ? {} : { reasoning: true }) },
      max_context_tokens: obstacle === 'window' ? 50 : 10_000,
    }),
  )
  const lookups: Record<string, Lookup> = {}
  const failed = new Set<string>()
  for (const [reference, obstacle] of Object.entries(obstacles)) {
    if (obstacle === 'absent') lookups[reference] = { k: 'absent' }
    if (obstacle === 'unavailable') lookups[reference] = { k: 'unavailable', failure: down }
    if (obstacle === 'failed') failed.add(reference)
  }
  const catalogue = makeCatalogue(models, { lookups, without: ['anthropic', 'openai', 'ollama'] })
  return chooseModel(
    demands({ references: Object.keys(obstacles), capabilities: NEEDS, ...fields }),
    catalogue,
    failed,
  )
}

const codeOf = (choice: ReturnType<typeof chooseModel>): string =>
  choice.k === 'none' ? choice.failure.code : choice.k === 'use' ? choice.reference : 'list'

/** What a route says whose every model has the same obstacle, when nothing binds it to local models (EC 8.5, 3). */
const ALL_ALIKE: Record<Exclude<Obstacle, 'nothing'>, { code: string; alone: string }> = {
  absent: { code: 'fallback_exhausted', alone: 'model_not_found' },
  unavailable: { code: 'fallback_exhausted', alone: 'provider_unavailable' },
  credential: { code: 'missing_provider_credentials', alone: 'missing_provider_credentials' },
  capability: { code: 'missing_capability', alone: 'missing_capability' },
  window: { code: 'context_window_exceeded', alone: 'context_window_exceeded' },
  failed: { code: 'fallback_exhausted', alone: 'fallback_exhausted' },
}

describe('[EC 8.5] obstacle × position × locality × override', () => {
  const cases = OBSTACLES.flatMap((first) =>
    OBSTACLES.flatMap((second) =>
      [false, true].map((local): [Obstacle, Obstacle, boolean] => [first, second, local]),
    ),
  )

  test.each(cases)('remote %s, then local %s, bound to local models: %s', (first, second, local) => {
    const choice = situation({ [REMOTE]: first, [LOCAL]: second }, { localBecause: local ? 'rule' : null })
    let expected: string
    if (!local && first === 'nothing') expected = REMOTE
    else if (second === 'nothing') expected = LOCAL
    else if (local) expected = 'no_route'
    else expected = first === second ? ALL_ALIKE[second].code : 'fallback_exhausted'
    expect(codeOf(choice)).toBe(expected)
    const tried = first === 'failed' || second === 'failed'
    if (choice.k === 'use') expect(choice.fallbackUsed).toBe(choice.reference === LOCAL || tried)
  })

  test.each(
    OBSTACLES.flatMap((obstacle) => [true, false].map((local): [Obstacle, boolean] => [obstacle, local])),
  )('an explicit remote model, %s, bound to local models: %s', (obstacle, local) => {
    const choice = situation(
      { [REMOTE]: obstacle },
      { overrideUsed: true, localBecause: local ? 'required_content' : null },
    )
    // Where a model cannot even be looked at, nobody knows that it is remote.
    const known = obstacle !== 'absent' && obstacle !== 'unavailable' && obstacle !== 'failed'
    const expected =
      local && known ? 'override_not_allowed' : obstacle === 'nothing' ? REMOTE : ALL_ALIKE[obstacle].alone
    expect(codeOf(choice)).toBe(expected)
  })

  test.each(OBSTACLES)('an explicit local model, %s, on content for local models only', (obstacle) => {
    const choice = situation({ [LOCAL]: obstacle }, { overrideUsed: true, localBecause: 'required_content' })
    expect(codeOf(choice)).toBe(obstacle === 'nothing' ? LOCAL : ALL_ALIKE[obstacle].alone)
  })
})

describe('[EC 8.5] the walk', () => {
  test('the first usable model of the route serves, and whether it was not the first choice is said', () => {
    const catalogue = makeCatalogue([makeModel(REMOTE), makeModel(LOCAL)])
    expect(chooseModel(demands(), catalogue)).toMatchObject({ reference: REMOTE, fallbackUsed: false })
    expect(chooseModel(demands(), catalogue, new Set([REMOTE]))).toMatchObject({
      reference: LOCAL,
      fallbackUsed: true,
    })
  })

  test('[EC 8.6] the same predicate holds for fallbacks: after a failure a local-only turn finds no remote one', () => {
    const references = [LOCAL, REMOTE]
    const catalogue = makeCatalogue([makeModel(REMOTE), makeModel(LOCAL)])
    const choice = chooseModel(
      demands({ references, localBecause: 'preference' }),
      catalogue,
      new Set([LOCAL]),
    )
    expect(codeOf(choice)).toBe('no_route')
  })

  test('[D12] a provider is asked for its models only when the walk reaches one, and then for all of them at once', () => {
    const references = [LOCAL, 'openai/a', REMOTE, 'openai/b']
    const lookups: Record<string, Lookup> = { 'openai/a': { k: 'unlisted' }, 'openai/b': { k: 'unlisted' } }
    const reachable = makeCatalogue([makeModel(LOCAL), makeModel(REMOTE)], { lookups })
    expect(codeOf(chooseModel(demands({ references }), reachable))).toBe(LOCAL)
    const behind = makeCatalogue([makeModel(REMOTE)], { lookups })
    expect(chooseModel(demands({ references }), behind)).toEqual({
      k: 'list',
      provider: 'openai',
      models: ['a', 'b'],
    })
  })

  test('a key is needed only where the model says `api_key`', () => {
    const auths = ['none', 'optional_api_key', { custom: 'x' }] as const
    for (const auth of auths) {
      const catalogue = makeCatalogue([makeModel(REMOTE, { auth })], { without: ['anthropic'] })
      expect(codeOf(chooseModel(demands(), catalogue))).toBe(REMOTE)
    }
  })

  test('locality is a fact of the model, whatever its provider is called', () => {
    const catalogue = makeCatalogue([makeModel(LOCAL, { local: false })])
    expect(codeOf(chooseModel(demands({ localBecause: 'rule' }), catalogue))).toBe('no_route')
  })

  test('[EC 10.3] what has to fit is the window without the room for the answer', () => {
    expect(promptBudget({ max_context_tokens: 1000, max_output_tokens: 400 })).toBe(600)
    expect(promptBudget({ max_context_tokens: 1000, max_output_tokens: null })).toBe(744)
    expect(promptBudget({ max_context_tokens: 100, max_output_tokens: 400 })).toBe(0)
    const model = makeModel(REMOTE, { max_context_tokens: 1000, max_output_tokens: 400 })
    const fits = (requiredTokens: number) =>
      codeOf(chooseModel(demands({ references: [REMOTE], requiredTokens }), makeCatalogue([model])))
    expect([fits(600), fits(601)]).toEqual([REMOTE, 'context_window_exceeded'])
  })

  test('a capability that a rule names as not needed is not needed', () => {
    const catalogue = makeCatalogue([makeModel(REMOTE, { capabilities: {} })])
    expect(codeOf(chooseModel(demands({ capabilities: { images: false } }), catalogue))).toBe(REMOTE)
    expect(codeOf(chooseModel(demands({ capabilities: { images: true } }), catalogue))).toBe(
      'fallback_exhausted',
    )
  })
})

describe('[EC 8.5] what a turn needs by itself', () => {
  const able = makeModel(REMOTE, { capabilities: { tools: true } })
  const unable = makeModel(LOCAL, { capabilities: {} })

  test('tools may be called: a model that can comes before one that cannot', () => {
    const both = makeCatalogue([able, unable])
    const references = [LOCAL, REMOTE]
    expect(codeOf(chooseModel(demands({ references, mayCallTools: true }), both))).toBe(REMOTE)
    expect(codeOf(chooseModel(demands({ references, mayCallTools: false }), both))).toBe(LOCAL)
  })

  test('where none can, the first answers without tools', () => {
    const choice = chooseModel(demands({ references: [LOCAL], mayCallTools: true }), makeCatalogue([unable]))
    expect(codeOf(choice)).toBe(LOCAL)
    const failed = chooseModel(
      demands({ references: [REMOTE, LOCAL], mayCallTools: true }),
      makeCatalogue([able, unable]),
      new Set([REMOTE]),
    )
    expect(codeOf(failed)).toBe(LOCAL)
  })

  test('tools that a rule requires by name are required', () => {
    const needs = demands({ references: [LOCAL], mayCallTools: true, capabilities: { tools: true } })
    expect(codeOf(chooseModel(needs, makeCatalogue([unable])))).toBe('missing_capability')
  })

  test.each(['images', 'reasoning'] as const)(
    '%s: a model without is passed over, and none is an error',
    (one) => {
      const seeing = makeModel(REMOTE, { capabilities: { [one]: true } })
      const needs = demands({ references: [LOCAL, REMOTE], derived: { [one]: true } })
      expect(codeOf(chooseModel(needs, makeCatalogue([unable, seeing])))).toBe(REMOTE)
      const none = chooseModel(
        demands({ references: [LOCAL], derived: { [one]: true } }),
        makeCatalogue([unable]),
      )
      expect(none).toMatchObject({
        k: 'none',
        failure: { code: 'routing_unsupported_capability', details: { capability: one } },
      })
    },
  )
})

describe('[EC 3] what a refusal says', () => {
  const failureOf = (choice: ReturnType<typeof chooseModel>) =>
    choice.k === 'none' ? choice.failure : undefined

  test('no local model: the reason, what bound the turn, and each candidate', () => {
    const choice = situation(
      { [REMOTE]: 'nothing', [LOCAL]: 'unavailable' },
      { localBecause: 'required_content' },
    )
    expect(failureOf(choice)?.details).toEqual({
      candidates: [
        { model: REMOTE, reason: 'remote' },
        { model: LOCAL, reason: 'unavailable' },
      ],
      reason: 'no_local_model',
      local_because: 'required_content',
    })
  })

  test('a window: what was needed and the largest there is', () => {
    const choice = chooseModel(
      demands({ requiredTokens: 5000 }),
      makeCatalogue([
        makeModel(REMOTE, { max_context_tokens: 2000 }),
        makeModel(LOCAL, { max_context_tokens: 3000 }),
      ]),
    )
    expect(failureOf(choice)?.details).toEqual({ estimated_tokens: 5000, max_context_tokens: 3000 })
  })

  test('a capability: only what is missing', () => {
    const choice = situation({ [REMOTE]: 'capability', [LOCAL]: 'capability' }, {})
    expect(failureOf(choice)?.details).toEqual({ capability: 'reasoning' })
  })

  test('an explicit model whose provider cannot be asked: what the provider failed with', () => {
    expect(failureOf(situation({ [REMOTE]: 'unavailable' }, { overrideUsed: true }))).toEqual(down)
  })

  test('the message names every candidate with its obstacle', () => {
    const choice = situation({ [REMOTE]: 'credential', [LOCAL]: 'absent' }, {})
    expect(failureOf(choice)?.message).toBe(
      `no usable model: ${REMOTE} (no credential for its provider), ${LOCAL} (not offered by its provider)`,
    )
  })
})
