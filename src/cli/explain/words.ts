import type { ClassificationOutcome, RouteOutcome } from '../../core/replay.ts'
import { promptBudget } from '../../core/select.ts'
import type { ModelCapabilities } from '../../protocol/execution/models.ts'
import type { ExecutePolicy } from '../../protocol/execution/policy.ts'
import type { ConsideredModel, LocalReason, Payload, RoutingInputs } from '../../protocol/execution/trace.ts'

/** What decided the route besides its reason: the rule's place in the policy, and how hard the model is to think. */
export function placeOf(
  { matched_rule, inputs }: Extract<Payload, { type: 'routing_decision' }>,
  policy: ExecutePolicy | null,
): string[] {
  const rules = policy?.routing.rules ?? []
  const index = matched_rule == null ? -1 : rules.findIndex(({ name }) => name === matched_rule)
  const parts = [
    ...(index < 0 ? [] : [`policy.routing.rules.${index}`]),
    ...(inputs === undefined ? [] : [`effort ${inputs.effort}`]),
  ]
  return parts.length === 0 ? [] : [parts.join(', ')]
}

/** Why a model of the route was chosen or passed over. One that the user then declined was chosen, and not called. */
export function sayConsidered(considered: ConsideredModel, inputs: RoutingInputs): string {
  switch (considered.verdict) {
    case 'used':
      return 'chosen'
    case 'not_reached':
      return 'not tried'
    case 'failed':
      return 'called, and did not answer'
    case 'absent':
      return 'passed over: its provider does not offer it'
    case 'unavailable':
      return 'passed over: its provider cannot be asked'
    case 'credential':
      return 'passed over: there is no key for its provider'
    case 'remote':
      return 'passed over: it is remote'
    case 'local':
      return 'passed over: it is local'
    case 'capability':
      return `passed over: it lacks ${lacking(considered, inputs).join(', ') || 'what the turn needs'}`
    case 'window':
      return `passed over: its window is too small${windowOf(considered, inputs)}`
  }
}

function lacking({ capabilities = {} }: ConsideredModel, inputs: RoutingInputs): string[] {
  const needed: ModelCapabilities = { ...inputs.needed_capabilities, ...inputs.rule_capabilities }
  if (inputs.may_call_tools) needed.tools = true
  return Object.entries(needed).flatMap(([name, needs]) =>
    needs && !capabilities[name as keyof ModelCapabilities] ? [name] : [],
  )
}

function windowOf(
  { max_context_tokens, max_output_tokens }: ConsideredModel,
  { required_tokens }: RoutingInputs,
): string {
  if (max_context_tokens === undefined) return ''
  const room = promptBudget({ max_context_tokens, max_output_tokens: max_output_tokens ?? null })
  return ` (${room} tokens for a prompt, ${required_tokens} needed)`
}

export function sayLocalReason({ cause, about }: LocalReason): string {
  switch (cause) {
    case 'required_content':
      return `content that cannot be left out: ${about ?? 'it is not told which'}`
    case 'preference':
      return `the client asked for it${about === undefined ? '' : ` (${about})`}`
    case 'rule':
      return `the rule${about === undefined ? '' : ` \`${about}\``} is local_only`
    case 'remote_denied':
      return 'privacy.remote.mode is deny'
    case 'remote_declined':
      return 'the user declined to show it to a remote model'
  }
}

/** The permissions that the rule of a route sets, where they are not those of the policy anyway. */
export function sayNarrowed({ tools, routing }: ExecutePolicy, rule: string): string[] {
  const required = routing.rules.find(({ name }) => name === rule)?.required_permissions?.permissions ?? {}
  return Object.entries(required).flatMap(([key, mode]) => {
    const before = Object.hasOwn(tools.permissions, key) ? tools.permissions[key] : undefined
    return before === mode ? [] : [`${key}: ${mode} by the rule, ${before ?? 'unset'} in the policy`]
  })
}

export const sayClassification = ({ intent, source, matched_rule }: ClassificationOutcome): string =>
  source === 'explicit'
    ? `${intent} by command`
    : `${intent} by ${matched_rule === null ? 'default' : `rule ${matched_rule}`}`

export function sayRoute(outcome: RouteOutcome): string {
  if ('failure' in outcome) return `no model (${outcome.failure})`
  const rule = outcome.matched_rule === null ? 'the default route' : `rule \`${outcome.matched_rule}\``
  if ('needs' in outcome) return `open, since it does not tell of ${outcome.needs}, which ${rule} leads to`
  const { model, override_used, fallback_used } = outcome
  return `${model} by ${override_used ? 'the explicit model' : rule}${fallback_used ? ', as a fallback' : ''}`
}
