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

export type TokenCounts = { inputTokens?: number; outputTokens?: number }

/**
 * The exact price of one call: absent when a rate or a counter is unknown, "0" when the rates are zero (EC 20.1, U43).
 */
export function priceCall(
  model: Pick<ModelDescriptor, 'input_cost_per_million_tokens' | 'output_cost_per_million_tokens'>,
  { inputTokens, outputTokens }: TokenCounts,
): Decimal | undefined {
  const inputRate = model.input_cost_per_million_tokens
  const outputRate = model.output_cost_per_million_tokens
  if (inputRate === undefined || outputRate === undefined) return undefined
  if (inputTokens === undefined || outputTokens === undefined) return undefined
  const total = parseScaled(inputRate) * BigInt(inputTokens) + parseScaled(outputRate) * BigInt(outputTokens)
  return formatScaled(total / 1_000_000n)
}

/** Adds decimal strings exactly. */
export const addMoney = (a: Decimal, b: Decimal): Decimal => formatScaled(parseScaled(a) + parseScaled(b))

/** Below zero when a < b, above when a > b. */
export function compareMoney(a: Decimal, b: Decimal): number {
  const difference = parseScaled(a) - parseScaled(b)
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}
