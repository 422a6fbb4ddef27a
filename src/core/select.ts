import { type Failure, failure } from '../protocol/execution/errors.ts'
import { type ModelReference, type Provider, splitModelReference } from '../protocol/execution/ids.ts'
import type { ModelCapabilities, ModelDescriptor } from '../protocol/execution/models.ts'
import type { ConsideredModel, LocalReason } from '../protocol/execution/trace.ts'

/**
 * What binds a turn to local models: content that cannot be left out, a preference of the client, the rule that won, mode
 * `deny` of the policy, or a disclosure that the user declined.
 */
export type LocalCause = LocalReason['cause']

/** Why only local models may serve a turn, in words. */
export const sayLocal = (cause: LocalCause, about?: string): string =>
  about === undefined ? cause.replace('_', ' ') : `${cause.replace('_', ' ')}: ${about}`

/** What a turn demands of the model that serves it (EC 8.5). */
export type Demands = {
  /** The models of the route, first choice first. */
  references: readonly ModelReference[]
  overrideUsed: boolean
  /** Why only local models may serve the turn, the weightiest reason; null when remote ones may, too. */
  localBecause: LocalCause | null
  /** What that reason is about, for people: a path and the pattern that it matches, or the name of the rule. */
  localAbout?: string
  /** Local models may not serve the turn: mode `deny` of `privacy.local`, or the user declined. */
  localDenied: boolean
  /** What the winning rule requires by name. */
  capabilities: ModelCapabilities
  /** What the turn itself needs: to see the pictures, to think hard (EC 8.5). */
  derived: ModelCapabilities
  /** Tools may be called. A model that can is taken first; one that cannot still answers, without them. */
  mayCallTools: boolean
  /** Tokens of everything that cannot be dropped. */
  requiredTokens: number
}

/**
 * What is known of a model: its descriptor, that its provider does not offer it, why it cannot be asked, or nothing yet.
 * `remote`: none of the provider's models is local, whichever it offers (EC 9).
 */
export type Lookup =
  | { k: 'found'; model: ModelDescriptor }
  | { k: 'absent'; remote?: true }
  | { k: 'unlisted'; remote?: true }
  | { k: 'unavailable'; failure: Failure; remote?: true }

export type Catalogue = {
  find(provider: Provider, model: string): Lookup
  hasCredential(provider: Provider): boolean
}

/** The model that serves, the provider whose models have to be listed first, or why there is none. */
export type Choice =
  | { k: 'use'; model: ModelDescriptor; reference: ModelReference; fallbackUsed: boolean }
  | { k: 'list'; provider: Provider; models: string[] }
  | { k: 'none'; failure: Failure }

/** The output allowance that is kept free where a model states none (EC 10.3). */
const DEFAULT_OUTPUT_ALLOWANCE_TOKENS = 256

/** Tokens that a prompt for this model may take (EC 10.3). */
export const promptBudget = (
  model: Pick<ModelDescriptor, 'max_context_tokens' | 'max_output_tokens'>,
): number =>
  Math.max(0, model.max_context_tokens - (model.max_output_tokens ?? DEFAULT_OUTPUT_ALLOWANCE_TOKENS))

type Obstacle = Exclude<ConsideredModel['verdict'], 'used' | 'not_reached'>

/**
 * Walks the route and takes the first model that may serve, by one predicate for the first choice and the fallbacks
 * (EC 8.5, 8.6). `failed` are those that were tried in this turn and did not answer. A provider is only asked for its
 * models when the walk reaches one of them.
 */
export function chooseModel(
  demands: Demands,
  catalogue: Catalogue,
  failed: ReadonlySet<ModelReference> = new Set(),
): Choice {
  const choice = walkRoute(demands, demands.mayCallTools, catalogue, failed)
  return choice.k === 'none' && demands.mayCallTools ? walkRoute(demands, false, catalogue, failed) : choice
}

function walkRoute(
  demands: Demands,
  needsTools: boolean,
  catalogue: Catalogue,
  failed: ReadonlySet<ModelReference>,
): Choice {
  const obstacles: { reference: ModelReference; obstacle: Obstacle }[] = []
  for (const [index, reference] of demands.references.entries()) {
    const { provider, model } = splitModelReference(reference)
    const found = catalogue.find(provider, model)
    // A turn bound to local models does not even ask a remote provider what it offers (U37), and what others have learnt
    // of it meanwhile changes nothing.
    const ruledOut = isRuledOut(found, demands)
    if (found.k === 'unlisted' && !ruledOut) {
      return { k: 'list', provider, models: modelsOf(provider, demands) }
    }
    let obstacle: Obstacle
    if (failed.has(reference)) obstacle = 'failed'
    else if (ruledOut || found.k === 'unlisted') obstacle = 'remote'
    else if (found.k !== 'found') obstacle = found.k
    else {
      const hindrance = obstacleFor(found.model, demands, needsTools, catalogue)
      if (hindrance === null)
        return { k: 'use', model: found.model, reference, fallbackUsed: index > 0 || failed.size > 0 }
      obstacle = hindrance
    }
    obstacles.push({ reference, obstacle })
  }
  return { k: 'none', failure: refusal(demands, obstacles, catalogue) }
}

const isRuledOut = (found: Lookup, { localBecause }: Demands): boolean =>
  found.k !== 'found' && found.remote === true && localBecause !== null

/**
 * The whole route as it stood when `used` was chosen, or when nothing was: what was known of each model, and why it was or
 * was not taken.
 */
export function consideredModels(
  demands: Demands,
  catalogue: Catalogue,
  failed: ReadonlySet<ModelReference>,
  used: ModelReference | null,
): ConsideredModel[] {
  const usedModel = used === null ? null : findModel(used, catalogue)
  const needsTools = demands.mayCallTools && usedModel?.capabilities.tools === true
  // A model that calls no tools is taken on the second walk: the first one has asked about the whole route.
  const askedAll = demands.mayCallTools && !needsTools
  let behind = false
  return demands.references.map((reference) => {
    const facts = factsOf(reference, catalogue)
    if (!behind && reference === used && !failed.has(reference)) {
      behind = true
      return { model: reference, verdict: 'used', ...facts }
    }
    const verdict = verdictOn(reference, demands, needsTools, catalogue, failed)
    // Where none was chosen, one that could have served was left for a failure that no other model helps against.
    if (!behind) return { model: reference, verdict: verdict ?? 'not_reached', ...facts }
    const known = verdict === 'failed' || askedAll ? verdict : null
    return { model: reference, verdict: known ?? 'not_reached', ...facts }
  })
}

/** Why a model cannot be taken; null when it can. */
function verdictOn(
  reference: ModelReference,
  demands: Demands,
  needsTools: boolean,
  catalogue: Catalogue,
  failed: ReadonlySet<ModelReference>,
): ConsideredModel['verdict'] | null {
  if (failed.has(reference)) return 'failed'
  const { provider, model } = splitModelReference(reference)
  const found = catalogue.find(provider, model)
  if (isRuledOut(found, demands)) return 'remote'
  if (found.k === 'unlisted') return found.remote ? 'remote' : 'not_reached'
  if (found.k !== 'found') return found.k
  return obstacleFor(found.model, demands, needsTools, catalogue)
}

function findModel(reference: ModelReference, catalogue: Catalogue): ModelDescriptor | null {
  const { provider, model } = splitModelReference(reference)
  const found = catalogue.find(provider, model)
  return found.k === 'found' ? found.model : null
}

function factsOf(
  reference: ModelReference,
  catalogue: Catalogue,
): Omit<ConsideredModel, 'model' | 'verdict'> {
  const model = findModel(reference, catalogue)
  if (model === null) return {}
  return {
    local: model.local,
    auth: model.auth,
    has_credential: catalogue.hasCredential(model.provider),
    capabilities: model.capabilities,
    max_context_tokens: model.max_context_tokens,
    ...(model.max_output_tokens === null ? {} : { max_output_tokens: model.max_output_tokens }),
  }
}

/** Every model of the route that this provider would serve: one listing answers for all. */
const modelsOf = (wanted: Provider, { references }: Demands): string[] =>
  references
    .map(splitModelReference)
    .filter(({ provider }) => provider === wanted)
    .map(({ model }) => model)

function obstacleFor(
  model: ModelDescriptor,
  demands: Demands,
  needsTools: boolean,
  catalogue: Catalogue,
): Obstacle | null {
  if (demands.localBecause !== null && !model.local) return 'remote'
  if (demands.localDenied && model.local) return 'local'
  if (model.auth === 'api_key' && !catalogue.hasCredential(model.provider)) return 'credential'
  const missing = missingCapabilities(model.capabilities, { ...demands.derived, ...demands.capabilities })
  if (missing.length > 0 || (needsTools && !model.capabilities.tools)) return 'capability'
  if (demands.requiredTokens > promptBudget(model)) return 'window'
  return null
}

const missingCapabilities = (has: ModelCapabilities, needs: ModelCapabilities): string[] =>
  Object.entries(needs).flatMap(([name, needed]) =>
    needed && !has[name as keyof ModelCapabilities] ? [name] : [],
  )

const OBSTACLE_WORDS: Record<Obstacle, string> = {
  absent: 'not offered by its provider',
  unavailable: 'its provider cannot be asked',
  failed: 'did not answer',
  credential: 'no credential for its provider',
  remote: 'remote, and this turn is bound to local models',
  local: 'local, and local models may not serve this turn',
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
  if (demands.localBecause !== null) {
    const remote = obstacles.some(({ obstacle }) => obstacle === 'remote')
    // Content that is bound is the contract's reason for 403 (EC 3); a disclosure that was declined is none (EC 13).
    const bound = demands.localBecause !== 'remote_declined'
    const why = sayLocal(demands.localBecause, demands.localAbout)
    const about = demands.localAbout === undefined ? {} : { local_about: demands.localAbout }
    if (demands.overrideUsed && remote && bound) {
      return failure(
        'override_not_allowed',
        `an explicit remote model may not see this turn (${why}): ${tried}`,
        {
          ...details,
          reason: demands.localBecause,
          ...about,
        },
      )
    }
    if (!demands.overrideUsed || (remote && !bound)) {
      return failure('no_route', `this turn is bound to local models (${why}) and none is usable: ${tried}`, {
        ...details,
        reason: 'no_local_model',
        local_because: demands.localBecause,
        ...about,
      })
    }
  }
  if (demands.localDenied && obstacles.some(({ obstacle }) => obstacle === 'local')) {
    return failure('no_route', `local models may not serve this turn and no other is usable: ${tried}`, {
      ...details,
      reason: 'local_denied',
    })
  }
  if (all('window')) {
    const windows = demands.references.map((reference) => {
      const { provider, model } = splitModelReference(reference)
      const found = catalogue.find(provider, model)
      return found.k === 'found' ? found.model.max_context_tokens : 0
    })
    return failure('context_window_exceeded', `the required context does not fit: ${tried}`, {
      estimated_tokens: demands.requiredTokens,
      max_context_tokens: Math.max(...windows),
    })
  }
  if (all('capability')) {
    const models = demands.references.flatMap((reference) => {
      const { provider, model } = splitModelReference(reference)
      const found = catalogue.find(provider, model)
      return found.k === 'found' ? [found.model] : []
    })
    const lacking = (needs: ModelCapabilities) => [
      ...new Set(models.flatMap(({ capabilities }) => missingCapabilities(capabilities, needs))),
    ]
    const required = lacking(demands.capabilities)
    const capability = (required.length > 0 ? required : lacking(demands.derived)).join(', ')
    return failure(
      required.length > 0 ? 'missing_capability' : 'routing_unsupported_capability',
      `no model of the route can do what the turn needs (${capability}): ${tried}`,
      { capability },
    )
  }
  if (demands.overrideUsed && all('absent')) {
    return failure('model_not_found', `the explicit model is not offered: ${tried}`, details)
  }
  const broken = obstacles.map(({ reference }) => brokenConfiguration(reference, catalogue))
  if (broken[0] && broken.every((one) => one !== null)) return broken[0]
  const [only] = demands.references
  if (demands.overrideUsed && only !== undefined && all('unavailable')) {
    const { provider, model } = splitModelReference(only)
    const found = catalogue.find(provider, model)
    if (found.k === 'unavailable') return found.failure
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

/** A provider whose own configuration contradicts itself says so, rather than being called unreachable (EC 21). */
function brokenConfiguration(reference: ModelReference, catalogue: Catalogue): Failure | null {
  const { provider, model } = splitModelReference(reference)
  const found = catalogue.find(provider, model)
  return found.k === 'unavailable' && found.failure.code === 'invalid_provider_configuration'
    ? found.failure
    : null
}
