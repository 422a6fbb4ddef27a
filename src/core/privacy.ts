import type { PrivacyPolicy, RoutingRule } from '../protocol/execution/policy.ts'
import { compileGlob, type Glob } from '../protocol/glob.ts'
import { baseName, type Spelling, spell, withDrive } from './paths.ts'

/** Stands for whatever lies in a folder. */
const ANY_NAME = 'any'

/** Tells which paths must never reach a remote model (EC 9). */
export type PrivacyGuard = {
  /** True for a path that only local models may see. `path` is as the client sent it. */
  isConstrained(path: string): boolean
  /** True also for a folder whose contents are. */
  touchesConstrained(path: string): boolean
  /** Some path is constrained: content of unknown origin may be its. */
  readonly constrainsSome: boolean
}

/**
 * Constrained = matches `restricted_paths`, `remote.blocked_paths` or the paths of a `local_only` rule. An invalid
 * pattern in one of these lists constrains every path: it fails closed (EC 8.2). How else a pattern is read only
 * tightens: one without a slash is also held against the base name, an absolute one against the absolute path, `./` in
 * front means nothing, and a folder named with its slash stands for what is below.
 */
export function makePrivacyGuard(
  privacy: PrivacyPolicy,
  rules: readonly RoutingRule[],
  root: string,
): PrivacyGuard {
  const patterns = [
    ...privacy.restricted_paths,
    ...(privacy.remote?.blocked_paths ?? []),
    ...rules.filter((rule) => rule.local_only).flatMap((rule) => rule.paths),
  ]
  const tests: ((spelling: Spelling) => boolean)[] = []
  for (const pattern of patterns) {
    const compiled = compileGlob(withDrive(pattern.replace(/^(\.\/)+/, '').replace(/\/$/, '/**')))
    if ('invalid' in compiled) {
      return { isConstrained: () => true, touchesConstrained: () => true, constrainsSome: true }
    }
    tests.push(testOf(pattern, compiled.glob))
  }
  const isConstrained = (path: string): boolean => {
    const spelling = spell(path, root)
    return tests.some((test) => test(spelling))
  }
  return {
    isConstrained,
    touchesConstrained: (path) => isConstrained(path) || isConstrained(`${path}/${ANY_NAME}`),
    constrainsSome: tests.length > 0,
  }
}

function testOf(pattern: string, glob: Glob): (spelling: Spelling) => boolean {
  if (!pattern.includes('/'))
    return ({ relative }) => glob.matches(relative) || glob.matches(baseName(relative))
  const absoluteToo = /^(\/|[A-Za-z]:)/.test(pattern)
  return ({ relative, absolute }) =>
    glob.matches(relative) || (absoluteToo && absolute !== null && glob.matches(absolute))
}
