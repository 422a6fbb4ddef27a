import type { PrivacyPolicy, RoutingRule } from '../protocol/execution/policy.ts'
import { compileGlob, type Glob } from './glob.ts'
import { baseName, normalisePath } from './paths.ts'

/** Tells which paths must never reach a remote model (EC 9). */
export type PrivacyGuard = {
  /** True for a path that only local models may see. `path` is as the client sent it. */
  isConstrained(path: string): boolean
}

/**
 * Constrained = matches `restricted_paths`, `remote.blocked_paths` or the paths of a `local_only` rule. An invalid
 * pattern in one of these lists constrains every path: it fails closed (EC 8.2). A pattern without a slash is also
 * held against the base name, which only tightens.
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
  const globs: { glob: Glob; baseNameToo: boolean }[] = []
  for (const pattern of patterns) {
    const compiled = compileGlob(pattern)
    if ('invalid' in compiled) return { isConstrained: () => true }
    globs.push({ glob: compiled.glob, baseNameToo: !pattern.includes('/') })
  }
  return {
    isConstrained: (path) => {
      const normal = normalisePath(path, root)
      return globs.some(
        ({ glob, baseNameToo }) => glob.matches(normal) || (baseNameToo && glob.matches(baseName(normal))),
      )
    },
  }
}
