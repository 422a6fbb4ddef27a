import { test } from 'vitest'
import { checkPrivacy, nothingSeen } from '../../support/core/privacy-rules.ts'

const TURNS_PER_TEST = 5_000

test.each(Array.from({ length: 8 }, (_, index) => 10_001 + index * TURNS_PER_TEST))(
  '[U37][EC 9] 5,000 random turns from seed %i on leak nothing',
  (first) => {
    const seen = nothingSeen()
    for (let seed = first; seed < first + TURNS_PER_TEST; seed++) checkPrivacy(seed, seen)
  },
  120_000,
)
