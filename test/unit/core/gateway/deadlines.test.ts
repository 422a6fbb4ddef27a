import { expect, test } from 'vitest'
import { nextDeadlineMs } from '../../../../src/core/gateway/deadlines.ts'

test.each([
  [[], null],
  [[null, null], null],
  [[null, 7], 7],
  [[9, null, 7], 7],
  [[0, 7], 0],
])('[D21] of %j the gateway’s alarm rings at %s', (times, expected) => {
  expect(nextDeadlineMs(times)).toBe(expected)
})
