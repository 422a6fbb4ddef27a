import type { ModelDescriptor } from '../protocol/execution/models.ts'
import { runUnits } from './candidates.ts'
import { compareMoney, priceCall } from './cost.ts'
import { normalisePath } from './paths.ts'
import type { PreparedCall, TurnPlan } from './resolve.ts'
import { isCostGranted } from './run/cost-grants.ts'
import { isGranted } from './run/grants.ts'
import type { Gate } from './run/inputs.ts'
import type { AskedCost, Disclosure, RunState } from './run/state.ts'
import { callPaths } from './transcript.ts'

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
  state: Pick<RunState, 'disclosed' | 'costs'>,
): Gate | null {
  const { provider, model: name } = model
  const { remote, local } = turn.view.runInput.policy.privacy
  const mode = model.local ? (local?.mode ?? 'allow') : (remote?.mode ?? 'ask')
  if (mode === 'ask') {
    const disclosure: Disclosure = {
      provider,
      model: name,
      paths: shownPaths(turn, model, call),
      ...(model.local ? { local: true as const } : {}),
    }
    if (!isGranted(state.disclosed, disclosure)) return { kind: 'remote_disclosure', disclosure }
  }
  const { rule } = turn.route
  if (rule?.cost_limit == null) return null
  const limit = rule.cost_limit
  const estimate = estimateCost(model, call)
  if (estimate !== null && compareMoney(estimate.max, limit) <= 0) return null
  // A price that nobody knows is no price of zero: whoever set a limit is asked.
  const cost: AskedCost = { rule: rule.name, provider, model: name, limit, estimate }
  return isCostGranted(state.costs ?? [], cost) ? null : { kind: 'cost_limit', cost }
}

/**
 * The files whose content goes in, each once: those of the context, and those that the messages of the prompt tell of, by
 * their calls and by what they were given over. What this provider's own models asked for in this run is not among them:
 * that was a matter of the tool's permission.
 */
function shownPaths({ view }: TurnPlan, { provider }: ModelDescriptor, { verdicts }: PreparedCall): string[] {
  const { root } = view.runInput.workspace
  const paths = new Set<string>()
  const kept = new Set<string>()
  for (const { candidate, included } of verdicts) {
    if (!included) continue
    kept.add(candidate.key)
    for (const path of candidate.shows ?? []) paths.add(path)
  }
  const fixed = new Set(runUnits(view).fixed.map(({ message }) => message.seq))
  for (const message of view.transcript) {
    if (message.role !== 'assistant' || !(fixed.has(message.seq) || kept.has(`message:${message.seq}`)))
      continue
    for (const path of message.seen?.files ?? []) paths.add(normalisePath(path, root))
    if (message.runId === view.runId && message.provider === provider) continue
    for (const path of message.calls.filter(({ result }) => result !== undefined).flatMap(callPaths))
      paths.add(normalisePath(path, root))
  }
  return [...paths]
}
