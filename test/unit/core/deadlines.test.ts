import { describe, expect, test } from 'vitest'
import { nextAlarm } from '../../../src/core/deadlines.ts'

describe('[D21] one alarm for all deadlines', () => {
  test.each([
    [{ leaseHeartbeatAtMs: null, outboxRetryAtMs: null, listingRetryAtMs: null }, null],
    [{ leaseHeartbeatAtMs: 5, outboxRetryAtMs: null, listingRetryAtMs: null }, 5],
    [{ leaseHeartbeatAtMs: null, outboxRetryAtMs: 7, listingRetryAtMs: null }, 7],
    [{ leaseHeartbeatAtMs: 9, outboxRetryAtMs: 7, listingRetryAtMs: null }, 7],
    [{ leaseHeartbeatAtMs: 9, outboxRetryAtMs: 7, listingRetryAtMs: 5 }, 5],
    [{ leaseHeartbeatAtMs: 0, outboxRetryAtMs: 7, listingRetryAtMs: null }, 0],
  ])('%j rings at %s', (deadlines, expected) => {
    expect(nextAlarm(deadlines)).toBe(expected)
  })
})
