import type { ClassificationConfig, TaskIntent } from '../protocol/execution/policy.ts'
import type { Classification } from '../protocol/execution/turn.ts'

export type ClassifyInput = {
  /** The newest user text: the prompt, or what was injected last (D11). */
  text: string
  /** An explicit intent; the caller leaves it out after the first turn of a run (EC 7.1). */
  command: TaskIntent | null
  /** What is present now: of the workspace and of the run so far (D11). */
  contextKinds: ReadonlySet<string>
  config: ClassificationConfig
}

/** Names the intent of a step by fixed rules, never by a model (EC 7). Same input, same answer. */
export function classify({ text, command, contextKinds, config }: ClassifyInput): Classification {
  if (command !== null) return { intent: command, source: 'explicit', reason: `command \`${command}\`` }
  const tokens = tokenise(text)
  const ordered = config.rules
    .map((rule, index) => ({ rule, index }))
    .sort((a, b) => a.rule.priority - b.rule.priority || a.index - b.index)
  for (const { rule, index } of ordered) {
    const keyword = rule.keywords.length > 0 ? findKeyword(rule.keywords, tokens) : undefined
    if (keyword === null) continue
    const kinds = rule.requires_any_context
    const kind = kinds.length > 0 ? (kinds.find((name) => contextKinds.has(name)) ?? null) : undefined
    if (kind === null) continue
    const causes: string[] = []
    if (keyword) causes.push(`keyword \`${keyword.word}\`${keyword.fuzzy ? ' (close match)' : ''}`)
    if (kind) causes.push(`context \`${kind}\``)
    if (causes.length === 0) causes.push('no condition')
    return {
      intent: rule.intent,
      source: 'inferred',
      reason: `${causes.join(' and ')} (rule ${index})`,
      matched_rule: index,
      confidence: keyword && kind ? (keyword.fuzzy ? 'medium' : 'high') : keyword || kind ? 'medium' : 'low',
    }
  }
  return {
    intent: config.default_intent,
    source: 'inferred',
    reason: `no rule matched, default intent \`${config.default_intent}\``,
    confidence: 'low',
  }
}

/** Splits at everything that is not a Unicode letter or digit, lower-cased (EC 7). */
export const tokenise = (text: string): string[] =>
  (text.match(/[\p{Alphabetic}\p{N}]+/gu) ?? []).map((token) => token.toLowerCase())

/** Every keyword is tried for an exact hit before any is tried for a close one (EC 7). */
function findKeyword(keywords: string[], tokens: string[]): { word: string; fuzzy: boolean } | null {
  const present = new Set(tokens)
  for (const word of keywords) {
    const parts = tokenise(word)
    if (parts.length === 1 ? present.has(parts[0] as string) : containsRun(tokens, parts))
      return { word, fuzzy: false }
  }
  for (const word of keywords) {
    const lower = word.toLowerCase()
    const allowed = allowedEdits(Array.from(lower).length)
    if (allowed > 0 && [...present].some((token) => isClose(lower, token, allowed)))
      return { word, fuzzy: true }
  }
  return null
}

/** A keyword of several words hits where they stand in a row. */
function containsRun(tokens: string[], parts: string[]): boolean {
  if (parts.length === 0) return false
  return tokens.some((_, start) => parts.every((part, offset) => tokens[start + offset] === part))
}

const allowedEdits = (chars: number): number => (chars <= 4 ? 0 : chars <= 8 ? 1 : 2)

function isClose(keyword: string, token: string, allowed: number): boolean {
  if (keyword.includes(token) || token.includes(keyword)) return false
  const a = Array.from(keyword)
  const b = Array.from(token)
  if (Math.abs(a.length - b.length) > allowed) return false
  const distance = alignmentDistance(a, b)
  return distance >= 1 && distance <= allowed
}

/** Optimal string alignment: insert, delete, replace, or swap two neighbours, each one edit. */
function alignmentDistance(a: string[], b: string[]): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let best = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, (beforeLast[j - 2] ?? 0) + 1)
      }
      row.push(best)
    }
    beforeLast = last
    last = row
  }
  return last[b.length] ?? 0
}
