/** Sets of message numbers in few characters: `1-57,60` for 1 to 57 and 60. */

/** @param seqs rising */
export function formatRanges(seqs: readonly number[]): string {
  const ranges: [number, number][] = []
  for (const seq of seqs) {
    const last = ranges.at(-1)
    if (last && seq === last[1] + 1) last[1] = seq
    else ranges.push([seq, seq])
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(',')
}

/** The ranges of a text that `formatRanges` wrote, both ends included. */
export const parseRanges = (text: string): [number, number][] =>
  text === ''
    ? []
    : text.split(',').map((range) => {
        const [from, to] = range.split('-').map(Number)
        return [from ?? 0, to ?? from ?? 0]
      })
