import { z } from 'zod'
import { MAX_TOKEN_COUNT } from './bounds.ts'
import type { ReportedUsage } from './provider.ts'

/** A counter as a provider reports it. What is no count is unknown (U43). */
export const TokenCount = z.int().nonnegative().max(MAX_TOKEN_COUNT).nullish().catch(undefined)

/** The sum of the counters that were reported; unknown when none was. */
export function sumKnown(...counts: readonly (number | null | undefined)[]): number | undefined {
  const known = counts.filter((count) => typeof count === 'number')
  return known.length === 0 ? undefined : known.reduce((sum, count) => sum + count, 0)
}

const COUNTERS: readonly (keyof ReportedUsage)[] = [
  'inputTokens',
  'outputTokens',
  'cachedTokens',
  'cacheWriteTokens',
  'reasoningTokens',
]

/** Whether two reports say the same; a counter that one of them leaves out differs from any number. */
export const isSameUsage = (one: ReportedUsage, other: ReportedUsage): boolean =>
  COUNTERS.every((counter) => one[counter] === other[counter])

/** The usage without the counters that were not reported; nothing when none was. */
export function knownUsage(
  counts: Record<keyof ReportedUsage, number | null | undefined>,
): ReportedUsage | undefined {
  const known = Object.entries(counts).filter(([, count]) => typeof count === 'number')
  return known.length === 0 ? undefined : Object.fromEntries(known)
}
