import { expect } from 'vitest'
import { byteLength, CHUNK_UNITS, MAX_INLINE_BYTES } from '../../../../src/storage/limits.ts'
import { loadText, storeText } from '../../../../src/storage/session/texts.ts'
import { count, ruleInto, type StorageRule } from './rules.ts'

export const TEXT_RULES: StorageRule[] = []

const rule = ruleInto(TEXT_RULES)

const SIZES = [
  { what: 'one-byte', char: 'a' },
  { what: 'two-byte', char: 'ü' },
  { what: 'three-byte', char: '€' },
  { what: 'four-byte', char: '🚂' },
]

for (const { what, char } of SIZES) {
  const fits = Math.floor(MAX_INLINE_BYTES / byteLength(char))
  rule(`[D27] a text of ${what} characters stays whole up to 256 KiB and is split beyond`, (sql) => {
    const whole = char.repeat(fits)
    expect(storeText(sql, 'whole', whole)).toBe(whole)
    expect(count(sql, 'chunks')).toBe(0)
    const longer = whole + char
    const stored = storeText(sql, 'longer', longer)
    expect(stored.length).toBeLessThan(100)
    expect(loadText(sql, stored)).toBe(longer)
  })
}

rule('[D27] no chunk is longer than 256 KiB, and none is cut inside a surrogate pair', (sql) => {
  // Every offset of the pair to the cut, at the first cut and at the second.
  for (let lead = 0; lead < 4; lead++) {
    const text = '€'.repeat(CHUNK_UNITS - lead) + '🚂'.repeat(CHUNK_UNITS)
    const stored = storeText(sql, `lead ${lead}`, text)
    expect(loadText(sql, stored) === text).toBe(true)
  }
  for (const row of sql.rows('SELECT body FROM chunks')) {
    const body = String(row.body)
    expect(byteLength(body)).toBeLessThanOrEqual(MAX_INLINE_BYTES)
    expect(body).not.toMatch(/\p{Surrogate}/u)
  }
})

rule('[D27] a text that looks like a mark is kept as the text it is', (sql) => {
  const long = 'x'.repeat(MAX_INLINE_BYTES + 1)
  const mark = storeText(sql, 'a', long)
  const stored = storeText(sql, 'b', mark)
  expect(stored).not.toBe(mark)
  expect(loadText(sql, stored)).toBe(mark)
  expect(loadText(sql, mark)).toBe(long)
})

rule('[D27] a text in place of a longer one leaves none of its chunks', (sql) => {
  storeText(sql, 'a', 'x'.repeat(4 * MAX_INLINE_BYTES))
  const shorter = 'y'.repeat(2 * MAX_INLINE_BYTES)
  expect(loadText(sql, storeText(sql, 'a', shorter))).toBe(shorter)
  expect(loadText(sql, storeText(sql, 'a', 'short'))).toBe('short')
  expect(count(sql, 'chunks')).toBe(0)
})
