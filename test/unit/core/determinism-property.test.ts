import { test } from 'vitest'
import { checkAlike } from '../../support/core/decided-alike.ts'
import { makeRoutingCase } from '../../support/core/naive-cases.ts'
import { makePrivateTurn } from '../../support/core/private-turns.ts'
import { makeWeirdTurn } from '../../support/core/weird-turns.ts'

const RULE =
  'nothing throws, nothing is written to, and the same turn is decided alike byte for byte, also from a copy'

test(`[EC 7][EC 8] 60 strange but valid turns: ${RULE}`, () => checkAlike(makeWeirdTurn, 60, 3))
test(`[EC 9] 100 turns that hold secrets: ${RULE}`, () => checkAlike(makePrivateTurn, 100, 4))
test(`[EC 8] 100 turns with rules of every kind: ${RULE}`, () => checkAlike(makeRoutingCase, 100, 5))
