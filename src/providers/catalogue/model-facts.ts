import { z } from 'zod'
import { Decimal, type Provider } from '../../protocol/execution/ids.ts'
import { ModelCapabilities, type ModelDescriptor } from '../../protocol/execution/models.ts'
import builtIn from './model-facts.json' with { type: 'json' }

/** An exact name, a beginning with `*` at its end, or `*` alone for every name. */
export const NamePattern = z
  .string()
  .regex(/^([^*]+\*?|\*)$/, 'must be a name, or the beginning of one with * at its end')

/** Unknown keys are refused: a misspelt price would silently be no price. */
export const FACT_FIELDS = {
  display_name: z.string().min(1).optional(),
  max_context_tokens: z.int().positive().optional(),
  max_output_tokens: z.int().positive().optional(),
  capabilities: z.strictObject(ModelCapabilities.shape).optional(),
  input_cost_per_million_tokens: Decimal.optional(),
  output_cost_per_million_tokens: Decimal.optional(),
  cached_input_cost_per_million_tokens: Decimal.optional(),
  cache_write_cost_per_million_tokens: Decimal.optional(),
  prices_up_to_input_tokens: z.int().positive().optional(),
  prices_as_of: z.iso.date().optional(),
  provider_options: z.record(z.string(), z.unknown()).optional(),
}

/**
 * What is known of a model without asking its provider. What is not known is absent: never guessed, and no price is
 * never 0 (EC 21).
 */
export const ModelFacts = z.strictObject(FACT_FIELDS)
export type ModelFacts = z.infer<typeof ModelFacts>

/** Facts of every model that one of the patterns names. */
export type FactEntry = { match: readonly string[]; facts: ModelFacts }

const FactFile = z.record(
  z.string(),
  z.array(
    z
      .strictObject({ match: z.array(NamePattern).min(1), ...FACT_FIELDS })
      .transform(({ match, ...facts }): FactEntry => ({ match, facts })),
  ),
)

let parsed: z.infer<typeof FactFile> | undefined

/**
 * The facts that come with the program, by provider; data, with the date of the prices. Read when first needed, so that
 * the Worker starts without it.
 * @throws when the file that comes with the program is broken
 */
export function builtInFacts(provider: Provider): readonly FactEntry[] {
  parsed ??= FactFile.parse(builtIn)
  return parsed[provider] ?? []
}

/** The facts of the entry that names the model most exactly: the name itself, else the longest beginning. */
export function mostExact(entries: readonly FactEntry[], name: string): ModelFacts | undefined {
  return matching(entries, name).at(-1)
}

/** All facts of the entries that name the model, field by field: a more exact entry beats a less exact one. */
export const combined = (entries: readonly FactEntry[], name: string): ModelFacts =>
  matching(entries, name).reduce(overlay, {})

/** From the least exact to the most exact; of two that are equally exact the first entry comes last. */
function matching(entries: readonly FactEntry[], name: string): ModelFacts[] {
  return entries
    .map(({ match, facts }) => ({
      facts,
      rank: Math.max(...match.map((pattern) => exactness(pattern, name))),
    }))
    .filter(({ rank }) => rank >= 0)
    .reverse()
    .sort((a, b) => a.rank - b.rank)
    .map(({ facts }) => facts)
}

/** How closely a pattern names a model: the length of what it fixes, everything for the whole name, -1 for not at all. */
function exactness(pattern: string, name: string): number {
  if (!pattern.endsWith('*')) return pattern === name ? Number.POSITIVE_INFINITY : -1
  const start = pattern.slice(0, -1)
  return name.startsWith(start) ? start.length : -1
}

const PRICES = [
  'input_cost_per_million_tokens',
  'output_cost_per_million_tokens',
  'cached_input_cost_per_million_tokens',
  'cache_write_cost_per_million_tokens',
] as const satisfies readonly (keyof ModelFacts)[]

/** Facts over facts, field by field. */
export function overlay(under: ModelFacts, over: ModelFacts): ModelFacts {
  const { prices_as_of: _date, prices_up_to_input_tokens: _limit, ...rest } = under
  const capabilities = { ...under.capabilities, ...over.capabilities }
  return {
    ...rest,
    ...pricedAs(under, over),
    ...over,
    ...(Object.keys(capabilities).length === 0 ? {} : { capabilities }),
    ...optionsOf(under, over),
  }
}

/** Facts over a descriptor that was made without them. Where a model runs is no such fact. */
export function applyFacts(model: ModelDescriptor, facts: ModelFacts): ModelDescriptor {
  const { prices_as_of: _date, prices_up_to_input_tokens: _limit, ...rest } = model
  const { display_name: name, max_context_tokens: window, max_output_tokens: output, ...others } = facts
  return {
    ...rest,
    ...pricedAs(model, facts),
    ...others,
    display_name: name ?? model.display_name,
    capabilities: { ...model.capabilities, ...facts.capabilities },
    max_context_tokens: window ?? model.max_context_tokens,
    max_output_tokens: output ?? model.max_output_tokens,
    ...optionsOf(model, facts),
  }
}

type Told = Pick<ModelFacts, 'prices_as_of' | 'prices_up_to_input_tokens' | 'provider_options'>

/** A date and a limit hold only for the prices that they came with. */
function pricedAs(
  { prices_as_of: asOf, prices_up_to_input_tokens: upTo }: Told,
  over: ModelFacts,
): Pick<ModelFacts, 'prices_as_of' | 'prices_up_to_input_tokens'> {
  if (PRICES.some((price) => over[price] !== undefined)) return {}
  return {
    ...(asOf === undefined ? {} : { prices_as_of: asOf }),
    ...(upTo === undefined ? {} : { prices_up_to_input_tokens: upTo }),
  }
}

function optionsOf(under: Told, over: ModelFacts): Pick<ModelFacts, 'provider_options'> {
  const options = { ...under.provider_options, ...over.provider_options }
  return Object.keys(options).length === 0 ? {} : { provider_options: options }
}
