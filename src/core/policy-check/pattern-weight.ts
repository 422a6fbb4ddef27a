import { MAX_GLOB_ALTERNATIVES } from '../../protocol/glob.ts'

/**
 * What the patterns of one policy may weigh together: they are all read for each decision, and an object has 128 MB. Some
 * ten thousand patterns of the usual length (D17 bounds one; this bounds all).
 */
export const MAX_PATTERN_WEIGHT = 500_000

/** Characters, counted once for each alternative of its braces. */
export function patternWeight(pattern: string): number {
  let alternatives = 1
  const open: number[] = []
  for (const char of pattern) {
    if (char === '{') open.push(1)
    else if (char === ',' && open.length > 0) open.push((open.pop() ?? 0) + 1)
    else if (char === '}') alternatives = Math.min(MAX_GLOB_ALTERNATIVES, alternatives * (open.pop() ?? 1))
  }
  return pattern.length * alternatives
}
