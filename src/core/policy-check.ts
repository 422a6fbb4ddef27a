import type { ExecutePolicy } from '../protocol/execution/policy.ts'
import type { PolicyWarning } from '../protocol/execution/preview.ts'
import { classificationFindings } from './policy-check/classification.ts'
import { makeCompiler } from './policy-check/compile-once.ts'
import { permissionExpansions } from './policy-check/expansions.ts'
import type { PolicyFinding } from './policy-check/finding.ts'
import { patternFindings } from './policy-check/patterns.ts'
import { precedenceFindings } from './policy-check/precedence.ts'
import { localityFindings, routeFindings } from './policy-check/routes.ts'
import { permissionFindings } from './policy-check/unknown-permissions.ts'

/** More warnings than this help nobody; the last one says how many there are besides. */
export const MAX_WARNINGS = 100

/**
 * All that is amiss in a policy which decodes (EC 24.2): what a client should put right. Of these only a
 * `permission_expansion` stops a run (EC 12.3).
 */
export function policyFindings(policy: ExecutePolicy): PolicyFinding[] {
  const compile = makeCompiler()
  return [
    ...classificationFindings(policy.classification),
    ...routeFindings(policy.routing),
    ...precedenceFindings(policy.routing, compile),
    ...permissionExpansions(policy).map(
      ({ at, message, suggestion }): PolicyFinding => ({
        code: 'permission_expansion',
        at,
        message: `${message}; write \`${suggestion}\``,
        suggestion,
      }),
    ),
    ...permissionFindings(policy),
    ...localityFindings(policy),
    ...patternFindings(policy, compile),
  ]
}

/** The findings as they go over the wire: with places from the body, at most `MAX_WARNINGS`. */
export function policyWarnings(policy: ExecutePolicy): PolicyWarning[] {
  const findings = policyFindings(policy)
  const shown = findings.length > MAX_WARNINGS ? findings.slice(0, MAX_WARNINGS - 1) : findings
  const warnings = shown.map(({ at, ...finding }): PolicyWarning => ({ ...finding, path: placeInBody(at) }))
  const more = findings.length - shown.length
  if (more === 0) return warnings
  const message = `${more} more warnings are left out: put these right, and ask again`
  return [...warnings, { code: 'more_warnings', path: 'policy', message }]
}

/** A place of the policy as a path of the body: `policy.routing.rules.2.paths.0`. */
export const placeInBody = (at: PolicyFinding['at']): string => ['policy', ...at].join('.')
