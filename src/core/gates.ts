import type { ModelDescriptor } from '../protocol/execution/models.ts'
import { compareMoney, priceCall } from './cost.ts'
import type { PreparedCall, TurnPlan } from './resolve.ts'
import { isGranted } from './run/grants.ts'
import type { Gate } from './run/inputs.ts'
import type { Disclosure, RunState } from './run/state.ts'

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
 * The decision that stands before this call, if any: first disclosing to a provider under mode `ask`, then a rule's cost
 * limit (EC 13). What was approved earlier in the run is in the state and is not asked again; another provider, or a path
 * that was not shown yet, is. Local models are asked about only where the policy says so.
 */
export function gateFor(
  turn: TurnPlan,
  model: ModelDescriptor,
  call: PreparedCall,
  state: Pick<RunState, 'disclosed' | 'costAccepted'>,
): Gate | null {
  const { provider, model: name } = model
  const { remote, local } = turn.view.runInput.policy.privacy
  const mode = model.local ? (local?.mode ?? 'allow') : (remote?.mode ?? 'ask')
  if (mode === 'ask') {
    const disclosure: Disclosure = {
      provider,
      model: name,
      paths: shownPaths(call),
      ...(model.local ? { local: true as const } : {}),
    }
    if (!isGranted(state.disclosed, disclosure)) return { kind: 'remote_disclosure', disclosure }
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

/** The files whose content goes in, each once. */
const shownPaths = ({ verdicts }: PreparedCall): string[] => [
  ...new Set(
    verdicts.flatMap(({ candidate: { shows, path }, included }) =>
      included ? (shows ?? (path === undefined ? [] : [path])) : [],
    ),
  ),
]
