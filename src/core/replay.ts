import { type ModelReference, type Provider, splitModelReference } from '../protocol/execution/ids.ts'
import type { ModelDescriptor } from '../protocol/execution/models.ts'
import type { ExecutePolicy, TaskIntent } from '../protocol/execution/policy.ts'
import type { ConsideredModel, Payload, RoutingInputs } from '../protocol/execution/trace.ts'
import { classifyFrom } from './classify.ts'
import { planRoute, type RoutePlan } from './route.ts'
import { type Catalogue, chooseModel, type Demands, type Lookup } from './select.ts'

/**
 * Decides a turn again from its trace (EC 19): the same inputs under the same policy must come to the same end. What
 * differs was decided by other rules than these, or is not what the router wrote.
 */

export type ClassificationPayload = Extract<Payload, { type: 'classification' }>
export type RoutingPayload = Extract<Payload, { type: 'routing_decision' }>

/** What the trace says and what comes of deciding again; `unknown` where there is too little to decide from. */
export type Check<Outcome> =
  | { k: 'same' }
  | { k: 'differs'; was: Outcome; is: Outcome }
  | { k: 'unknown'; reason: string }

export type ClassificationOutcome = Pick<ClassificationPayload, 'intent' | 'source'> & {
  /** Its place in the policy; null for none. */
  matched_rule: number | null
}

/** A turn that a model serves, or why none does, or the model that would have to be known to tell. */
export type RouteOutcome =
  | { model: ModelReference; matched_rule: string | null; fallback_used: boolean; override_used: boolean }
  | { failure: string }
  | { needs: ModelReference; matched_rule: string | null }

export type ReplayedTurn = { classification: Check<ClassificationOutcome>; routing: Check<RouteOutcome> }

/**
 * @param turn.classification null where the trace has none to read
 * @param turn.taskType the intent that the event of the route carries, which stands in for a missing classification
 * @param turn.policy the policy that the route names; null where the trace does not hold it
 */
export function replayTurn({
  classification,
  routing,
  taskType,
  policy,
}: {
  classification: ClassificationPayload | null
  routing: RoutingPayload
  taskType: TaskIntent
  policy: ExecutePolicy | null
}): ReplayedTurn {
  return {
    classification: replayClassification(classification, policy),
    routing: replayRouting(routing, classification?.intent ?? taskType, policy),
  }
}

const NO_INPUTS = 'the trace does not tell what it was decided from'
const NO_POLICY = 'the trace does not hold its policy'

function replayClassification(
  payload: ClassificationPayload | null,
  policy: ExecutePolicy | null,
): Check<ClassificationOutcome> {
  if (payload === null) return { k: 'unknown', reason: 'the trace holds no classification of it' }
  if (payload.inputs === undefined) return { k: 'unknown', reason: NO_INPUTS }
  if (policy === null) return { k: 'unknown', reason: NO_POLICY }
  const outcome = ({
    intent,
    source,
    matched_rule = null,
  }: Pick<ClassificationPayload, 'intent' | 'source' | 'matched_rule'>) => ({ intent, source, matched_rule })
  const was = outcome(payload)
  const is = outcome(classifyFrom(payload.inputs, policy.classification))
  return was.intent === is.intent && was.source === is.source && was.matched_rule === is.matched_rule
    ? { k: 'same' }
    : { k: 'differs', was, is }
}

function replayRouting(
  payload: RoutingPayload,
  intent: TaskIntent,
  policy: ExecutePolicy | null,
): Check<RouteOutcome> {
  const { inputs } = payload
  if (inputs === undefined) return { k: 'unknown', reason: NO_INPUTS }
  if (policy === null) return { k: 'unknown', reason: NO_POLICY }
  const is = routeAgain(inputs, intent, policy)
  if (payload.failure !== undefined) {
    const { code } = payload.failure
    return 'failure' in is && is.failure === code
      ? { k: 'same' }
      : { k: 'differs', was: { failure: code }, is }
  }
  const was: RouteOutcome = {
    model: `${payload.provider}/${payload.model}`,
    matched_rule: payload.matched_rule ?? null,
    fallback_used: payload.fallback_used,
    override_used: payload.override_used,
  }
  return 'model' in is &&
    was.model === is.model &&
    was.matched_rule === is.matched_rule &&
    was.fallback_used === is.fallback_used &&
    was.override_used === is.override_used
    ? { k: 'same' }
    : { k: 'differs', was, is }
}

function routeAgain(inputs: RoutingInputs, intent: TaskIntent, policy: ExecutePolicy): RouteOutcome {
  const route = planRoute({
    intent,
    candidatePaths: inputs.paths,
    explicitModel: inputs.explicit_model ?? null,
    routing: policy.routing,
  })
  if (!route.ok) return { failure: route.error.code }
  const failed = inputs.models.filter(({ verdict }) => verdict === 'failed').map(({ model }) => model)
  const choice = chooseModel(
    demandsOf(inputs, route.value, policy),
    catalogueOf(inputs.models),
    new Set(failed),
  )
  const matched_rule = route.value.rule?.name ?? null
  if (choice.k === 'none') return { failure: choice.failure.code }
  if (choice.k === 'list') return { needs: `${choice.provider}/${choice.models[0]}`, matched_rule }
  return {
    model: choice.reference,
    matched_rule,
    fallback_used: choice.fallbackUsed,
    override_used: route.value.overrideUsed,
  }
}

/** What the policy itself says of locality and capabilities counts, also where the trace leaves it out. */
function demandsOf(
  inputs: RoutingInputs,
  { references, overrideUsed, rule }: RoutePlan,
  policy: ExecutePolicy,
): Demands {
  const { remote, local } = policy.privacy
  const byPolicy = rule?.local_only ? 'rule' : remote?.mode === 'deny' ? 'remote_denied' : null
  return {
    references,
    overrideUsed,
    localBecause: inputs.local_because?.[0]?.cause ?? byPolicy,
    localDenied: inputs.local_denied === true || local?.mode === 'deny',
    capabilities: rule?.requires_capabilities ?? {},
    derived: inputs.needed_capabilities,
    mayCallTools: inputs.may_call_tools,
    requiredTokens: inputs.required_tokens,
  }
}

/** What was known of the models then. One that was not reached may be unknown: deciding again must not reach it either. */
function catalogueOf(models: readonly ConsideredModel[]): Catalogue {
  const lookups = new Map<ModelReference, Lookup>()
  const credentials = new Set<Provider>()
  for (const considered of models) {
    const known = lookups.get(considered.model)
    if (known === undefined || known.k === 'unlisted') lookups.set(considered.model, lookupOf(considered))
    if (considered.has_credential === true) credentials.add(splitModelReference(considered.model).provider)
  }
  return {
    find: (provider, model) => lookups.get(`${provider}/${model}`) ?? { k: 'unlisted' },
    hasCredential: (provider) => credentials.has(provider),
  }
}

function lookupOf(considered: ConsideredModel): Lookup {
  const { verdict } = considered
  if (verdict === 'absent' || verdict === 'failed') return { k: 'absent' }
  if (verdict === 'unavailable') {
    const message = 'its provider could not be asked'
    return { k: 'unavailable', failure: { code: 'provider_unavailable', message } }
  }
  const model = descriptorOf(considered)
  if (model !== null) return { k: 'found', model }
  return { k: 'unlisted', ...(verdict === 'remote' ? { remote: true } : {}) }
}

/** The facts that selection asks for; null when the trace does not have them all. */
function descriptorOf(considered: ConsideredModel): ModelDescriptor | null {
  const { local, auth, capabilities, max_context_tokens } = considered
  if (
    local === undefined ||
    auth === undefined ||
    capabilities === undefined ||
    max_context_tokens === undefined
  )
    return null
  return {
    ...splitModelReference(considered.model),
    display_name: null,
    local,
    auth,
    capabilities,
    max_context_tokens,
    max_output_tokens: considered.max_output_tokens ?? null,
    default_parameters: {},
  }
}
