import type { ModelDescriptor } from '../protocol/execution/models.ts'
import { compareMoney, priceCall } from './cost.ts'
import type { PreparedCall, TurnPlan } from './resolve.ts'
import type { Gate } from './run/inputs.ts'
import type { RunState } from './run/state.ts'

/** The answer that a cost estimate allows for where a model states no limit (EC 20.3). */
const ASSUMED_OUTPUT_TOKENS = 4096

/** What a call may cost, in money; null when the model's rates are unknown (EC 20.3). */
export function estimateCost(
  model: ModelDescriptor,
  { inputTokens }: PreparedCall,
): { min: string; max: string } | null {
  const min = priceCall(model, { inputTokens, outputTokens: 0 })
  const max = priceCall(model, {
    inputTokens,
    outputTokens: model.max_output_tokens ?? ASSUMED_OUTPUT_TOKENS,
  })
  return min === undefined || max === undefined ? null : { min, max }
}

/**
 * The decision that stands before this call, if any: first disclosing to a remote provider under mode `ask`, then a
 * rule's cost limit (EC 13). What was approved earlier in the run is in the state and is not asked again; another model,
 * or a path that was not shown yet, is.
 */
export function gateFor(
  turn: TurnPlan,
  model: ModelDescriptor,
  call: PreparedCall,
  state: RunState,
): Gate | null {
  const { provider, model: name } = model
  const mode = turn.view.runInput.policy.privacy.remote?.mode ?? 'ask'
  if (!model.local && mode === 'ask') {
    const paths = call.verdicts.flatMap(({ candidate, included }) =>
      included && candidate.path !== undefined ? [candidate.path] : [],
    )
    const known = state.disclosed.find((one) => one.provider === provider && one.model === name)
    if (!known || paths.some((path) => !known.paths.includes(path)))
      return { kind: 'remote_disclosure', disclosure: { provider, model: name, paths } }
  }
  const limit = turn.route.rule?.cost_limit
  if (limit == null || state.costAccepted) return null
  const estimate = estimateCost(model, call)
  if (estimate !== null && compareMoney(estimate.max, limit) <= 0) return null
  // A price that nobody knows is no price of zero: whoever set a limit is asked.
  const estimated =
    estimate === null
      ? { reason: 'price_unknown' }
      : { estimated_min: estimate.min, estimated_max: estimate.max }
  return {
    kind: 'cost_limit',
    detail: { limit, ...estimated, currency: 'USD', provider, model: name },
  }
}
