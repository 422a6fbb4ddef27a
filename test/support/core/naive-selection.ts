/** Which models of a route may serve, and what is said when none may, from the contract's words alone (EC 8.5). */

import type { ModelDescriptor } from '../../../src/protocol/execution/models.ts'
import { budgetOf, type NaiveCase } from './naive-context.ts'

export type Needs = {
  localOnly: boolean
  remoteOnly: boolean
  capabilities: string[]
  thinks: boolean
  prefersTools: boolean
  tokens: number
}

export type Judgement =
  | { k: 'usable'; model: ModelDescriptor }
  | { k: 'unknown' | 'down' | 'no_credential' | 'place' | 'rule_capability' | 'own_capability' | 'window' }

export const modelNamed = ({ models, down }: NaiveCase, reference: string): ModelDescriptor | undefined =>
  models.find(({ provider, model }) => `${provider}/${model}` === reference && !down.includes(provider))

/** Whether a model may serve; the first thing that stands against it, in the contract's order. */
export function judge(given: NaiveCase, reference: string, needs: Needs): Judgement {
  const provider = reference.slice(0, reference.indexOf('/'))
  const model = modelNamed(given, reference)
  if (model === undefined) return { k: given.down.includes(provider) ? 'down' : 'unknown' }
  if (model.auth === 'api_key' && given.without.includes(provider)) return { k: 'no_credential' }
  if (model.local ? needs.remoteOnly : needs.localOnly) return { k: 'place' }
  const has = (capability: string): boolean =>
    Object.entries(model.capabilities).some(([name, value]) => name === capability && value === true)
  if (!needs.capabilities.every(has)) return { k: 'rule_capability' }
  if (needs.thinks && !has('reasoning')) return { k: 'own_capability' }
  if (needs.tokens > budgetOf(model)) return { k: 'window' }
  return { k: 'usable', model }
}

/** One reason for all models of a route has a code of its own, where it is not that nobody knows them. */
const CODE: Record<Exclude<Judgement['k'], 'usable'>, { route: string; alone: string }> = {
  unknown: { route: 'fallback_exhausted', alone: 'model_not_found' },
  down: { route: 'fallback_exhausted', alone: 'provider_unavailable' },
  no_credential: { route: 'missing_provider_credentials', alone: 'missing_provider_credentials' },
  place: { route: 'no_route', alone: 'no_route' },
  rule_capability: { route: 'missing_capability', alone: 'missing_capability' },
  own_capability: { route: 'routing_unsupported_capability', alone: 'routing_unsupported_capability' },
  window: { route: 'context_window_exceeded', alone: 'context_window_exceeded' },
}

const isCapability = (k: Judgement['k']): boolean => k === 'rule_capability' || k === 'own_capability'

export function refusal(verdicts: readonly Judgement[], { localOnly }: Needs, isOverride: boolean): string {
  if (!isOverride && (localOnly || verdicts.some(({ k }) => k === 'place'))) return 'no_route'
  const [first] = verdicts
  if (first === undefined || first.k === 'usable') return 'fallback_exhausted'
  // A capability is one reason, whoever asks for it; what the rule asks for is told first.
  if (verdicts.every(({ k }) => isCapability(k)))
    return CODE[verdicts.some(({ k }) => k === 'rule_capability') ? 'rule_capability' : 'own_capability']
      .route
  if (!verdicts.every(({ k }) => k === first.k)) return 'fallback_exhausted'
  return isOverride ? CODE[first.k].alone : CODE[first.k].route
}
