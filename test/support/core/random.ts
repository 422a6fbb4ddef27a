import fc, { type Arbitrary, type GeneratorValue } from 'fast-check'

/** Random choices in the order in which a test makes them. */
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

/** Mulberry32: 32 bits of state, good enough to wander through cases; a seed repeats its choices exactly. */
export function makeRandom(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const int = (below: number): number => Math.floor(next() * below)
  return makeChoices(next, int, (probability) => next() < probability)
}

/** How finely a probability is told apart. */
const CHANCES = 1000

/**
 * The same choices drawn from fast-check, which then shrinks a failed case: numbers towards zero, chances towards no,
 * picks towards the first item, lists towards few.
 */
function drawnFrom(draw: GeneratorValue): Random {
  const below = (end: number): number => draw(fc.nat, end - 1)
  return makeChoices(
    () => below(2 ** 31) / 2 ** 31,
    below,
    (probability) => below(CHANCES) >= CHANCES * (1 - probability),
  )
}

/** What `make` makes of random choices. Every value is as likely as another: no edge is tried more often. */
export const madeAtRandom = <T>(make: (random: Random) => T): Arbitrary<T> =>
  fc.noBias(fc.gen()).map((draw) => make(drawnFrom(draw)))

function makeChoices(
  next: () => number,
  int: (below: number) => number,
  chance: (probability: number) => boolean,
): Random {
  return {
    next,
    int,
    chance,
    pick: (items) => {
      const item = items[int(items.length)]
      if (item === undefined) throw new Error('nothing to pick from')
      return item
    },
    list: (most, make) => Array.from({ length: int(most + 1) }, (_, index) => make(index)),
  }
}
