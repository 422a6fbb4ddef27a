import { expect } from 'vitest'
import { byteLength } from '../../../../src/storage/limits.ts'
import {
  appendToRing,
  RING_BYTES,
  type RingLine,
  readRing,
  ringExtent,
} from '../../../../src/storage/session/ring-segments.ts'
import { count, ruleInto, type StorageRule } from './rules.ts'

export const RING_RULES: StorageRule[] = []

const rule = ruleInto(RING_RULES)

const lines = (from: number, to: number, units: number): RingLine[] =>
  Array.from({ length: to - from + 1 }, (_, n) => ({
    seq: from + n,
    json: `"${'.'.repeat(units - 3 - `${from + n}`.length)}"`,
  }))
const seqs = (read: RingLine[]) => read.map(({ seq }) => seq)

rule('[D33] events are appended to the newest row while it has room, then to a new one', (sql) => {
  expect(ringExtent(sql)).toBeNull()
  appendToRing(sql, lines(5, 9, 100))
  appendToRing(sql, lines(10, 19, 100))
  expect(count(sql, 'ring_segments')).toBe(1)
  appendToRing(sql, lines(20, 400, 100))
  expect(count(sql, 'ring_segments')).toBe(2)
  expect(ringExtent(sql)).toMatchObject({ firstSeq: 5, lastSeq: 400 })
  expect(seqs(readRing(sql, 0))).toEqual(Array.from({ length: 396 }, (_, n) => n + 5))
  appendToRing(sql, [])
  expect(count(sql, 'ring_segments')).toBe(2)
})

rule('[D33] a reader gets what comes after its sequence, from the row that holds it on', (sql) => {
  appendToRing(sql, lines(1, 300, 100))
  appendToRing(sql, lines(301, 320, 100))
  expect(seqs(readRing(sql, 310))).toEqual([311, 312, 313, 314, 315, 316, 317, 318, 319, 320])
  expect(readRing(sql, 320)).toEqual([])
})

rule('[D33] the ring keeps 4 MiB and drops its oldest rows whole', (sql) => {
  let seq = 1
  for (let round = 0; round < 150; round++) {
    appendToRing(sql, lines(seq, seq + 29, 1023))
    seq += 30
  }
  const extent = ringExtent(sql)
  expect(extent?.lastSeq).toBe(seq - 1)
  expect(extent?.bytes).toBeLessThanOrEqual(RING_BYTES)
  expect(extent?.bytes).toBeGreaterThan(RING_BYTES - 64 * 1024)
  const first = extent?.firstSeq ?? 0
  expect(first).toBeGreaterThan(1)
  expect(seqs(readRing(sql, 0))).toEqual(Array.from({ length: seq - first }, (_, n) => first + n))
})

rule('[D33] the size of the ring counts bytes, not characters', (sql) => {
  const json = `"${'€'.repeat(1000)}"`
  appendToRing(sql, [{ seq: 1, json }])
  expect(ringExtent(sql)?.bytes).toBe(byteLength(`1 ${json}\n`))
  expect(readRing(sql, 0)).toEqual([{ seq: 1, json }])
})
