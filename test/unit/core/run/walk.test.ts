import { expect, test } from 'vitest'
import { type Tally, walk } from '../../../support/core/run-walk.ts'

/** A walk that gets nowhere proves nothing. */
function mustHappen(tally: Tally, often: Record<string, number>): void {
  for (const [what, times] of Object.entries(often))
    expect([what, (tally.get(what) ?? 0) > times]).toEqual([what, true])
}

test('[D05][D06][U02][U10][U14][U21][U22][U23][U24][EC 5] 2,000 random runs of 40 inputs break no rule of a run', () => {
  const tally: Tally = new Map()
  for (let seed = 1; seed <= 2000; seed++) walk(seed, 40, tally)
  mustHappen(tally, {
    'model responded accepted': 1000,
    'again accepted': 1000,
    'crash accepted': 1000,
    'misfit refused': 1000,
    'grant revoked accepted': 200,
    'device decides approved accepted': 1000,
    'device decides approved refused': 1000,
    'device decides rejected accepted': 300,
    'device answers accepted': 200,
    'device dismisses accepted': 40,
    'device accepted': 40,
  })
}, 60_000)

test('[D20][D47][EC 17] 500 random runs of sealed sessions store no text, and nothing half', () => {
  const tally: Tally = new Map()
  for (let seed = 50_001; seed <= 50_500; seed++) walk(seed, 40, tally, 1)
  mustHappen(tally, {
    'fitting accepted': 1000,
    'fitting refused': 200,
    'again accepted': 300,
    'crash accepted': 300,
    // An object that is gone while nothing is served.
    'crash dropped': 300,
    'device decides approved accepted': 200,
    'device decides rejected accepted': 50,
    'device dismisses accepted': 3,
    'device answers refused': 10,
    'sealed: AwaitingTool': 100,
    'sealed: AwaitingEncrypt': 500,
    'sealed: Idle': 1000,
  })
}, 60_000)
