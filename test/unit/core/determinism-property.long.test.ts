import { test } from 'vitest'
import { checkAlike } from '../../support/core/decided-alike.ts'
import { makeRoutingCase } from '../../support/core/naive-cases.ts'
import { makePrivateTurn } from '../../support/core/private-turns.ts'
import { makeWeirdTurn } from '../../support/core/weird-turns.ts'

const TURNS = 10_000
const RULE = 'the same turn is decided alike byte for byte, frozen and from a copy'

test(
  `[EC 7][EC 8] 10,000 strange but valid turns: ${RULE}`,
  () => checkAlike(makeWeirdTurn, TURNS, 13),
  300_000,
)
test(`[EC 9] 10,000 turns that hold secrets: ${RULE}`, () => checkAlike(makePrivateTurn, TURNS, 14), 300_000)
test(
  `[EC 8] 10,000 turns with rules of every kind: ${RULE}`,
  () => checkAlike(makeRoutingCase, TURNS, 15),
  300_000,
)
