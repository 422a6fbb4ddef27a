import fc from 'fast-check'
import { expect, test } from 'vitest'
import { madeAtRandom } from '../../../support/core/random.ts'
import { makeMoves, play, type Tally } from './challenge-walk.ts'

test('[D41][U31] whatever strangers do: 5 tries per challenge, 10 guesses in 300 s, and no lockout without a guess', () => {
  const tally: Tally = new Map()
  fc.assert(
    fc.property(madeAtRandom(makeMoves), (moves) => play(moves, tally)),
    { seed: 1, numRuns: 300 },
  )
  // A walk that gets nowhere proves nothing.
  const mustHappen = {
    compared: 2_000,
    'not for it': 500,
    closed: 1_000,
    matched: 50,
    rate_limited: 500,
    'everybody is locked out': 500,
    'strangers lock out nobody': 500,
  }
  for (const [what, times] of Object.entries(mustHappen))
    expect([what, (tally.get(what) ?? 0) >= times]).toEqual([what, true])
})
