import { expect, test } from 'vitest'
import { checkTurns } from '../../../support/core/privacy-rules.ts'
import { checkSessions } from '../../../support/core/private-sessions.ts'

const seldom = (counts: Record<string, number>, least: number) =>
  Object.entries(counts).filter(([, times]) => times < least)

test.each([11, 12])(
  '[U37][EC 9] 10,000 random turns from seed %i on leak nothing',
  (seed) => {
    expect(seldom(checkTurns(10_000, seed), 200)).toEqual([])
  },
  300_000,
)

test('[U37][EC 9] 10,000 runs in 3,300 sessions under changing policies leak nothing', async () => {
  expect(seldom(await checkSessions(3_300, 13), 300)).toEqual([])
}, 600_000)
