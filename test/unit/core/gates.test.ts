import { describe, expect, test } from 'vitest'
import { estimateCost, gateFor } from '../../../src/core/gates.ts'
import { planTurn, prepareCall } from '../../../src/core/resolve.ts'
import { withCostGrant } from '../../../src/core/run/cost-grants.ts'
import type { AskedCost, RunState } from '../../../src/core/run/state.ts'
import { estimateTokens } from '../../../src/core/tokens.ts'
import type { ModelDescriptor } from '../../../src/protocol/execution/models.ts'
import {
  LOCAL,
  makeFile,
  makeModel,
  makeRequest,
  makeView,
  must,
  REMOTE,
  type RequestParts,
} from '../../support/core/builders.ts'
import { Machine } from '../../support/core/run-machine.ts'

function stateOf(fields: Partial<RunState> = {}): RunState {
  const machine = new Machine()
  machine.execute('hello')
  if (machine.state === null) throw new Error('no state')
  return { ...machine.state, ...fields }
}

function gate(parts: RequestParts, model: ModelDescriptor, state: RunState = stateOf()) {
  const plan = must(planTurn(makeView(makeRequest(parts))))
  return gateFor(plan, model, prepareCall(plan, model), state)
}

const asks = (parts: RequestParts = {}): RequestParts => ({ privacy: { remote: { mode: 'ask' } }, ...parts })

describe('[EC 13] disclosure to a remote model', () => {
  const remote = makeModel(REMOTE)
  const files = { files: [makeFile('a.ts', 'A'), makeFile('/code/b.ts', 'B')] }

  test.each([
    ['mode `ask` and a remote model', asks(), remote, true],
    ['no mode, which means `ask`', { privacy: { remote: {} } }, remote, true],
    ['no word on remote models at all', { privacy: { remote: undefined } }, remote, true],
    ['mode `allow`', { privacy: { remote: { mode: 'allow' as const } } }, remote, false],
    ['a local model', asks(), makeModel(LOCAL), false],
  ])('%s: asked %s', (_, parts, model, asked) => {
    expect(gate(parts, model) !== null).toBe(asked)
  })

  test.each([
    ['says `ask`', 'ask', true],
    ['says `allow`', 'allow', false],
    ['says nothing', undefined, false],
  ] as const)('a local model is asked about only where the policy %s', (_, mode, asked) => {
    const local = mode === undefined ? undefined : { mode }
    const gated = gate(
      { privacy: { remote: { mode: 'allow' }, local }, attachments: files },
      makeModel(LOCAL),
    )
    expect(gated).toEqual(
      asked
        ? {
            kind: 'remote_disclosure',
            disclosure: { provider: 'ollama', model: 'local-model', paths: ['a.ts', 'b.ts'], local: true },
          }
        : null,
    )
    expect(gate({ privacy: { remote: { mode: 'allow' }, local } }, remote)).toBe(null)
  })

  test('it says to which model which files go; a bare prompt is disclosed, too', () => {
    expect(gate(asks({ attachments: files }), remote)).toEqual({
      kind: 'remote_disclosure',
      disclosure: { provider: 'anthropic', model: 'remote-model', paths: ['a.ts', 'b.ts'] },
    })
    expect(gate(asks(), remote)).toMatchObject({ disclosure: { paths: [] } })
  })

  test('files that do not go are not named', () => {
    const parts = asks({
      attachments: { files: [makeFile('a.ts', 'A'), makeFile('secrets/key', 'S')] },
      privacy: { remote: { mode: 'ask' }, restricted_paths: ['secrets/**'] },
    })
    expect(gate(parts, remote)).toMatchObject({ disclosure: { paths: ['a.ts'] } })
  })

  test.each([
    ['the same model and paths', {}, false],
    ['more paths than now', { paths: ['a.ts', 'b.ts', 'c'] }, false],
    ['a path is new', { paths: ['a.ts'] }, true],
    ['another model of the provider', { model: 'other' }, false],
    ['another provider', { provider: 'openai' }, true],
    ['a local model of the provider', { local: true as const }, true],
    ['by an older release, without an id', { id: undefined }, true],
  ])('[U23] what was approved earlier in the run: %s, asked again: %s', (_, fields, asked) => {
    const { id, ...given } = {
      id: 'g',
      provider: 'anthropic',
      model: 'remote-model',
      paths: ['a.ts', 'b.ts'],
      ...fields,
    }
    const state = stateOf({ disclosed: [id === undefined ? given : { ...given, id }] })
    // All that is shown now is listed, also what was before: it is one decision.
    expect(gate(asks({ attachments: files }), remote, state)).toEqual(
      asked
        ? {
            kind: 'remote_disclosure',
            disclosure: { provider: 'anthropic', model: 'remote-model', paths: ['a.ts', 'b.ts'] },
          }
        : null,
    )
  })

  test('two approvals do not add up across providers', () => {
    const given = (id: string, provider: string, path: string) => ({
      id,
      provider,
      model: 'm',
      paths: [path],
    })
    const state = stateOf({ disclosed: [given('1', 'anthropic', 'a.ts'), given('2', 'openai', 'b.ts')] })
    expect(gate(asks({ attachments: files }), remote, state)).not.toBe(null)
  })
})

describe('[EC 13] the cost limit of a rule', () => {
  const priced = makeModel(REMOTE, {
    input_cost_per_million_tokens: '1000000',
    output_cost_per_million_tokens: '1',
    max_output_tokens: 1_000_000,
  })
  const limited = (cost_limit: string | null): RequestParts => ({
    rules: [{ name: 'r', model: REMOTE, ...(cost_limit === null ? {} : { cost_limit }) }],
  })

  test('asked when the estimate may exceed it, with both ends of the estimate', () => {
    const asked = gate(limited('1'), priced)
    expect(asked).toMatchObject({
      kind: 'cost_limit',
      cost: { rule: 'r', limit: '1', provider: 'anthropic', model: 'remote-model' },
    })
    const estimate = asked?.kind === 'cost_limit' ? asked.cost.estimate : null
    // One unit of money a token in, and one for all that may come out.
    expect(Number(estimate?.max)).toBe(Number(estimate?.min) + 1)
  })

  test.each([
    ['no limit', limited(null), priced],
    ['the estimate stays below', limited('1000000'), priced],
    [
      'a model that costs nothing',
      limited('0'),
      makeModel(REMOTE, { input_cost_per_million_tokens: '0', output_cost_per_million_tokens: '0' }),
    ],
    ['the default route', {}, priced],
  ])('not asked: %s', (_, parts, model) => {
    expect(gate(parts, model)).toBe(null)
  })

  test('exactly the limit is within it', () => {
    const model = makeModel(REMOTE, { output_cost_per_million_tokens: '2', max_output_tokens: 1_000_000 })
    expect(gate(limited('2'), { ...model, max_context_tokens: 2_000_000 })).toBe(null)
    expect(gate(limited('1.999999'), { ...model, max_context_tokens: 2_000_000 })).not.toBe(null)
  })

  test('asked, with the reason, when nobody knows the price', () => {
    const { input_cost_per_million_tokens: _, ...unpriced } = priced
    expect(gate(limited('1000000'), unpriced)).toEqual({
      kind: 'cost_limit',
      cost: {
        rule: 'r',
        limit: '1000000',
        estimate: null,
        provider: 'anthropic',
        model: 'remote-model',
      },
    })
    expect(gate(limited('1000000'), { ...priced, prices_up_to_input_tokens: 1 })).toMatchObject({
      cost: { estimate: null },
    })
  })

  const asksFor = (parts: RequestParts, model: ModelDescriptor): AskedCost => {
    const asked = gate(parts, model)
    if (asked?.kind !== 'cost_limit') throw new Error('no cost is asked for')
    return asked.cost
  }

  test('[U23] not asked again up to twice what was shown, and beyond that with the new figures', () => {
    const first = asksFor(limited('1'), priced)
    const state = stateOf({ costs: withCostGrant([], first, () => 'g') })
    expect(gate(limited('1'), priced, state)).toBe(null)
    const prompt = (tokens: number) => ({ ...limited('1'), text: 'word '.repeat(tokens) })
    const [twice, more] = [prompt(1), prompt(40)].map((parts) => asksFor(parts, priced))
    expect(Number(twice?.estimate?.max)).toBeLessThanOrEqual(2 * Number(first.estimate?.max))
    expect(gate(prompt(1), priced, state)).toBe(null)
    expect(Number(more?.estimate?.max)).toBeGreaterThan(2 * Number(first.estimate?.max))
    expect(gate(prompt(40), priced, state)).toEqual({ kind: 'cost_limit', cost: more })
  })

  test.each([
    ['another rule', { rule: 'other' }, true],
    ['another model', { model: 'other' }, true],
    ['another provider', { provider: 'openai' }, true],
    ['a known price', { upTo: '1000000' }, true],
    ['this rule and model', {}, false],
  ])('[U23] a price that nobody knows, accepted for %s: asked again %s', (_, fields, asked) => {
    const { input_cost_per_million_tokens: __, ...unpriced } = priced
    const costs = [{ id: 'g', rule: 'r', provider: 'anthropic', model: 'remote-model', ...fields }]
    expect(gate(limited('1'), unpriced, stateOf({ costs })) !== null).toBe(asked)
  })

  test('disclosure is asked before cost', () => {
    expect(gate({ ...limited('1'), ...asks() }, priced)?.kind).toBe('remote_disclosure')
    const state = stateOf({
      disclosed: [{ id: 'g', provider: 'anthropic', model: 'remote-model', paths: [] }],
    })
    expect(gate({ ...limited('1'), ...asks() }, priced, state)?.kind).toBe('cost_limit')
  })
})

describe('[EC 20.3] the estimate of a call', () => {
  const plan = must(planTurn(makeView(makeRequest())))

  test('from the included candidates and the prompt to that and the longest answer; 4,096 tokens where a model states none', () => {
    const view = makeView(
      makeRequest({
        text: 'a "quoted"\n prompt',
        attachments: { files: [makeFile('a.ts', 'x'.repeat(400), true)] },
      }),
    )
    const model = makeModel(REMOTE, {
      input_cost_per_million_tokens: '1000000',
      output_cost_per_million_tokens: '1000000',
      max_output_tokens: null,
    })
    const tokens = estimateTokens('x'.repeat(400)) + estimateTokens('a "quoted"\n prompt')
    expect(estimateCost(model, prepareCall(must(planTurn(view)), model))).toEqual({
      min: `${tokens}`,
      max: `${tokens + 4096}`,
    })
  })

  test('[U43] unknown where a rate is unknown', () => {
    const { input_cost_per_million_tokens: _, ...model } = makeModel(REMOTE)
    expect(estimateCost(model, prepareCall(plan, model))).toBe(null)
  })
})
