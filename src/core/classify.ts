import type { ClassificationConfig, TaskIntent } from '../protocol/execution/policy.ts'
import type { ClassificationInputs } from '../protocol/execution/trace.ts'
import type { Classification } from '../protocol/execution/turn.ts'
import { isWithinEdits } from './edit-distance.ts'

export type ClassifyInput = {
  /** The newest user text: the prompt, or what was injected last (D11). */
  text: string
  /** An explicit intent; the caller leaves it out after the first turn of a run (EC 7.1). */
  command: TaskIntent | null
  /** What is present now: of the workspace and of the run so far (D11). */
  contextKinds: ReadonlySet<string>
  config: ClassificationConfig
}

/** So many keywords are told: a trace of a long policy stays short. One that decides is always among them. */
export const MAX_TOLD_KEYWORDS = 200

/** Names the intent of a step by fixed rules, never by a model (EC 7). Same input, same answer. */
export const classify = (input: ClassifyInput): Classification =>
  classifyFrom(classificationInputs(input), input.config)

/**
 * All that a classification is decided from (EC 7): which keywords of the policy the text contains, in the policy's
 * order and each once, and the kinds of context. The text itself does not go on from here.
 */
export function classificationInputs({
  text,
  command,
  contextKinds,
  config,
}: ClassifyInput): ClassificationInputs {
  const inputs: ClassificationInputs = {
    ...(command === null ? {} : { command }),
    context: [...contextKinds].sort(),
    keywords: keywordsIn(text, config),
  }
  if (inputs.keywords.length <= MAX_TOLD_KEYWORDS) return inputs
  // A keyword that decides nothing may be left out: with fewer keywords no other rule can come to match.
  const decisive = decide(inputs, config).keyword
  const keywords = inputs.keywords.filter(
    ({ keyword }, index) => index < MAX_TOLD_KEYWORDS - 1 || keyword === decisive,
  )
  return { ...inputs, keywords }
}

/** The classification that follows from recorded inputs under a policy: the same as when they were recorded. */
export const classifyFrom = (inputs: ClassificationInputs, config: ClassificationConfig): Classification =>
  decide(inputs, config).classification

type Decision = { classification: Classification; keyword: string | null }

function decide(
  { command, context, keywords }: ClassificationInputs,
  config: ClassificationConfig,
): Decision {
  if (command !== undefined) {
    const reason = `command \`${command}\``
    return { classification: { intent: command, source: 'explicit', reason }, keyword: null }
  }
  const hits = new Map(keywords.map(({ keyword, match }) => [keyword, match]))
  const present = new Set(context)
  const ordered = config.rules
    .map((rule, index) => ({ rule, index }))
    .sort((a, b) => a.rule.priority - b.rule.priority || a.index - b.index)
  for (const { rule, index } of ordered) {
    const keyword = rule.keywords.length > 0 ? findKeyword(rule.keywords, hits) : undefined
    if (keyword === null) continue
    const kinds = rule.requires_any_context
    const kind = kinds.length > 0 ? (kinds.find((name) => present.has(name)) ?? null) : undefined
    if (kind === null) continue
    const causes: string[] = []
    if (keyword) causes.push(`keyword \`${keyword.word}\`${keyword.fuzzy ? ' (close match)' : ''}`)
    if (kind) causes.push(`context \`${kind}\``)
    if (causes.length === 0) causes.push('no condition')
    return {
      classification: {
        intent: rule.intent,
        source: 'inferred',
        reason: `${causes.join(' and ')} (rule ${index})`,
        matched_rule: index,
        confidence:
          keyword && kind ? (keyword.fuzzy ? 'medium' : 'high') : keyword || kind ? 'medium' : 'low',
      },
      keyword: keyword?.word ?? null,
    }
  }
  return {
    classification: {
      intent: config.default_intent,
      source: 'inferred',
      reason: `no rule matched, default intent \`${config.default_intent}\``,
      confidence: 'low',
    },
    keyword: null,
  }
}

/** Every keyword is tried for an exact hit before any is tried for a close one (EC 7). */
function findKeyword(
  keywords: readonly string[],
  hits: ReadonlyMap<string, 'exact' | 'fuzzy'>,
): { word: string; fuzzy: boolean } | null {
  const exact = keywords.find((word) => hits.get(word) === 'exact')
  if (exact !== undefined) return { word: exact, fuzzy: false }
  const close = keywords.find((word) => hits.has(word))
  return close === undefined ? null : { word: close, fuzzy: true }
}

/** Which keywords of a policy a text contains, exactly or nearly. */
function keywordsIn(text: string, config: ClassificationConfig): ClassificationInputs['keywords'] {
  const words = new Set(config.rules.flatMap(({ keywords }) => keywords))
  if (words.size === 0) return []
  const tokens = tokenise(text)
  const present = new Set(tokens)
  const byLength = new Map<number, Word[]>()
  for (const token of present) {
    const letters = Array.from(token)
    const same = byLength.get(letters.length)
    if (same) same.push({ token, letters })
    else byLength.set(letters.length, [{ token, letters }])
  }
  return [...words].flatMap((keyword): ClassificationInputs['keywords'] => {
    const parts = tokenise(keyword)
    const [only] = parts
    if (parts.length === 1 && only !== undefined ? present.has(only) : containsRun(tokens, parts))
      return [{ keyword, match: 'exact' }]
    return hasCloseToken(keyword.toLowerCase(), byLength) ? [{ keyword, match: 'fuzzy' }] : []
  })
}

/** Splits at everything that is not a Unicode letter or digit, lower-cased (EC 7). */
export const tokenise = (text: string): string[] =>
  (text.match(/[\p{Alphabetic}\p{N}]+/gu) ?? []).map((token) => token.toLowerCase())

/** A keyword of several words hits where they stand in a row. */
function containsRun(tokens: string[], parts: string[]): boolean {
  if (parts.length === 0) return false
  return tokens.some((_, start) => parts.every((part, offset) => tokens[start + offset] === part))
}

const allowedEdits = (chars: number): number => (chars <= 4 ? 0 : chars <= 8 ? 1 : 2)

type Word = { token: string; letters: readonly string[] }

/** Some token is as long as a close one can be, is near enough, and neither contains the other (EC 7). */
function hasCloseToken(keyword: string, tokensByLength: ReadonlyMap<number, readonly Word[]>): boolean {
  const letters = Array.from(keyword)
  const allowed = allowedEdits(letters.length)
  if (allowed === 0) return false
  for (let length = letters.length - allowed; length <= letters.length + allowed; length++) {
    const words = tokensByLength.get(length) ?? []
    const isClose = (word: Word) =>
      isWithinEdits(letters, word.letters, allowed) &&
      !keyword.includes(word.token) &&
      !word.token.includes(keyword)
    if (words.some(isClose)) return true
  }
  return false
}
