import { type Failure, failure } from '../protocol/execution/errors.ts'
import type { ModelReference } from '../protocol/execution/ids.ts'
import type { Effort, RoutingPolicy, RoutingRule, TaskIntent } from '../protocol/execution/policy.ts'
import { compileGlob, type Glob } from '../protocol/glob.ts'
import { err, ok, type Result } from '../protocol/result.ts'

/** Which models a turn may use and why, before anyone asked whether they are usable. */
export type RoutePlan = {
  /** The first choice, then the fallbacks in order. An override has no fallback (EC 8.3). */
  references: ModelReference[]
  rule: RoutingRule | null
  overrideUsed: boolean
  effort: Effort
  reason: string
  /** True for a path that the winning rule names: such content is required (EC 9). */
  inFocus(path: string): boolean
}

export type RouteInput = {
  intent: TaskIntent
  /** Normalised; the order decides nothing but the wording of the reason. */
  candidatePaths: readonly string[]
  explicitModel: ModelReference | null
  routing: RoutingPolicy
}

/** Applies the routing rules: explicit model, then priority, specificity, position; then the default (EC 8.3). */
export function planRoute({
  intent,
  candidatePaths,
  explicitModel,
  routing,
}: RouteInput): Result<RoutePlan, Failure> {
  if (explicitModel !== null) {
    return ok({
      references: [explicitModel],
      rule: null,
      overrideUsed: true,
      effort: 'medium',
      reason: `explicit model \`${explicitModel}\``,
      inFocus: () => false,
    })
  }
  let best: Match | null = null
  for (const [index, rule] of routing.rules.entries()) {
    if (best && rule.priority > best.rule.priority) continue
    const match = matchRule(rule, index, intent, candidatePaths)
    if (match && (best === null || beats(match, best))) best = match
  }
  if (best) {
    const { rule, globs, path } = best
    const on = [
      ...(path === null ? [] : [`path \`${path}\``]),
      ...(rule.intent ? [`intent \`${intent}\``] : []),
    ]
    return ok({
      references: [rule.model, ...rule.fallbacks],
      rule,
      overrideUsed: false,
      effort: rule.effort,
      reason: `rule \`${rule.name}\` matched ${on.length > 0 ? `on ${on.join(' and ')}` : 'as a catch-all'}`,
      inFocus: (candidate) => globs.some((glob) => glob.matches(candidate)),
    })
  }
  if (routing.default) {
    return ok({
      references: [routing.default.model, ...routing.default.fallbacks],
      rule: null,
      overrideUsed: false,
      effort: 'medium',
      reason: 'no rule matched, default route',
      inFocus: () => false,
    })
  }
  return err(
    failure('no_route', `no routing rule matches intent \`${intent}\` and the policy has no default route`, {
      reason: 'no_rule',
      intent,
    }),
  )
}

type Match = { rule: RoutingRule; index: number; globs: Glob[]; path: string | null; specificity: number }

function matchRule(
  rule: RoutingRule,
  index: number,
  intent: TaskIntent,
  candidatePaths: readonly string[],
): Match | null {
  if (rule.intent && rule.intent !== intent) return null
  let globs: Glob[] = []
  let path: string | null = null
  if (rule.paths.length > 0) {
    const compiled = compileAll(rule.paths)
    // One invalid pattern voids the path condition of the rule: it cannot match (EC 8.2).
    if (compiled === null) return null
    globs = compiled
    path = candidatePaths.find((candidate) => globs.some((glob) => glob.matches(candidate))) ?? null
    if (path === null) return null
  }
  return { rule, index, globs, path, specificity: (rule.paths.length > 0 ? 2 : 0) + (rule.intent ? 1 : 0) }
}

/** Of each rule the first path that it matches: no other path of the list can change what is decided. */
export function firstMatches(routing: RoutingPolicy, paths: readonly string[]): string[] {
  if (paths.length === 0) return []
  const found = new Set<string>()
  for (const rule of routing.rules) {
    const globs = compileAll(rule.paths) ?? []
    const path = paths.find((candidate) => globs.some((glob) => glob.matches(candidate)))
    if (path !== undefined) found.add(path)
  }
  return [...found]
}

function beats(a: Match, b: Match): boolean {
  if (a.rule.priority !== b.rule.priority) return a.rule.priority < b.rule.priority
  if (a.specificity !== b.specificity) return a.specificity > b.specificity
  return a.index < b.index
}

function compileAll(patterns: string[]): Glob[] | null {
  const globs: Glob[] = []
  for (const pattern of patterns) {
    const compiled = compileGlob(pattern)
    if ('invalid' in compiled) return null
    globs.push(compiled.glob)
  }
  return globs
}
