import type { ClassificationConfig } from '../../protocol/execution/policy.ts'
import { tokenise } from '../classify.ts'
import { CONTEXT_KINDS, NEVER_PRESENT_KIND } from '../context-kinds.ts'
import { nearest } from '../suggest.ts'
import { brief, type PolicyFinding } from './finding.ts'

/** Classification rules that cannot match, or not by some of their conditions (EC 7). */
export function classificationFindings({ rules }: ClassificationConfig): PolicyFinding[] {
  const at = (index: number, ...rest: (string | number)[]) => ['classification', 'rules', index, ...rest]
  const findings: PolicyFinding[] = []
  rules.forEach(({ keywords, requires_any_context: kinds }, index) => {
    keywords.forEach((keyword, i) => {
      if (tokenise(keyword).length > 0) return
      const message = `the keyword "${brief(keyword)}" has neither a letter nor a digit, so it is found in no text; take it out`
      findings.push({ code: 'keyword_never_matches', at: at(index, 'keywords', i), message })
    })
    kinds.forEach((kind, i) => {
      if (!isKind(kind))
        findings.push({ at: at(index, 'requires_any_context', i), ...aboutUnknownKind(kind) })
    })
  })
  return [...findings, ...neverReached(rules).map((index) => ({ at: at(index), ...NEVER_REACHED }))]
}

const isKind = (kind: string): boolean => (CONTEXT_KINDS as readonly string[]).includes(kind)

function aboutUnknownKind(kind: string): Omit<PolicyFinding, 'at'> {
  const kinds = CONTEXT_KINDS.join(', ')
  if (kind === NEVER_PRESENT_KIND) {
    const message = `\`${kind}\` may be named and is never there: take it out, or name one of ${kinds}`
    return { code: 'unknown_context_kind', message }
  }
  const suggestion = nearest(kind, CONTEXT_KINDS)
  const meant = suggestion === undefined ? '' : ` (did you mean \`${suggestion}\`?)`
  const message = `there is no kind of context "${brief(kind)}"${meant}, so it is never there; the kinds are ${kinds}`
  return { code: 'unknown_context_kind', message, ...(suggestion === undefined ? {} : { suggestion }) }
}

const NEVER_REACHED = {
  code: 'unreachable_rule',
  message:
    'this rule is never reached: one without any condition comes before it and always matches; give that one a higher `priority` number, or conditions',
} as const

/** The rules behind the first that has no condition, in the order in which they are tried. */
function neverReached(rules: ClassificationConfig['rules']): number[] {
  const order = rules
    .map((rule, index) => ({ rule, index }))
    .sort((a, b) => a.rule.priority - b.rule.priority || a.index - b.index)
  const first = order.findIndex(
    ({ rule }) => rule.keywords.length === 0 && rule.requires_any_context.length === 0,
  )
  return first < 0
    ? []
    : order
        .slice(first + 1)
        .map(({ index }) => index)
        .sort((a, b) => a - b)
}
