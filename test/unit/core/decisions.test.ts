import { describe, expect, test } from 'vitest'
import { decide, loadDecisions } from '../../support/core/decisions.ts'

describe('[EC 7][EC 8][EC 9] golden decisions', () => {
  test.each(loadDecisions())('$name: $decision.why', ({ decision }) => {
    expect(decide(decision)).toEqual(decision.expected)
  })
})
