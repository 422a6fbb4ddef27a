/** Where something stands in a policy, from the policy itself: `['routing', 'rules', 2, 'paths', 0]`. */
export type PolicyPlace = readonly (string | number)[]

export type FindingCode =
  | 'ambiguous_rules'
  | 'duplicate_rule_name'
  | 'invalid_glob'
  | 'keyword_never_matches'
  | 'local_models_denied'
  | 'local_only_without_local_model'
  | 'missing_default_route'
  | 'negated_pattern'
  | 'no_model_allowed'
  | 'pattern_never_matches'
  | 'permission_expansion'
  | 'private_pattern_widened'
  | 'repeated_fallback'
  | 'shadowed_rule'
  | 'unknown_context_kind'
  | 'unknown_permission'
  | 'unreachable_rule'

/** Something amiss in a policy that decodes (EC 24.2). `message` says what happens and what to do. */
export type PolicyFinding = {
  code: FindingCode
  at: PolicyPlace
  message: string
  /** What to write in its place; `message` says it, too. */
  suggestion?: string
}

/** Names and patterns come from outside: longer ones are cut in messages. */
const MAX_SHOWN_CHARS = 100

export const brief = (text: string): string => {
  const chars = Array.from(text.slice(0, 2 * MAX_SHOWN_CHARS + 1))
  return chars.length > MAX_SHOWN_CHARS ? `${chars.slice(0, MAX_SHOWN_CHARS).join('')}…` : text
}

/** Names in a message: more than a few tell a reader nothing. */
const MAX_NAMES = 3

/** Rules by name, as in: rules `a`, `b`, `c` and 4 more. */
export function namedRules(rules: readonly { name: string }[]): string {
  const shown = rules.slice(0, MAX_NAMES).map(({ name }) => `\`${brief(name)}\``)
  const more = rules.length - shown.length
  return `rule${rules.length === 1 ? '' : 's'} ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
