import { expect, test } from 'vitest'
import { checkGlobs, checkRouting } from '../../support/core/naive-comparison.ts'

test('[EC 7][EC 8][EC 9][EC 10] 400 random requests are routed as the contract says when it is read a second time', () => {
  const met = checkRouting(400, 2)
  for (const what of [
    'rule',
    'default route',
    'override',
    'fallback',
    'local',
    'remote',
    'left out private diff',
  ])
    expect([what, (met[what] ?? 0) >= 5]).toEqual([what, true])
})

test('[EC 8.2] 1,000 random patterns match what a regular expression made of them matches', () => {
  const { matches, invalid } = checkGlobs(1000, 3)
  expect(matches).toBeGreaterThan(200)
  expect(invalid).toBeGreaterThan(50)
})
