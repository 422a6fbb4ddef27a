import type { Decimal } from '../protocol/execution/ids.ts'
import type { ModelDescriptor } from '../protocol/execution/models.ts'

/** Money inside is an integer count of 10⁻²⁴ units, so products of rates and counts stay exact. */
const SCALE_DIGITS = 24
/** What a decimal on the wire may have behind its point; a price that is finer is cut there. */
const WIRE_DIGITS = 18

function parseScaled(text: Decimal): bigint {
  const [whole = '0', fraction = ''] = text.split('.')
  return BigInt(whole + fraction.padEnd(SCALE_DIGITS, '0').slice(0, SCALE_DIGITS))
}

function formatScaled(value: bigint): Decimal {
  const digits = value.toString().padStart(SCALE_DIGITS + 1, '0')
  const whole = digits.slice(0, -SCALE_DIGITS)
  const fraction = digits.slice(-SCALE_DIGITS).slice(0, WIRE_DIGITS).replace(/0+$/, '')
  return fraction === '' ? whole : `${whole}.${fraction}`
}

/** `inputTokens` is the whole prompt: what the cache gave and took is part of it. */
export type TokenCounts = {
  inputTokens?: number
  outputTokens?: number
  cachedTokens?: number
  cacheWriteTokens?: number
}

export type Rates = Pick<
  ModelDescriptor,
  | 'input_cost_per_million_tokens'
  | 'output_cost_per_million_tokens'
  | 'cached_input_cost_per_million_tokens'
  | 'cache_write_cost_per_million_tokens'
  | 'prices_up_to_input_tokens'
>

/**
 * The exact price of one call: absent when a rate or a counter is unknown or the prompt
 * is longer than the rates hold for, "0" when the rates are zero (EC 20.1, U43).
 * What the cache gave and took has rates of its own; a model that states none charges them like other input.
 */
export function priceCall(
  model: Rates,
  { inputTokens, outputTokens, cachedTokens = 0, cacheWriteTokens = 0 }: TokenCounts,
): Decimal | undefined {
  const inputRate = model.input_cost_per_million_tokens
  const outputRate = model.output_cost_per_million_tokens
  if (inputRate === undefined || outputRate === undefined) return undefined
  if (inputTokens === undefined || outputTokens === undefined) return undefined
  if (inputTokens > (model.prices_up_to_input_tokens ?? Number.POSITIVE_INFINITY)) return undefined
  const parts: [rate: Decimal, tokens: number][] = [
    [inputRate, Math.max(0, inputTokens - cachedTokens - cacheWriteTokens)],
    [model.cached_input_cost_per_million_tokens ?? inputRate, cachedTokens],
    [model.cache_write_cost_per_million_tokens ?? inputRate, cacheWriteTokens],
    [outputRate, outputTokens],
  ]
  const total = parts.reduce((sum, [rate, tokens]) => sum + parseScaled(rate) * BigInt(tokens), 0n)
  return formatScaled(total / 1_000_000n)
}

/** Adds decimal strings exactly. */
export const addMoney = (a: Decimal, b: Decimal): Decimal => formatScaled(parseScaled(a) + parseScaled(b))

/** Below zero when a < b, above when a > b. */
export function compareMoney(a: Decimal, b: Decimal): number {
  const difference = parseScaled(a) - parseScaled(b)
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}
