import { expect } from 'vitest'
import { MAX_ROUNDS, SIGNATURE } from '../../../src/host/demo/decide.ts'
import { ALL_TOOLS, type Call, talk } from './talk.ts'

/** A small generator with a seed (mulberry32), so that a failure can be run again. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const QUESTIONS = [
  'What does this project do?',
  'where are the sessions stored?',
  'what is in src/main.ts and a.b?',
  'explain nothing.rs',
  'replace a with b in a.md',
  'create x.txt with y',
  'run `ls`',
  'Context of the request:\n\n# a.md\na\n\nRequest:\nwhere is `a`?',
  '\u0000 ] [ ( * "',
  '',
]
const RESULTS = [
  '',
  'Error: The user declined this call.',
  'Error: ',
  'a.md\nsrc/main.ts\ndeep/ (12 files)\n[14 files in .]',
  'a.md:1: a\nsrc/main.ts:7: sessions\n[2 matches]',
  '[No match in 3 files.]',
  '# a\n\na b c',
  'This call was not run.',
  '/ (x files)\n:::\n[',
]

/** Feeds a conversation with results that need not make sense, and holds what must hold of any. */
export function checkRandomTalks(seeds: Iterable<number>): void {
  for (const seed of seeds) {
    const random = randomFrom(seed)
    const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
    const tools = ALL_TOOLS.filter(() => random() < 0.7)
    const made = new Set<string>()
    const workspace = (call: Call): string => {
      expect(tools, `seed ${seed}: a call that is not on offer`).toContain(call.name)
      const key = JSON.stringify(call)
      expect(made.has(key), `seed ${seed}: ${key} was made twice`).toBe(false)
      made.add(key)
      return pick(RESULTS)
    }
    const { rounds, answer } = talk(pick(QUESTIONS), workspace, { tools })
    expect(rounds.length, `seed ${seed}`).toBeLessThanOrEqual(MAX_ROUNDS)
    expect(answer.endsWith(SIGNATURE), `seed ${seed}: unsigned`).toBe(true)
  }
}

export function* seedsFrom(first: number, count: number): Generator<number> {
  for (let seed = first; seed < first + count; seed++) yield seed
}
