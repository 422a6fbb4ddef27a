import type { ExecutePolicy, RoutingRule } from '../../protocol/execution/policy.ts'
import { compileGlob } from '../../protocol/glob.ts'
import type { CompileGlob } from './compile-once.ts'
import { brief, type PolicyFinding, type PolicyPlace } from './finding.ts'
import { neverMatches, widened } from './plain-pattern.ts'

/** Globs that are invalid, that match nothing, or that are read more widely than the contract reads them (EC 8.2). */
export const patternFindings = (
  { routing, privacy }: ExecutePolicy,
  compile: CompileGlob,
): PolicyFinding[] => [
  ...routing.rules.flatMap((rule, index) =>
    rule.paths.flatMap((pattern, i) =>
      ofRule(rule, pattern, ['routing', 'rules', index, 'paths', i], compile),
    ),
  ),
  ...privacy.restricted_paths.flatMap((pattern, i) =>
    ofList(pattern, ['privacy', 'restricted_paths', i], compile),
  ),
  ...(privacy.remote?.blocked_paths ?? []).flatMap((pattern, i) =>
    ofList(pattern, ['privacy', 'remote', 'blocked_paths', i], compile),
  ),
]

function ofRule(
  { name, local_only }: RoutingRule,
  pattern: string,
  at: PolicyPlace,
  compile: CompileGlob,
): PolicyFinding[] {
  const invalid = whyInvalid(compile(pattern))
  if (invalid !== null) {
    const alsoPrivate = local_only ? ', and as it is `local_only`, every path counts as private' : ''
    const message = `${said(pattern)} is invalid: ${invalid}; rule \`${brief(name)}\` never matches${alsoPrivate}`
    return [{ code: 'invalid_glob', at, message }]
  }
  if (isNegated(pattern))
    return [{ code: 'negated_pattern', at, message: `${said(pattern)} ${EXCLUDES_NOTHING}` }]
  const odd = neverMatches(pattern)
  if (odd === null) return []
  // What the rule keeps private is read more widely than what it routes: the way out must not narrow it.
  const plain = local_only ? (widened(pattern)?.plain ?? odd.plain) : odd.plain
  const message = `${said(pattern)} matches no path of the workspace: ${odd.because}`
  return [withPlain({ code: 'pattern_never_matches', at, message }, plain)]
}

function ofList(pattern: string, at: PolicyPlace, compile: CompileGlob): PolicyFinding[] {
  const invalid = whyInvalid(compile(pattern))
  if (invalid !== null) {
    const message = `${said(pattern)} is invalid: ${invalid}; until it is put right, every path counts as private`
    return [{ code: 'invalid_glob', at, message }]
  }
  if (pattern === '') return [{ code: 'pattern_never_matches', at, message: KEEPS_NOTHING }]
  if (isNegated(pattern))
    return [{ code: 'negated_pattern', at, message: `${said(pattern)} ${FREES_NOTHING}` }]
  const odd = widened(pattern)
  if (odd === null) return []
  const message = `${said(pattern)} is read more widely than it is written: ${odd.because}`
  return [withPlain({ code: 'private_pattern_widened', at, message }, odd.plain)]
}

/** As lists of ignored files are written: there the mark takes back what others name. Here it is part of a name. */
const isNegated = (pattern: string): boolean => pattern.startsWith('!')

const FREES_NOTHING =
  'frees nothing: `!` takes no path back, it is a part of the name, and what another pattern names stays private; take it out'
const EXCLUDES_NOTHING =
  'excludes nothing: `!` does not turn a pattern round, it is a part of the name; take it out'

const KEEPS_NOTHING = 'an empty pattern keeps no path private; take it out'

function withPlain(finding: PolicyFinding, plain: string | null): PolicyFinding {
  if (plain === null || 'invalid' in compileGlob(plain)) return finding
  return { ...finding, message: `${finding.message}; write \`${plain}\``, suggestion: plain }
}

const whyInvalid = (compiled: ReturnType<CompileGlob>): string | null =>
  'invalid' in compiled ? compiled.invalid : null

const said = (pattern: string): string => `the pattern "${brief(pattern)}"`
