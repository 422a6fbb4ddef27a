import fc from 'fast-check'
import { expect, test } from 'vitest'
import { madeAtRandom } from '../../../support/core/random.ts'
import { makeMoves, play, type Tally } from './rotation-walk.ts'

/** Plays random moves; fails unless each of these things happened at least so often. */
function walks(seed: number, thieving: number, mustHappen: Record<string, number>): Tally {
  const tally: Tally = new Map()
  const moves = madeAtRandom((random) => makeMoves(random, thieving))
  fc.assert(
    fc.property(moves, (played) => play(played, tally)),
    { seed, numRuns: 600 },
  )
  for (const [what, times] of Object.entries(mustHappen))
    expect([what, (tally.get(what) ?? 0) >= times]).toEqual([what, true])
  return tally
}

test('[U33][D40] no lost answer, race or restart costs an honest device its pairing, and a retry gets what it had', () => {
  const tally = walks(1, 0, {
    rotated: 400,
    'rotated, lost': 100,
    again: 200,
    'again, lost': 50,
    acknowledged: 100,
    'access accepted': 200,
    'access refused': 200,
  })
  expect(tally.get('token_replayed')).toBeUndefined()
  expect(tally.get('unauthorized')).toBeUndefined()
})

test('[U33] with a thief, one predecessor at most is accepted, and any retired token revokes its own family only', () => {
  walks(2, 0.3, {
    'thief: rotated': 200,
    'thief: again': 100,
    'thief: token_replayed': 50,
    'thief: unauthorized': 50,
    token_replayed: 25,
    unauthorized: 25,
    again: 70,
  })
})
