import { makePrivacyGuard } from '../core/privacy/guard.ts'
import { PrivacyPolicy } from '../protocol/execution/policy.ts'

/**
 * Whether a path is covered by any of the patterns, read as the router reads them: what a tool shows must not bind the run
 * to local models behind the user's back, nor pass what the router would keep.
 */
export function coveredBy(patterns: readonly string[], root: string): (path: string) => boolean {
  const guard = makePrivacyGuard(PrivacyPolicy.parse({ restricted_paths: patterns }), [], root)
  return (path) => guard.constraintOf(path) !== null
}
