import { test } from 'vitest'
import { walk } from '../../../support/core/run-walk.ts'

const RUNS_PER_TEST = 5_000
/** `npm run test:full` has all of it; the long tier a quarter (D54). */
const SHARE = process.env.SWITCHYARD_FULL === '1' ? 1 : 0.125

// The short test has the first 2,000 seeds; these come after it.
test.each(Array.from({ length: 16 * SHARE }, (_, index) => 10_001 + index * RUNS_PER_TEST))(
  '[U02][U14][U24][EC 5] 5,000 random runs of 40 inputs from seed %i on',
  (first) => {
    for (let seed = first; seed < first + RUNS_PER_TEST; seed++) walk(seed, 40)
  },
  120_000,
)

test(`[U02][U14][U24][EC 5] ${Math.ceil(500 * SHARE)} random runs of 400 inputs`, () => {
  for (let seed = 100_001; seed <= 100_000 + Math.ceil(500 * SHARE); seed++) walk(seed, 400)
}, 120_000)

test.each(Array.from({ length: Math.ceil(4 * SHARE) }, (_, index) => 200_001 + index * RUNS_PER_TEST))(
  '[D20][D47][EC 17] 5,000 random runs of sealed sessions from seed %i on',
  (first) => {
    for (let seed = first; seed < first + RUNS_PER_TEST; seed++) walk(seed, 40, new Map(), 1)
  },
  120_000,
)
