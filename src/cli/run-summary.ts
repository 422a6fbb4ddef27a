import type { Payload } from '../protocol/execution/trace.ts'
import type { CompletedTurn } from '../protocol/execution/turn.ts'
import type { Usage } from '../protocol/execution/usage.ts'

/** `→ ollama/model  (rule "x"; intent chat, keyword …)`: which model answered, and why. */
export function routingLine({ routing, classification }: CompletedTurn): string {
  const why = routing.override_used
    ? 'chosen by you'
    : routing.matched_rule
      ? `rule "${routing.matched_rule}"`
      : 'default route'
  const fallback = routing.fallback_used ? ', fallback' : ''
  return `→ ${routing.provider}/${routing.model}  (${why}${fallback}; intent ${classification.intent}, ${classification.reason})`
}

/** What to know of an answer that did not end by itself (U42). */
export function endingLine({ ending }: CompletedTurn): string | undefined {
  if (ending === 'truncated') return 'cut: the model reached its output limit; ask it to go on'
  if (ending === 'refused') return 'refused: the provider stopped this answer'
  return undefined
}

/**
 * `in 812 · out 44 tokens · $0.003096`. What is not known is said to be unknown, never zero (U43). A router leaves
 * counters out that are zero (EC 20.1), and prices nothing whose counters it does not know: beside a cost, a counter
 * that is absent is zero, unless calls are counted of which nothing is known.
 */
export function usageLine(usage: Usage): string {
  const cost = costOf(usage)
  const absent = cost === undefined || usage.unknown_count ? '?' : '0'
  const count = (tokens: number | undefined) => (tokens === undefined ? absent : String(tokens))
  const parts = [`in ${count(usage.input_tokens)}`, `out ${count(usage.output_tokens)} tokens`]
  if (usage.cached_tokens !== undefined) parts.push(`cached ${usage.cached_tokens}`)
  if (usage.cache_write_tokens !== undefined) parts.push(`cache written ${usage.cache_write_tokens}`)
  if (usage.reasoning_tokens !== undefined) parts.push(`reasoning ${usage.reasoning_tokens}`)
  parts.push(cost === undefined ? 'cost unknown' : money(cost, usage.currency ?? 'USD'))
  return parts.join(' · ')
}

/**
 * The same for one call of a trace. A counter that is zero there may be one that was never told (EC 19): without a price
 * it is shown as unknown (U43).
 */
export function costLine(cost: Extract<Payload, { type: 'cost' }>): string {
  const {
    input_tokens,
    output_tokens,
    cached_tokens,
    cache_write_tokens,
    reasoning_tokens,
    cost: price,
  } = cost
  return usageLine({
    ...(input_tokens === 0 ? {} : { input_tokens }),
    ...(output_tokens === 0 ? {} : { output_tokens }),
    ...(cached_tokens === undefined ? {} : { cached_tokens }),
    ...(cache_write_tokens === undefined ? {} : { cache_write_tokens }),
    ...(reasoning_tokens === undefined ? {} : { reasoning_tokens }),
    ...(price == null ? {} : { actual_cost: price }),
  })
}

/** What it cost, or was estimated to; undefined when a price or a counter is unknown. */
export const costOf = (usage: Usage): string | undefined => usage.actual_cost ?? usage.estimated_cost

const money = (amount: string, currency: string): string =>
  currency === 'USD' ? `$${amount}` : `${amount} ${currency}`
