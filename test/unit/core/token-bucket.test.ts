import { describe, expect, test } from 'vitest'
import { type Bucket, takeToken } from '../../../src/core/token-bucket.ts'

const RATE = { periodMs: 10, burst: 3 }

describe('[EC 1] a token bucket', () => {
  test('a new caller has the whole burst, and then waits for one period', () => {
    let bucket: Bucket | undefined
    const waits: number[] = []
    for (let i = 0; i < 5; i++) {
      const taken = takeToken(bucket, RATE, 1000)
      bucket = taken.bucket
      waits.push(taken.waitMs)
    }
    expect(waits).toEqual([0, 0, 0, 10, 10])
  })

  test('it fills by one each period, and never beyond the burst', () => {
    const empty = { tokens: 0, updatedAtMs: 0 }
    expect(takeToken(empty, RATE, 9)).toEqual({ bucket: { tokens: 0.9, updatedAtMs: 9 }, waitMs: 1 })
    expect(takeToken(empty, RATE, 10)).toEqual({ bucket: { tokens: 0, updatedAtMs: 10 }, waitMs: 0 })
    expect(takeToken(empty, RATE, 1_000_000).bucket.tokens).toBe(2)
  })

  test('whoever waits as long as it was told gets a token', () => {
    const first = takeToken({ tokens: 0.25, updatedAtMs: 0 }, RATE, 0)
    expect(first.waitMs).toBe(8)
    expect(takeToken(first.bucket, RATE, first.waitMs).waitMs).toBe(0)
  })

  test('a clock that goes back takes nothing away', () => {
    expect(takeToken({ tokens: 2, updatedAtMs: 100 }, RATE, 50).waitMs).toBe(0)
  })
})
