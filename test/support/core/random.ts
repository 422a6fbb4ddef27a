/** Random choices that a seed repeats exactly: a failed property is found again by its seed. */
export type Random = {
  /** From 0 (included) to 1 (excluded). */
  next(): number
  /** An integer from 0 to `below - 1`. */
  int(below: number): number
  chance(probability: number): boolean
  pick<T>(items: readonly T[]): T
  /** Up to `most` items, each made anew. */
  list<T>(most: number, make: (index: number) => T): T[]
}

/** Mulberry32: 32 bits of state, good enough to wander through cases. */
export function makeRandom(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const int = (below: number): number => Math.floor(next() * below)
  return {
    next,
    int,
    chance: (probability) => next() < probability,
    pick: (items) => {
      const item = items[int(items.length)]
      if (item === undefined) throw new Error('nothing to pick from')
      return item
    },
    list: (most, make) => Array.from({ length: int(most + 1) }, (_, index) => make(index)),
  }
}
