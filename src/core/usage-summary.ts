import type { RemoteUsage } from '../protocol/remote/host-results.ts'
import { MAX_PAYLOAD_BYTES, MAX_USAGE_ROWS, USAGE_DAYS } from '../protocol/remote/limits.ts'
import type { OutrightResult } from '../protocol/remote/results.ts'
import { utf8Bytes } from '../protocol/remote/utf8.ts'
import { toWireTime } from '../protocol/time.ts'
import { addMoney } from './cost.ts'

/** What the calls of one run to one model used on one day, as far as it is known. */
export type UsageRow = {
  /** Of UTC, as `YYYY-MM-DD`. */
  day: string
  runId: string
  provider: string
  model: string
  inputTokens: number | null
  outputTokens: number | null
  cachedTokens: number | null
  cacheWriteTokens: number | null
  /** Decimals: one for each call whose price is known. */
  costs: readonly string[]
}

const DAY_MS = 24 * 60 * 60 * 1000
/** The agent that runs every session here (D51). */
const HARNESS = 'switchyard'

/** The days that an account of usage covers: today and those before it, in UTC. `sinceMs` is when the first one began. */
export function usageWindow(nowMs: number): { since: string; until: string; sinceMs: number } {
  const todayMs = Math.floor(nowMs / DAY_MS) * DAY_MS
  const sinceMs = todayMs - (USAGE_DAYS - 1) * DAY_MS
  return { since: dayOf(sinceMs), until: dayOf(todayMs), sinceMs }
}

const dayOf = (atMs: number): string => toWireTime(atMs).slice(0, 10)

/** Only what is known is there (U43). */
class Sum {
  readonly #runs = new Set<string>()
  #inputTokens: number | undefined
  #outputTokens: number | undefined
  #cachedTokens: number | undefined
  #cacheWriteTokens: number | undefined
  #cost: string | undefined

  add(row: UsageRow): void {
    this.#runs.add(row.runId)
    this.#inputTokens = plus(this.#inputTokens, row.inputTokens)
    this.#outputTokens = plus(this.#outputTokens, row.outputTokens)
    this.#cachedTokens = plus(this.#cachedTokens, row.cachedTokens)
    this.#cacheWriteTokens = plus(this.#cacheWriteTokens, row.cacheWriteTokens)
    for (const cost of row.costs) this.#cost = addMoney(this.#cost ?? '0', cost)
  }

  /** What the prompts and the answers came to: the cache is part of the prompts. */
  get tokens(): number {
    return (this.#inputTokens ?? 0) + (this.#outputTokens ?? 0)
  }

  /** A turn of this protocol is a run (D01). Added up exactly, and a number only at the end (D49). */
  get usage(): RemoteUsage {
    return {
      ...(this.#inputTokens === undefined ? {} : { input_tokens: this.#inputTokens }),
      ...(this.#outputTokens === undefined ? {} : { output_tokens: this.#outputTokens }),
      ...(this.#cachedTokens === undefined ? {} : { cached_tokens: this.#cachedTokens }),
      ...(this.#cacheWriteTokens === undefined ? {} : { cache_write_tokens: this.#cacheWriteTokens }),
      ...(this.#cost === undefined ? {} : { cost_usd: Number(this.#cost) }),
      turns: this.#runs.size,
    }
  }
}

const plus = (sum: number | undefined, value: number | null): number | undefined =>
  value === null ? sum : (sum ?? 0) + value

function sumsBy(rows: Iterable<UsageRow>, keyOf: (row: UsageRow) => string): [string, Sum][] {
  const sums = new Map<string, Sum>()
  for (const row of rows) {
    const key = keyOf(row)
    const sum = sums.get(key) ?? new Sum()
    sum.add(row)
    sums.set(key, sum)
  }
  return [...sums]
}

/**
 * The account of a window (remote protocol, "Usage, host settings and thread status"): days the newest first, models by
 * their tokens. Of more models than fit a frame the least used are left out; the totals have them all.
 */
export function usageSummary(
  rows: readonly UsageRow[],
  { since, until }: { since: string; until: string },
): Extract<OutrightResult, { type: 'usage' }> {
  const total = new Sum()
  for (const row of rows) total.add(row)
  const byDay = sumsBy(rows, ({ day }) => day).sort(([a], [b]) => (a < b ? 1 : -1))
  const byModel = sumsBy(rows, ({ provider, model }) => `${provider}/${model}`).sort(
    ([a, { tokens: ofA }], [b, { tokens: ofB }]) => ofB - ofA || (a < b ? -1 : 1),
  )
  return {
    type: 'usage',
    since,
    until,
    totals: total.usage,
    by_day: byDay.slice(0, MAX_USAGE_ROWS).map(([day, { usage }]) => ({ day, usage })),
    by_harness: rows.length === 0 ? [] : [{ harness: HARNESS, usage: total.usage }],
    by_model: fitting(
      byModel.slice(0, MAX_USAGE_ROWS).map(([model, { usage }]) => ({ harness: HARNESS, model, usage })),
    ),
  }
}

/** Days are few: models may take all but a little of a frame. */
const MODEL_BYTES = MAX_PAYLOAD_BYTES - 16 * 1024

function fitting<T extends object>(rows: readonly T[]): T[] {
  let bytes = 0
  const kept = rows.findIndex((row) => {
    bytes += utf8Bytes(JSON.stringify(row)) + 1
    return bytes > MODEL_BYTES
  })
  return kept === -1 ? [...rows] : rows.slice(0, kept)
}
