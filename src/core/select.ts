import { type Failure, failure } from '../protocol/execution/errors.ts'
import { type ModelReference, type Provider, splitModelReference } from '../protocol/execution/ids.ts'
import type { ModelCapabilities, ModelDescriptor } from '../protocol/execution/models.ts'
import { err, ok, type Result } from '../protocol/result.ts'

/** What a turn demands of the model that serves it (EC 8.5). */
export type Demands = {
  /** The models of the route, first choice first. */
  references: readonly ModelReference[]
  overrideUsed: boolean
  /** Why only local models may serve the turn; null when remote ones may, too. */
  localBecause: 'required_content' | 'preference' | 'rule' | 'remote_denied' | null
  capabilities: ModelCapabilities
  /** Tokens of everything that cannot be dropped. */
  requiredTokens: number
}

export type Catalogue = {
  /** The descriptor behind a reference, or why there is none. */
  find(provider: Provider, model: string): ModelDescriptor | null
  hasCredential(provider: Provider): boolean
}

export type Selection = {
  /** Every usable model in the order of the route; the first serves, the rest are the fallbacks (EC 8.6). */
  chain: ModelDescriptor[]
  /** The first usable one is not the first choice. */
  fallbackUsed: boolean
}

/** The output allowance that is kept free where a model states none (EC 10.3). */
const DEFAULT_OUTPUT_ALLOWANCE_TOKENS = 256

/** Tokens that a prompt for this model may take (EC 10.3). */
export const promptBudget = (
  model: Pick<ModelDescriptor, 'max_context_tokens' | 'max_output_tokens'>,
): number =>
  Math.max(0, model.max_context_tokens - (model.max_output_tokens ?? DEFAULT_OUTPUT_ALLOWANCE_TOKENS))

type Obstacle = 'unknown' | 'credential' | 'remote' | 'capability' | 'window'

/** Walks the route and keeps every model that may serve, by one predicate for first choice and fallbacks. */
export function selectModels(demands: Demands, catalogue: Catalogue): Result<Selection, Failure> {
  const chain: ModelDescriptor[] = []
  const obstacles: { reference: ModelReference; obstacle: Obstacle }[] = []
  let fallbackUsed = false
  for (const [index, reference] of demands.references.entries()) {
    const { provider, model } = splitModelReference(reference)
    const descriptor = catalogue.find(provider, model)
    const obstacle = descriptor === null ? 'unknown' : obstacleFor(descriptor, demands, catalogue)
    if (obstacle === null && descriptor !== null) {
      if (chain.length === 0) fallbackUsed = index > 0
      if (!chain.some((kept) => kept.provider === provider && kept.model === model)) chain.push(descriptor)
    } else obstacles.push({ reference, obstacle: obstacle ?? 'unknown' })
  }
  return chain.length > 0 ? ok({ chain, fallbackUsed }) : err(refusal(demands, obstacles, catalogue))
}

function obstacleFor(model: ModelDescriptor, demands: Demands, catalogue: Catalogue): Obstacle | null {
  if (demands.localBecause !== null && !model.local) return 'remote'
  if (model.auth === 'api_key' && !catalogue.hasCredential(model.provider)) return 'credential'
  if (missingCapability(model.capabilities, demands.capabilities) !== null) return 'capability'
  if (demands.requiredTokens > promptBudget(model)) return 'window'
  return null
}

function missingCapability(has: ModelCapabilities, needs: ModelCapabilities): string | null {
  for (const [name, needed] of Object.entries(needs)) {
    if (needed && !has[name as keyof ModelCapabilities]) return name
  }
  return null
}

const OBSTACLE_WORDS: Record<Obstacle, string> = {
  unknown: 'not offered by its provider',
  credential: 'no credential for its provider',
  remote: 'remote, and this turn is bound to local models',
  capability: 'lacks a needed capability',
  window: 'its context window is too small',
}

/** The most telling refusal: privacy first, then what all candidates have in common (EC 8.5, 3). */
function refusal(
  demands: Demands,
  obstacles: { reference: ModelReference; obstacle: Obstacle }[],
  catalogue: Catalogue,
): Failure {
  const tried = obstacles
    .map(({ reference, obstacle }) => `${reference} (${OBSTACLE_WORDS[obstacle]})`)
    .join(', ')
  const all = (wanted: Obstacle) => obstacles.every(({ obstacle }) => obstacle === wanted)
  const details = {
    candidates: obstacles.map(({ reference, obstacle }) => ({ model: reference, reason: obstacle })),
  }
  if (demands.localBecause !== null && obstacles.some(({ obstacle }) => obstacle === 'remote')) {
    if (demands.overrideUsed) {
      return failure('override_not_allowed', `an explicit remote model may not see this turn: ${tried}`, {
        ...details,
        reason: demands.localBecause,
      })
    }
    return failure('no_route', `this turn is bound to local models and none is usable: ${tried}`, {
      ...details,
      reason: 'no_local_model',
      local_because: demands.localBecause,
    })
  }
  if (demands.localBecause !== null && !demands.overrideUsed) {
    return failure('no_route', `this turn is bound to local models and none is usable: ${tried}`, {
      ...details,
      reason: 'no_local_model',
      local_because: demands.localBecause,
    })
  }
  if (all('window')) {
    const windows = demands.references.map((reference) => {
      const { provider, model } = splitModelReference(reference)
      return catalogue.find(provider, model)?.max_context_tokens ?? 0
    })
    return failure('context_window_exceeded', `the required context does not fit: ${tried}`, {
      estimated_tokens: demands.requiredTokens,
      max_context_tokens: Math.max(...windows),
    })
  }
  if (all('capability')) {
    const capabilities = Object.entries(demands.capabilities).flatMap(([name, needed]) =>
      needed ? [name] : [],
    )
    return failure('missing_capability', `no model of the route can do what the turn needs: ${tried}`, {
      capability: capabilities.join(', '),
    })
  }
  if (demands.overrideUsed && all('unknown')) {
    return failure('model_not_found', `the explicit model is not offered: ${tried}`, details)
  }
  if (all('credential')) {
    return failure(
      'missing_provider_credentials',
      `no credential for any model of the route: ${tried}`,
      details,
    )
  }
  return failure('fallback_exhausted', `no usable model: ${tried}`, details)
}
