/**
 * What two globs have in common. Both are walked together as automata, so the time is bounded by the product of their
 * lengths (D17). Where classes make it hard to say, the answer is that they do overlap.
 */

import type { Glob, Part } from './glob.ts'

/** More agreement than this is not told apart. */
const ENOUGH_AGREEMENT = 2
/** A class of at most so many characters spells them out one by one; a wider one is a wildcard. */
const MAX_SPELLED_MEMBERS = 4

/** A set of patterns, any of which may match. */
export type Alternatives = Pick<Glob, 'alternatives'>

/** True if some path matches both. */
export const globsIntersect = (a: Alternatives, b: Alternatives): boolean => agreement(a, b) !== null

/**
 * How many characters other than slashes both patterns spell at the same place of a path that matches both: 0, 1, or 2
 * for two and more.
 * Null if no path matches both. `test*` and `*.pem` agree on none, `cred*` and `credentials.json` on more than two.
 */
export function agreement(a: Alternatives, b: Alternatives): number | null {
  let best: number | null = null
  for (const left of a.alternatives) {
    for (const right of b.alternatives) {
      const found = agreementOf(left, right)
      if (found !== null && (best === null || found > best)) best = found
      if (best === ENOUGH_AGREEMENT) return best
    }
  }
  return best
}

function agreementOf(left: readonly Part[], right: readonly Part[]): number | null {
  const width = right.length + 1
  /** The best agreement with which a pair of positions was reached, plus one; 0 = not reached. */
  const reached = new Uint8Array((left.length + 1) * width)
  const open: number[] = []
  const reach = (i: number, j: number, count: number) => {
    const pair = i * width + j
    if ((reached[pair] ?? 0) > count) return
    reached[pair] = count + 1
    open.push(pair)
  }
  for (const i of from(left, 0)) for (const j of from(right, 0)) reach(i, j, 0)
  for (let pair = open.pop(); pair !== undefined; pair = open.pop()) {
    const i = Math.floor(pair / width)
    const j = pair % width
    const a = left[i]
    const b = right[j]
    if (a === undefined || b === undefined) continue
    const count = (reached[pair] ?? 1) - 1
    const more = spells(a) && spells(b) ? Math.min(count + 1, ENOUGH_AGREEMENT) : count
    for (const slash of [true, false]) {
      if (slash ? !(takes(a, '/') && takes(b, '/')) : !shareAnother(a, b)) continue
      for (const nextI of after(left, i, slash)) {
        for (const nextJ of after(right, j, slash)) reach(nextI, nextJ, more)
      }
    }
  }
  const last = reached.at(-1) ?? 0
  return last === 0 ? null : last - 1
}

/** A position, and those that follow it without taking a character. */
function from(parts: readonly Part[], index: number): number[] {
  const positions = [index]
  for (let i = index; parts[i]?.k === 'star' || parts[i]?.k === 'dirs'; i++) positions.push(i + 1)
  return positions
}

/** Where a part leads with a slash, or with another character. */
function after(parts: readonly Part[], index: number, slash: boolean): number[] {
  const part = parts[index]
  if (part?.k === 'star') return from(parts, index)
  if (part?.k === 'dirs') return slash ? [index, ...from(parts, index + 1)] : [index]
  return from(parts, index + 1)
}

/** True for a part that says which character of a name stands there; a slash belongs to none. */
function spells(part: Part): boolean {
  if (part.k === 'char') return part.char !== '/'
  return part.k === 'class' && !part.negated && membersOf(part.ranges) <= MAX_SPELLED_MEMBERS
}

const membersOf = (ranges: readonly [string, string][]): number =>
  ranges.reduce((sum, [low, high]) => sum + codeOf(high) - codeOf(low) + 1, 0)

const codeOf = (char: string): number => char.codePointAt(0) ?? 0

function takes(part: Part, char: string): boolean {
  if (part.k === 'char') return part.char === char
  if (part.k === 'class')
    return part.ranges.some(([low, high]) => low <= char && char <= high) !== part.negated
  return true
}

/** True if some character other than the slash fits both. */
function shareAnother(a: Part, b: Part): boolean {
  if (a.k === 'char') return a.char !== '/' && takes(b, a.char)
  if (b.k === 'char') return b.char !== '/' && takes(a, b.char)
  if (a.k !== 'class' || b.k !== 'class') return true
  // Characters are many: two classes that leave some out are taken to have one in common.
  if (a.negated && b.negated) return true
  if (a.negated || b.negated) {
    const [without, of] = a.negated ? [a, b] : [b, a]
    return (
      of.k === 'class' &&
      of.ranges.some(([low, high]) => takes(without, low) || takes(without, high) || low !== high)
    )
  }
  return a.ranges.some(([low, high]) => b.ranges.some(([from, to]) => from <= high && low <= to))
}
