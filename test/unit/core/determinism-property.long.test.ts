import { test } from 'vitest'
import { checkAlike } from '../../support/core/decided-alike.ts'
import { makeRoutingCase } from '../../support/core/naive-cases.ts'
import { makePrivateTurn } from '../../support/core/private-turns.ts'
import { makeWeirdTurn } from '../../support/core/weird-turns.ts'

const RULE = 'the same turn is decided alike byte for byte, frozen and from a copy'

test(
  `[EC 7][EC 8] 2,000 strange but valid turns: ${RULE}`,
  () => checkAlike(makeWeirdTurn, 2_000, 13),
  300_000,
)
test(`[EC 9] 4,000 turns that hold secrets: ${RULE}`, () => checkAlike(makePrivateTurn, 4_000, 14), 300_000)
test(
  `[EC 8] 4,000 turns with rules of every kind: ${RULE}`,
  () => checkAlike(makeRoutingCase, 4_000, 15),
  300_000,
)
