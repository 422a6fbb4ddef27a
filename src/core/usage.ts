import type { Provider } from '../protocol/execution/ids.ts'
import type { TaskIntent } from '../protocol/execution/policy.ts'
import type { SessionUsageResponse, Usage } from '../protocol/execution/usage.ts'
import { addMoney } from './cost.ts'
import type { CallRecord } from './run/writes.ts'

/** Only what is known is there (U43). */
type Sum = {
  inputTokens?: number
  outputTokens?: number
  cachedTokens?: number
  cacheWriteTokens?: number
  reasoningTokens?: number
  cost?: string
  /** Calls that used something, and nobody knows how much. */
  unknown: number
  /** Calls that were answered and have no known price. */
  unpriced: number
  /** Calls of a sealed session: what they used stands in its trace (EC 20.2). */
  sealed: number
}

const NOTHING: Sum = { unknown: 0, unpriced: 0, sealed: 0 }

const COUNTERS = [
  'inputTokens',
  'outputTokens',
  'cachedTokens',
  'cacheWriteTokens',
  'reasoningTokens',
] as const

function addCall(sum: Sum, { status, usage, cost, sealed }: CallRecord): Sum {
  if (sealed) return { ...sum, sealed: sum.sealed + 1 }
  const next: Sum = { ...sum }
  // A call that failed used nothing as a rule, and what it did use it told.
  if (status !== 'failed' && (usage === null || Object.keys(usage).length === 0)) next.unknown++
  if (status === 'answered' && cost === undefined) next.unpriced++
  for (const counter of COUNTERS) {
    const value = usage?.[counter]
    if (value !== undefined) next[counter] = (next[counter] ?? 0) + value
  }
  if (cost !== undefined) next.cost = addMoney(next.cost ?? '0', cost)
  return next
}

function toWire(
  { inputTokens, outputTokens, cachedTokens, cacheWriteTokens, reasoningTokens, cost, unknown, sealed }: Sum,
  costField: 'actual_cost' | 'estimated_cost',
): Usage {
  return {
    // A counter that is zero is left out, like one that is unknown (EC 20.1).
    ...(inputTokens ? { input_tokens: inputTokens } : {}),
    ...(outputTokens ? { output_tokens: outputTokens } : {}),
    ...(cachedTokens ? { cached_tokens: cachedTokens } : {}),
    ...(cacheWriteTokens ? { cache_write_tokens: cacheWriteTokens } : {}),
    ...(reasoningTokens ? { reasoning_tokens: reasoningTokens } : {}),
    ...(inputTokens === undefined || outputTokens === undefined || inputTokens + outputTokens === 0
      ? {}
      : { total_tokens: inputTokens + outputTokens }),
    ...(cost === undefined ? {} : { [costField]: cost, currency: 'USD' }),
    ...(unknown > 0 ? { unknown_count: unknown } : {}),
    ...(sealed > 0 ? { sealed_count: sealed } : {}),
  }
}

/**
 * What the calls of one turn used together; the price is what they did cost (EC 20.1). With an answer whose price is
 * unknown the turn has none: a part of it would look like the whole (U43).
 */
export function turnUsage(calls: readonly CallRecord[]): Usage {
  const { cost, ...sum } = calls.reduce(addCall, NOTHING)
  return toWire(sum.unpriced > 0 || cost === undefined ? sum : { ...sum, cost }, 'actual_cost')
}

/** The totals of a session; summed money stands in `estimated_cost`, groups in first-seen order (EC 20.2). */
export function sessionUsage(calls: Iterable<CallRecord>): SessionUsageResponse {
  let total = NOTHING
  const byModel = new Map<string, { provider: Provider; model: string; sum: Sum; count: number }>()
  const byTask = new Map<TaskIntent, { sum: Sum; count: number }>()
  for (const call of calls) {
    total = addCall(total, call)
    const key = `${call.provider}/${call.model}`
    const model = byModel.get(key) ?? { provider: call.provider, model: call.model, sum: NOTHING, count: 0 }
    byModel.set(key, { ...model, sum: addCall(model.sum, call), count: model.count + 1 })
    const task = byTask.get(call.taskType) ?? { sum: NOTHING, count: 0 }
    byTask.set(call.taskType, { sum: addCall(task.sum, call), count: task.count + 1 })
  }
  return {
    total: toWire(total, 'estimated_cost'),
    by_model: [...byModel.values()].map(({ provider, model, sum, count }) => ({
      ...toWire(sum, 'estimated_cost'),
      provider,
      model,
      request_count: count,
    })),
    by_task_type: [...byTask].map(([taskType, { sum, count }]) => ({
      ...toWire(sum, 'estimated_cost'),
      task_type: taskType,
      request_count: count,
    })),
  }
}
