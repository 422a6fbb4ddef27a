import { splitModelReference } from '../../protocol/execution/ids.ts'
import type { DefaultRoute, ExecutePolicy, RoutingPolicy } from '../../protocol/execution/policy.ts'
import { brief, namedRules, type PolicyFinding, type PolicyPlace } from './finding.ts'

/** Providers whose models are in somebody else's cloud, whatever address they are reached by (EC 9, D14). */
const CLOUDS: ReadonlySet<string> = new Set(['anthropic', 'gemini', 'openai'])

/** A default route that is missing, names that are taken, models that are repeated (EC 24.2). */
export function routeFindings({ rules, default: route }: RoutingPolicy): PolicyFinding[] {
  const findings: PolicyFinding[] = []
  if (!route) {
    const message =
      'there is no default route: a turn that no rule matches is refused with `no_route`; set `routing.default.model`'
    findings.push({ code: 'missing_default_route', at: ['routing', 'default'], message })
  } else findings.push(...repeatedFallbacks(route, ['routing', 'default']))
  const taken = new Set<string>()
  rules.forEach((rule, index) => {
    const at: PolicyPlace = ['routing', 'rules', index]
    if (taken.has(rule.name)) {
      const message = `the name "${brief(rule.name)}" is taken by an earlier rule, so traces do not tell the two apart; rename one`
      findings.push({ code: 'duplicate_rule_name', at: [...at, 'name'], message })
    }
    taken.add(rule.name)
    findings.push(...repeatedFallbacks(rule, at))
  })
  return findings
}

function repeatedFallbacks({ model, fallbacks }: DefaultRoute, at: PolicyPlace): PolicyFinding[] {
  const named = new Set([model])
  return fallbacks.flatMap((fallback, i) => {
    if (!named.has(fallback)) {
      named.add(fallback)
      return []
    }
    const why = fallback === model ? 'as the model and as its own fallback' : 'among the fallbacks'
    const message = `${brief(fallback)} is named twice, ${why}: a model that failed is not tried again; take it out`
    return [{ code: 'repeated_fallback', at: [...at, 'fallbacks', i], message }]
  })
}

/** Routes that the policy's own locality and privacy modes leave without a model (EC 8.5, 9). */
export function localityFindings({ routing, privacy }: ExecutePolicy): PolicyFinding[] {
  const findings: PolicyFinding[] = []
  const bound = routing.rules.filter(({ local_only }) => local_only)
  routing.rules.forEach(({ name, local_only, model, fallbacks }, index) => {
    if (!local_only || ![model, ...fallbacks].every(isOfCloud)) return
    const message = `rule \`${brief(name)}\` is \`local_only\` and names models of clouds alone, so every turn that it wins is refused; name a local model, such as one of \`ollama\``
    findings.push({
      code: 'local_only_without_local_model',
      at: ['routing', 'rules', index, 'model'],
      message,
    })
  })
  if (privacy.local?.mode !== 'deny') return findings
  const at: PolicyPlace = ['privacy', 'local', 'mode']
  if (privacy.remote?.mode === 'deny') {
    const message =
      'neither local nor remote models may be used, so every turn is refused; set one of the two modes to `ask` or `allow`'
    findings.push({ code: 'no_model_allowed', at, message })
  } else if (bound.length > 0) {
    const message = `local models are denied, and ${namedRules(bound)} may use no others, so every turn that they win is refused; set the mode to \`ask\` or \`allow\``
    findings.push({ code: 'local_models_denied', at, message })
  }
  return findings
}

const isOfCloud = (reference: string): boolean => CLOUDS.has(splitModelReference(reference).provider)
