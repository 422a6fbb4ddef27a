import type { ExecutePolicy, RoutingRule } from '../protocol/execution/policy.ts'
import { compileGlob } from '../protocol/glob.ts'
import { type Finding, type Layer, layerFinding } from './config-file.ts'
import { type RuleOrigin, stricter } from './config-merge.ts'
import type { KeyPath } from './toml-position.ts'

/** What a well-formed policy may still get wrong (EC 24.2); everything is collected. */
export function checkPolicy(policy: ExecutePolicy, layers: readonly Layer[], origin: RuleOrigin): Finding[] {
  const { rules, default: route } = policy.routing
  const findings: Finding[] = []
  const about = (layer: Layer, at: KeyPath, message: string) =>
    findings.push(layerFinding(layer, at, message))

  for (const layer of layers) {
    const { privacy } = layer.config
    badGlobs(privacy?.restricted_paths, (i, why) => about(layer, ['privacy', 'restricted_paths', i], why))
    badGlobs(privacy?.remote?.blocked_paths, (i, why) =>
      about(layer, ['privacy', 'remote', 'blocked_paths', i], why),
    )
  }
  if (route) {
    const repeated = repeatedModel(route.model, route.fallbacks)
    if (repeated) about(origin.defaultRoute, ['routing', 'default', 'fallbacks'], repeated)
  }
  rules.forEach((rule, index) => {
    const at = ['routing', 'rules', index]
    badGlobs(rule.paths, (i, why) => about(origin.routing, [...at, 'paths', i], why))
    const repeated = repeatedModel(rule.model, rule.fallbacks)
    if (repeated) about(origin.routing, [...at, 'fallbacks'], repeated)
    for (const tool of widened(rule, policy)) {
      const message = `a rule may only tighten permissions, and \`${tool}\` is stricter outside it`
      about(origin.routing, [...at, 'required_permissions', 'permissions', tool], message)
    }
    rules.slice(0, index).forEach((earlier, j) => {
      if (earlier.name === rule.name)
        about(origin.routing, [...at, 'name'], `the name "${rule.name}" is taken by rule ${j}`)
      else if (areAmbiguous(earlier, rule)) {
        const message = `ambiguous with "${earlier.name}": same priority and overlapping conditions; give one a lower priority`
        about(origin.routing, at, message)
      }
    })
  })
  return findings
}

function badGlobs(globs: readonly string[] | undefined, report: (index: number, why: string) => void): void {
  globs?.forEach((glob, index) => {
    const compiled = compileGlob(glob)
    if ('invalid' in compiled) report(index, `the pattern "${glob}" is invalid: ${compiled.invalid}`)
  })
}

function repeatedModel(model: string, fallbacks: readonly string[]): string | undefined {
  const repeated = fallbacks.find((fallback, i) => fallback === model || fallbacks.indexOf(fallback) !== i)
  return repeated === undefined ? undefined : `${repeated} is named twice`
}

function widened(rule: RoutingRule, policy: ExecutePolicy): string[] {
  const { permissions } = policy.tools
  return Object.entries(rule.required_permissions?.permissions ?? {})
    .filter(([tool, mode]) => {
      const floor = Object.hasOwn(permissions, tool) ? permissions[tool] : undefined
      return floor !== undefined && stricter(mode, floor) !== mode
    })
    .map(([tool]) => tool)
}

/** Two rules that nothing but their order tells apart (EC 8.3): same priority, same kinds of condition, a common case. */
function areAmbiguous(a: RoutingRule, b: RoutingRule): boolean {
  if (a.priority !== b.priority || (a.intent ?? null) !== (b.intent ?? null)) return false
  if (a.paths.length === 0 && b.paths.length === 0) return true
  return a.paths.some((glob) => b.paths.includes(glob))
}
