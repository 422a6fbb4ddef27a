/** Classification once more, from the contract's words alone (EC 7, D11). */

import type { ClassificationRule, TaskIntent } from '../../../src/protocol/execution/policy.ts'

export type NaiveClassification = {
  intent: TaskIntent
  source: 'explicit' | 'inferred'
  matched_rule?: number
  confidence?: 'low' | 'medium' | 'high'
}

export function naiveClassify(input: {
  text: string
  command: TaskIntent | null
  kinds: readonly string[]
  defaultIntent: TaskIntent
  rules: readonly ClassificationRule[]
}): NaiveClassification {
  if (input.command !== null) return { intent: input.command, source: 'explicit' }
  const words = wordsOf(input.text)
  const inOrder = input.rules
    .map((rule, index) => ({ rule, index }))
    .sort((a, b) => a.rule.priority - b.rule.priority || a.index - b.index)
  for (const { rule, index } of inOrder) {
    const hit = rule.keywords.length === 0 ? null : keywordHit(rule.keywords, words)
    const context =
      rule.requires_any_context.length === 0
        ? null
        : rule.requires_any_context.some((kind) => input.kinds.includes(kind))
    if (hit === 'none' || context === false) continue
    const confidence =
      hit === null && context === null ? 'low' : hit === 'exact' && context === true ? 'high' : 'medium'
    return { intent: rule.intent, source: 'inferred', matched_rule: index, confidence }
  }
  return { intent: input.defaultIntent, source: 'inferred', confidence: 'low' }
}

const wordsOf = (text: string): string[] =>
  text
    .split(/[^\p{Alphabetic}\p{N}]+/u)
    .filter(Boolean)
    .map((word) => word.toLowerCase())

function keywordHit(keywords: readonly string[], words: readonly string[]): 'exact' | 'fuzzy' | 'none' {
  const wanted = keywords.map((keyword) => keyword.toLowerCase())
  // A keyword of several words stands for them in a row (EC 26.9).
  const inARow = (phrase: readonly string[]) =>
    words.some((_, at) => phrase.length > 0 && phrase.every((word, index) => words[at + index] === word))
  if (wanted.some((keyword) => inARow(wordsOf(keyword)))) return 'exact'
  const close = wanted.some((keyword) =>
    words.some((word) => {
      const length = [...keyword].length
      const allowed = length <= 4 ? 0 : length <= 8 ? 1 : 2
      const distance = edits([...keyword], [...word])
      return distance >= 1 && distance <= allowed && !keyword.includes(word) && !word.includes(keyword)
    }),
  )
  return close ? 'fuzzy' : 'none'
}

/** Optimal string alignment: insert, delete, replace, or swap two neighbours. */
function edits(a: readonly string[], b: readonly string[]): number {
  const known = new Map<string, number>()
  const of = (i: number, j: number): number => {
    if (i === 0 || j === 0) return i + j
    const at = `${i} ${j}`
    const found =
      known.get(at) ??
      Math.min(
        of(i - 1, j) + 1,
        of(i, j - 1) + 1,
        of(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1),
        i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? of(i - 2, j - 2) + 1 : 99,
      )
    known.set(at, found)
    return found
  }
  return of(a.length, b.length)
}
