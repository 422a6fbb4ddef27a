import type { Failure } from '../protocol/execution/errors.ts'
import { type ModelReference, splitModelReference } from '../protocol/execution/ids.ts'
import type { ModelDescriptor } from '../protocol/execution/models.ts'
import type { RoutingInputs } from '../protocol/execution/trace.ts'
import { recall } from './memory.ts'
import type { PreparedCall, TurnPlan } from './resolve.ts'
import { firstMatches } from './route.ts'
import type { TurnReport } from './run/inputs.ts'
import type { LastRoute } from './run/state.ts'
import type { TracePayload } from './run/writes.ts'
import { type Catalogue, consideredModels, sayLocal } from './select.ts'

/** Paths that a trace tells one by one; of further ones only those that a rule matches. */
const MAX_TOLD_PATHS = 200

/** Where a decision was made: what was known of the models, which of them had failed, and under which key the policy is kept. */
export type DecisionScene = {
  catalogue: Catalogue
  failed: ReadonlySet<ModelReference>
  /** Null where none was left to choose. */
  used: ModelReference | null
  policyDigest: string | null
}

/** The rule that chose the model, in a word: for records of calls (U38). */
export const chosenBy = ({ route }: TurnPlan): string =>
  route.rule?.name ?? (route.overrideUsed ? 'explicit model' : 'default route')

/** What reports say of this turn when this model serves it. */
export function reportOf(
  { classification, route, demands }: TurnPlan,
  { outcome }: PreparedCall,
  { provider, model, capabilities }: ModelDescriptor,
  fallbackUsed: boolean,
): TurnReport {
  const notes = [
    route.reason,
    ...(fallbackUsed ? ['an earlier choice was not usable, fallback'] : []),
    ...(demands.localBecause === null
      ? []
      : [`local models only (${sayLocal(demands.localBecause, demands.localAbout)})`]),
    ...(demands.mayCallTools && !capabilities.tools ? ['this model calls no tools'] : []),
  ]
  return {
    classification,
    routing: {
      intent: classification.intent,
      provider,
      model,
      ...(route.rule === null ? {} : { matched_rule: route.rule.name }),
      fallback_used: fallbackUsed,
      override_used: route.overrideUsed,
      reason: notes.join('; '),
    },
    context: outcome,
  }
}

/** The decision chain of a turn, once: classification, route, every candidate's verdict (EC 19). */
export const decisionTraces = (
  plan: TurnPlan,
  call: PreparedCall,
  report: TurnReport,
  scene: DecisionScene,
): TracePayload[] => [
  { type: 'classification', ...plan.classification, inputs: plan.classificationInputs },
  ...routeTraces(plan, call, report, scene),
]

/** The same for a turn whose classification is told already: the decision led to another model. */
export function routeTraces(
  plan: TurnPlan,
  { verdicts }: PreparedCall,
  report: TurnReport,
  scene: DecisionScene,
): TracePayload[] {
  const items = verdicts.map(({ candidate: { path, kind }, included, reason }) => ({
    ...(path === undefined ? {} : { path }),
    kind,
    included,
    reason,
  }))
  const older = plan.view.olderMessages
  if (older > 0) items.push({ kind: 'message', included: false, reason: `${older} older messages` })
  const olderFacts = recall(plan.view.memories).older
  if (olderFacts > 0) items.push({ kind: 'memory', included: false, reason: `${olderFacts} older facts` })
  return [
    routingTrace(plan, report, scene),
    ...(items.length === 0 ? [] : [{ type: 'context_selection_list' as const, items }]),
  ]
}

/** The route alone, with what it was decided from. */
export function routingTrace(plan: TurnPlan, { routing }: TurnReport, scene: DecisionScene): TracePayload {
  const { intent: _, ...told } = routing
  return { type: 'routing_decision', ...told, inputs: routingInputs(plan, scene) }
}

/**
 * That no model of the route could serve the turn, or that the last one asked did not answer: what was meant, what was
 * known of each model, and what the turn ended with. `classified`: the trace tells of the classification already.
 */
export function failureTraces(
  plan: TurnPlan,
  { code, message }: Failure,
  scene: DecisionScene,
  classified: boolean,
): { route: LastRoute; traces: TracePayload[] } {
  const { classification, route } = plan
  const meant = [...route.references].reverse().find((reference) => scene.failed.has(reference))
  const { provider, model } = splitModelReference(meant ?? route.references[0] ?? '')
  const matched = route.rule === null ? {} : { matched_rule: route.rule.name }
  return {
    route: {
      taskType: classification.intent,
      provider,
      model,
      ...(route.rule === null ? {} : { matchedRule: route.rule.name }),
    },
    traces: [
      ...(classified
        ? []
        : [{ type: 'classification' as const, ...classification, inputs: plan.classificationInputs }]),
      {
        type: 'routing_decision',
        provider,
        model,
        ...matched,
        fallback_used: scene.failed.size > 1,
        override_used: route.overrideUsed,
        reason: route.reason,
        inputs: routingInputs(plan, scene),
        failure: { code, message },
      },
    ],
  }
}

function routingInputs(
  { view, route, candidatePaths, localReasons, demands }: TurnPlan,
  { catalogue, failed, used, policyDigest }: DecisionScene,
): RoutingInputs {
  const { input, policy } = view.runInput
  const further = candidatePaths.slice(MAX_TOLD_PATHS)
  const matching = firstMatches(policy.routing, further)
  const leftOut = further.length - matching.length
  return {
    ...(policyDigest === null ? {} : { policy: policyDigest }),
    ...(input.explicit_model == null ? {} : { explicit_model: input.explicit_model }),
    paths: [...candidatePaths.slice(0, MAX_TOLD_PATHS), ...matching],
    ...(leftOut === 0 ? {} : { paths_left_out: leftOut }),
    effort: route.effort,
    ...(localReasons.length === 0 ? {} : { local_because: localReasons }),
    ...(demands.localDenied ? { local_denied: true } : {}),
    rule_capabilities: demands.capabilities,
    needed_capabilities: demands.derived,
    may_call_tools: demands.mayCallTools,
    required_tokens: demands.requiredTokens,
    models: consideredModels(demands, catalogue, failed, used),
  }
}
