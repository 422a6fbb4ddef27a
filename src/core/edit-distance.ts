/**
 * How many edits turn `a` into `b`, both as lists of characters: insert, delete, replace, or swap two neighbours, each
 * one edit, and no character edited twice (optimal string alignment, EC 7).
 */
export function alignmentDistance(a: readonly string[], b: readonly string[]): number {
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

/**
 * Whether at most so many such edits turn `a`, from `i` on, into `b`, from `j` on. For few edits it looks at little more
 * than where the two differ, so many words can be held against many.
 */
export function isWithinEdits(
  a: readonly string[],
  b: readonly string[],
  edits: number,
  i = 0,
  j = 0,
): boolean {
  while (i < a.length && j < b.length && a[i] === b[j]) {
    i++
    j++
  }
  const restOfA = a.length - i
  const restOfB = b.length - j
  if (Math.abs(restOfA - restOfB) > edits) return false
  if (restOfA === 0 || restOfB === 0) return true
  if (edits === 0) return false
  return (
    isWithinEdits(a, b, edits - 1, i + 1, j + 1) ||
    isWithinEdits(a, b, edits - 1, i + 1, j) ||
    isWithinEdits(a, b, edits - 1, i, j + 1) ||
    (a[i] === b[j + 1] && a[i + 1] === b[j] && isWithinEdits(a, b, edits - 1, i + 2, j + 2))
  )
}
