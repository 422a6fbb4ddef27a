import type { RoutingPolicy, RoutingRule } from '../../protocol/execution/policy.ts'
import type { Glob } from '../../protocol/glob.ts'
import { globsIntersect } from '../../protocol/glob-overlap.ts'
import type { CompileGlob } from './compile-once.ts'
import { brief, type PolicyFinding } from './finding.ts'

/**
 * What comparing patterns may cost in all, in pairs of positions of some 100 to 500 ns each: a quarter of a second at most.
 * A policy of which the rest is not compared has thousands of rules of one priority, or hundreds whose patterns begin alike.
 */
const MAX_COMPARISON_STEPS = 500_000
/** Two patterns that begin differently. */
const STEPS_TO_TELL_APART = 1

type Pattern = { glob: Glob; prefix: string; length: number }
type Ranked = { rule: RoutingRule; index: number; specificity: number; patterns: Pattern[] }

/** Routing rules that only their order tells apart, and those that never win because of others (EC 8.3, 24.2). */
export function precedenceFindings({ rules }: RoutingPolicy, compile: CompileGlob): PolicyFinding[] {
  const ranked = rules
    .flatMap((rule, index): Ranked[] => {
      const patterns = compiled(rule.paths, compile)
      // A rule with an invalid pattern never matches (EC 8.2), so it is in nobody's way.
      return patterns === null ? [] : [{ rule, index, specificity: specificityOf(rule), patterns }]
    })
    .sort((a, b) => a.rule.priority - b.rule.priority || b.specificity - a.specificity || a.index - b.index)
  const ambiguous = ambiguousRules(ranked)
  const findings = [...ambiguous, ...unreachableRules(ranked, new Set(ambiguous.map(({ index }) => index)))]
  return findings.sort((a, b) => a.index - b.index).map(({ finding }) => finding)
}

function compiled(paths: readonly string[], compile: CompileGlob): Pattern[] | null {
  const patterns: Pattern[] = []
  for (const path of paths) {
    const result = compile(path)
    if ('invalid' in result) return null
    const { alternatives } = result.glob
    const [only = []] = alternatives
    const end = alternatives.length > 1 ? 0 : only.findIndex(({ k }) => k !== 'char')
    const prefix = only
      .slice(0, end < 0 ? only.length : end)
      .map((part) => (part.k === 'char' ? part.char : ''))
    const length = alternatives.reduce((sum, parts) => sum + parts.length + 1, 0)
    patterns.push({ glob: result.glob, prefix: prefix.join(''), length })
  }
  return patterns
}

/** Path and intent beat path alone, that beats intent, that beats none (EC 8.3). */
const specificityOf = ({ paths, intent }: RoutingRule): number =>
  (paths.length > 0 ? 2 : 0) + (intent ? 1 : 0)

type Found = { index: number; finding: PolicyFinding }

/** Each rule is held against those of the same priority and the same kinds of condition that come before it. */
function ambiguousRules(ranked: readonly Ranked[]): Found[] {
  const groups = new Map<string, Ranked[]>()
  const found: Found[] = []
  const budget = { steps: MAX_COMPARISON_STEPS }
  for (const one of ranked) {
    const { rule, index, specificity } = one
    const key = `${rule.priority} ${specificity} ${rule.intent ?? ''}`
    const group = groups.get(key) ?? []
    groups.set(key, group)
    const rival = rule.paths.length === 0 ? group[0] : rivalOf(one, group, budget)
    group.push(one)
    if (rival === undefined) continue
    const message = `ambiguous with "${brief(rival.rule.name)}": same priority and overlapping conditions, so only the order in the list decides; give one a lower \`priority\` number`
    found.push({
      index,
      finding: { code: 'ambiguous_rules', at: ['routing', 'rules', index], message },
    })
  }
  return found
}

/**
 * Rules whose every case earlier rules take: one without conditions, or several together. Those that are said to be
 * ambiguous are left out.
 */
function unreachableRules(ranked: readonly Ranked[], ambiguous: ReadonlySet<number>): Found[] {
  const takenBy = new Map<string, Taken>()
  const found: Found[] = []
  for (const { rule, index } of ranked) {
    const before = rule.intent ? [takenBy.get(''), takenBy.get(rule.intent)] : [takenBy.get('')]
    const catchAll = takenBy.get('')?.all
    const taker = takerOf(rule, before)
    if (taker !== undefined && !ambiguous.has(index)) {
      const keeps = rule.local_only && rule.paths.length > 0 ? '; its paths stay private all the same' : ''
      const why =
        catchAll === undefined
          ? `rules before it, such as "${brief(taker)}", take all that it would match`
          : `"${brief(catchAll)}" comes before it and always matches`
      const message = `rule \`${brief(rule.name)}\` is never reached: ${why}; give it a lower \`priority\` number, or take it out${keeps}`
      const code = catchAll === undefined ? 'shadowed_rule' : 'unreachable_rule'
      found.push({ index, finding: { code, at: ['routing', 'rules', index], message } })
    }
    const own = takenBy.get(rule.intent ?? '') ?? { patterns: new Map<string, string>() }
    takenBy.set(rule.intent ?? '', own)
    if (rule.paths.length === 0) own.all ??= rule.name
    if (rule.paths.some((pattern) => EVERY_PATH.has(pattern))) own.everyPath ??= rule.name
    for (const pattern of rule.paths) if (!own.patterns.has(pattern)) own.patterns.set(pattern, rule.name)
  }
  return found
}

/** What rules of one intent take, each with the name of the first that does: every turn, every turn with a path, patterns. */
type Taken = { all?: string; everyPath?: string; patterns: Map<string, string> }

const EVERY_PATH: ReadonlySet<string> = new Set(['*', '**', '**/*'])

/** An earlier rule that takes a part of what this one would, where earlier rules take all of it. */
function takerOf({ paths }: RoutingRule, before: readonly (Taken | undefined)[]): string | undefined {
  const all = before.find((taken) => taken?.all !== undefined)?.all
  if (all !== undefined || paths.length === 0) return all
  const everyPath = before.find((taken) => taken?.everyPath !== undefined)?.everyPath
  if (everyPath !== undefined) return everyPath
  const takers = paths.map((pattern) =>
    before.map((taken) => taken?.patterns.get(pattern)).find((name) => name !== undefined),
  )
  return takers.includes(undefined) ? undefined : takers[0]
}

/** The first of a group of which some path matches a pattern as well, as far as the budget lasts. */
function rivalOf(
  { patterns }: Ranked,
  group: readonly Ranked[],
  budget: { steps: number },
): Ranked | undefined {
  for (const other of group) {
    for (const one of patterns) {
      for (const its of other.patterns) {
        if (budget.steps <= 0) return undefined
        const apart = !one.prefix.startsWith(its.prefix) && !its.prefix.startsWith(one.prefix)
        budget.steps -= apart ? STEPS_TO_TELL_APART : one.length * its.length
        if (!apart && budget.steps > 0 && globsIntersect(one.glob, its.glob)) return other
      }
    }
  }
  return undefined
}
