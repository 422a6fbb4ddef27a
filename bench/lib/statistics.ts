/** The value in the middle; half of the measurements lie on either side, however wild the worst are. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  const lower = sorted[middle - 1] ?? upper
  return sorted.length % 2 === 1 ? upper : (lower + upper) / 2
}

/** The smallest: what the work costs when nothing else is in its way. */
export const least = (values: readonly number[]): number => Math.min(...values)
