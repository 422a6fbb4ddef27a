import { expect, test } from 'vitest'
import { type Tally, walk } from '../../../support/core/run-walk.ts'

test('[U02][U10][U14][U21][U22][U23][U24][EC 5] 2,000 random runs of 40 inputs break no rule of a run', () => {
  const tally: Tally = new Map()
  for (let seed = 1; seed <= 2000; seed++) walk(seed, 40, tally)
  // A walk that gets nowhere proves nothing.
  for (const often of ['model responded accepted', 'again accepted', 'crash accepted', 'misfit refused'])
    expect([often, (tally.get(often) ?? 0) > 1000]).toEqual([often, true])
  // Nor does one in which nothing is ever granted and taken back.
  expect(tally.get('grant revoked accepted')).toBeGreaterThan(200)
}, 60_000)
