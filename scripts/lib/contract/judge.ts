/** Holds differences against the list of intended ones. */

import type { IntendedDifference } from '../intended-differences.ts'
import type { Difference } from './difference.ts'

export type Verdict = {
  intended: { difference: Difference; reason: string }[]
  unintended: Difference[]
  /** Places of the list that nothing differs at any more. */
  stale: { at: string; what: string }[]
}

/** Whether a place is the one that a pattern names; `*` stands for any text, also for none. */
export function matchesPlace(pattern: string, at: string): boolean {
  const [start = '', ...parts] = pattern.split('*')
  if (parts.length === 0) return at === pattern
  const end = parts.pop() ?? ''
  if (!at.startsWith(start)) return false
  let from = start.length
  for (const part of parts) {
    const found = at.indexOf(part, from)
    if (found < 0) return false
    from = found + part.length
  }
  return at.length - end.length >= from && at.endsWith(end)
}

/** Sorts differences into listed and unlisted ones, and finds what the list no longer needs. */
export function judge(differences: readonly Difference[], list: readonly IntendedDifference[]): Verdict {
  const verdict: Verdict = { intended: [], unintended: [], stale: [] }
  for (const difference of differences) {
    const entry = list.find(
      ({ what, at }) =>
        what === difference.what && at.some((pattern) => matchesPlace(pattern, difference.at)),
    )
    if (entry === undefined) verdict.unintended.push(difference)
    else verdict.intended.push({ difference, reason: entry.reason })
  }
  for (const { what, at } of list) {
    for (const pattern of at) {
      const used = differences.some((d) => d.what === what && matchesPlace(pattern, d.at))
      if (!used) verdict.stale.push({ at: pattern, what })
    }
  }
  return verdict
}
