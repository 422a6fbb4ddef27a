import { describe, expect, it } from 'vitest'
import type { ModelDescriptor } from '../../../src/protocol/execution/models.ts'
import { ModelDescriptor as Descriptor } from '../../../src/protocol/execution/models.ts'
import {
  applyFacts,
  builtInFacts,
  combined,
  type FactEntry,
  mostExact,
  overlay,
} from '../../../src/providers/catalogue/model-facts.ts'
import { CLOUDS, parseProviderConfig } from '../../../src/providers/config.ts'
import { makeProviders } from '../../../src/providers/registry.ts'
import { makeContext, makeDescriptor } from './support.ts'

const entry = (match: string[], max_context_tokens: number): FactEntry => ({
  match,
  facts: { max_context_tokens },
})

describe('which facts hold for a model', () => {
  const entries = [entry(['a*'], 1), entry(['abc*', 'x'], 2), entry(['ab*'], 3), entry(['abcd'], 4)]

  it('the whole name beats a beginning, a longer beginning a shorter one, whatever their order', () => {
    const window = (name: string) => mostExact(entries, name)?.max_context_tokens
    expect(['abcd', 'abcde', 'abx', 'a', 'x', 'xx', 'b'].map(window)).toEqual([
      4,
      2,
      3,
      1,
      2,
      undefined,
      undefined,
    ])
  })

  it('[EC 4] names are exact: case and tags count', () => {
    expect(mostExact([entry(['llama3'], 1)], 'llama3:latest')).toBeUndefined()
    expect(mostExact([entry(['gpt*'], 1)], 'GPT-5')).toBeUndefined()
  })

  it('the owner’s facts add up, the more exact ones on top', () => {
    expect(
      combined(
        [
          { match: ['gpt-x'], facts: { max_output_tokens: 7, capabilities: { images: false } } },
          {
            match: ['gpt*'],
            facts: { max_context_tokens: 9, max_output_tokens: 8, capabilities: { tools: true } },
          },
        ],
        'gpt-x',
      ),
    ).toEqual({ max_context_tokens: 9, max_output_tokens: 7, capabilities: { tools: true, images: false } })
  })

  it('[EC 21] a new price takes away the date of the old one, and keeps its own', () => {
    const under = {
      input_cost_per_million_tokens: '1',
      output_cost_per_million_tokens: '2',
      prices_as_of: '2026-01-01',
    }
    expect(overlay(under, { max_context_tokens: 5 })).toEqual({ ...under, max_context_tokens: 5 })
    expect(overlay(under, { input_cost_per_million_tokens: '3' })).toEqual({
      input_cost_per_million_tokens: '3',
      output_cost_per_million_tokens: '2',
    })
    const dated = { input_cost_per_million_tokens: '3', prices_as_of: '2026-02-02' }
    expect(overlay(under, dated)).toEqual({ ...under, ...dated })
  })

  it('over a descriptor they change fields and never where the model runs', () => {
    const model: ModelDescriptor = { ...makeDescriptor(), provider_options: { think: 'levels', keep: 1 } }
    const facts = {
      max_context_tokens: 5,
      capabilities: { images: true },
      provider_options: { think: 'switch' },
    }
    expect(applyFacts(model, facts)).toEqual({
      ...model,
      max_context_tokens: 5,
      capabilities: { ...model.capabilities, images: true },
      provider_options: { think: 'switch', keep: 1 },
    })
    expect(applyFacts(model, {})).toEqual(model)
  })
})

describe('the facts that come with the program', () => {
  const all = CLOUDS.flatMap(({ id }) => builtInFacts(id).map((one) => ({ id, ...one })))

  it('are there for each built-in cloud provider, name no model twice, and price nothing without a date', () => {
    expect(CLOUDS.map(({ id }) => builtInFacts(id).length > 0)).toEqual([true, true, true])
    const names = all.flatMap(({ id, match }) => match.map((pattern) => `${id}/${pattern}`))
    expect(new Set(names).size).toBe(names.length)
    const priced = all.filter(({ facts }) => Object.keys(facts).some((field) => field.includes('_cost_')))
    expect(priced.length).toBeGreaterThan(30)
    expect(priced.filter(({ facts }) => facts.prices_as_of === undefined)).toEqual([])
    expect(
      priced.filter(
        ({ facts }) =>
          !(
            Number(facts.input_cost_per_million_tokens) > 0 &&
            Number(facts.output_cost_per_million_tokens) > 0
          ),
      ),
    ).toEqual([])
  })

  it('leave room for a prompt: no output limit fills its window', () => {
    const full = all.filter(
      ({ facts: { max_context_tokens: window = Number.POSITIVE_INFINITY, max_output_tokens: output = 0 } }) =>
        output > window / 2,
    )
    expect(full).toEqual([])
  })

  it('[D12] make whole descriptors without a request, with what the adapters need to know', async () => {
    const providers = makeProviders(parseProviderConfig({}))
    const listed = async (id: string, name: string) => {
      const { context, routes } = makeContext()
      const result = await providers.get(id)?.listModels(context, [name])
      expect(routes).toEqual([])
      const model = result?.ok ? result.value[0] : undefined
      return Descriptor.parse(model)
    }
    expect(await listed('anthropic', 'claude-haiku-4-5-20251001')).toEqual({
      provider: 'anthropic',
      model: 'claude-haiku-4-5-20251001',
      display_name: 'Claude Haiku 4.5',
      local: false,
      auth: 'api_key',
      capabilities: {
        streaming: true,
        tools: true,
        json_output: true,
        system_prompt: true,
        images: true,
        reasoning: true,
        memory: true,
      },
      max_context_tokens: 200_000,
      max_output_tokens: 64_000,
      input_cost_per_million_tokens: '1',
      output_cost_per_million_tokens: '5',
      cached_input_cost_per_million_tokens: '0.10',
      cache_write_cost_per_million_tokens: '1.25',
      prices_as_of: '2026-10-24',
      default_parameters: {},
      provider_options: { thinking: 'budget' },
    })
    expect((await listed('anthropic', 'claude-opus-5-5')).provider_options).toEqual({ thinking: 'adaptive' })
    expect((await listed('gemini', 'gemini-3.8-flash')).provider_options).toEqual({ thinking: 'level' })
    expect((await listed('openai', 'gpt-5-mini')).provider_options).toEqual({
      reasoning_effort: ['minimal', 'low', 'medium', 'high'],
    })
    expect((await listed('openai', 'gpt-4.1')).capabilities.reasoning).toBe(false)
  })
})
