import { describe, expect, test } from 'vitest'
import { type UsageRow, usageSummary, usageWindow } from '../../../src/core/usage-summary.ts'
import { MAX_PAYLOAD_BYTES } from '../../../src/protocol/remote/limits.ts'
import { OutrightResult } from '../../../src/protocol/remote/results.ts'

const WINDOW = { since: '2026-06-15', until: '2026-07-14' }
const row = (fields: Partial<UsageRow> = {}): UsageRow => ({
  day: '2026-07-14',
  runId: 'r1',
  provider: 'anthropic',
  model: 'claude',
  inputTokens: 100,
  outputTokens: 10,
  cachedTokens: null,
  cacheWriteTokens: null,
  costs: [],
  ...fields,
})
const summary = (...rows: UsageRow[]) => usageSummary(rows, WINDOW)

test('[RF 26] the window is today and the 29 days before it, in UTC', () => {
  expect(usageWindow(Date.UTC(2026, 6, 14, 23, 59))).toEqual({
    since: '2026-06-15',
    until: '2026-07-14',
    sinceMs: Date.UTC(2026, 5, 15),
  })
})

test('[RF 26] without a call in the window there are totals of no turn, and no rows', () => {
  expect(summary()).toEqual({
    type: 'usage',
    ...WINDOW,
    totals: { turns: 0 },
    by_day: [],
    by_harness: [],
    by_model: [],
  })
})

test('[U43] "A field no turn reported is absent, not zero", and one that was reported as zero is zero', () => {
  const { totals } = summary(row({ inputTokens: null, outputTokens: 0 }))
  expect(totals).toEqual({ output_tokens: 0, turns: 1 })
})

test('[D01] a turn is a run, whatever it called on however many days', () => {
  const usage = summary(
    row(),
    row({ model: 'other' }),
    row({ day: '2026-07-13' }),
    row({ runId: 'r2', day: '2026-07-13' }),
  )
  expect(usage.totals.turns).toBe(2)
  expect(usage.by_day.map(({ day, usage: { turns } }) => [day, turns])).toEqual([
    ['2026-07-14', 1],
    ['2026-07-13', 2],
  ])
})

test('[D49] prices are added exactly and are a number at the end', () => {
  expect(summary(row({ costs: ['0.1', '0.2'] }), row({ runId: 'r2' })).totals.cost_usd).toBe(0.3)
})

test('[RF 26] [D51] days are the newest first, models by their tokens, and all of it one harness', () => {
  const usage = summary(
    row({ day: '2026-07-01', model: 'small', inputTokens: 1 }),
    row({ day: '2026-07-10', model: 'large', inputTokens: 900 }),
    row({ day: '2026-07-05', model: 'middle', inputTokens: 50, provider: 'ollama' }),
  )
  expect(usage.by_day.map(({ day }) => day)).toEqual(['2026-07-10', '2026-07-05', '2026-07-01'])
  expect(usage.by_model.map(({ model }) => model)).toEqual([
    'anthropic/large',
    'ollama/middle',
    'anthropic/small',
  ])
  expect(usage.by_harness).toEqual([{ harness: 'switchyard', usage: usage.totals }])
  expect(OutrightResult.parse(usage)).toEqual(usage)
})

describe('of many models', () => {
  const many = Array.from({ length: 1500 }, (_, index) =>
    row({ model: `${'m'.repeat(200)}${index}`, inputTokens: index }),
  )

  test('[RF 26] "Days and groups are bounded to 1000 rows", and to what fits a frame: the least used are left out', () => {
    const short = many.map((one, index) => ({ ...one, model: `m${index}` }))
    expect(summary(...short).by_model).toHaveLength(1000)
    const usage = summary(...many)
    expect(new TextEncoder().encode(JSON.stringify(usage)).length).toBeLessThanOrEqual(MAX_PAYLOAD_BYTES)
    expect(usage.by_model.length).toBeGreaterThan(500)
    expect(usage.by_model[0]?.model).toMatch(/m1499$/)
    expect(usage.totals.turns).toBe(1)
    expect(usage.totals.input_tokens).toBe((1499 * 1500) / 2)
  })
})
