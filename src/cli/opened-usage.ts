import type { SwitchyardClient } from '../client/client.ts'
import type { CallRecord } from '../core/run/writes.ts'
import { sessionUsage } from '../core/usage.ts'
import type { Payload, TraceEvent } from '../protocol/execution/trace.ts'
import type { SessionUsageResponse } from '../protocol/execution/usage.ts'
import { CommandStop } from './command-context.ts'
import { openTrace } from './opened-trace.ts'
import type { SessionKeys } from './session-keys.ts'
import { tracePages } from './trace-pages.ts'

/** What a session used, as far as it can be told here. */
export type OpenedUsage = {
  usage: SessionUsageResponse
  /** Calls that are not in the sums: nothing here tells what they used. */
  untold: number
  /** Why amounts stay sealed (U35). */
  locked?: string
}

/**
 * The usage of a session. Amounts of an encrypted one stand in its sealed trace alone: with its key on this machine they
 * are added up here, as the router adds up those of others (EC 20.2).
 */
export async function openUsage(
  client: SwitchyardClient,
  keys: SessionKeys,
  sessionId: string,
  told: SessionUsageResponse,
): Promise<OpenedUsage> {
  const sealed = told.total.sealed_count ?? 0
  if (sealed === 0) return { usage: told, untold: 0 }
  const calls = await callsOf(client, keys, sessionId)
  if (typeof calls === 'string') return { usage: told, untold: sealed, locked: calls }
  const counted = told.by_model.reduce((sum, { request_count }) => sum + request_count, 0)
  return { usage: sessionUsage(calls), untold: Math.max(0, counted - calls.length) }
}

/** The calls that the trace tells of, or why it cannot be read. */
async function callsOf(
  client: SwitchyardClient,
  keys: SessionKeys,
  sessionId: string,
): Promise<CallRecord[] | string> {
  const calls: CallRecord[] = []
  try {
    for await (const page of tracePages(client, sessionId)) {
      const costs = page.events.filter(({ event_type }) => event_type === 'cost')
      const { events, locked } = await openTrace(client, keys, sessionId, costs)
      const [why] = locked.values()
      if (why !== undefined) return why
      calls.push(...events.flatMap(callOf))
    }
  } catch (error) {
    if (error instanceof CommandStop) return error.message
    throw error
  }
  return calls
}

/** The call that a cost event is about. */
function callOf({ payload, task_type: taskType }: TraceEvent): CallRecord[] {
  const cost = 'plaintext' in payload ? payload.plaintext : null
  if (cost?.type !== 'cost') return []
  const { provider, model } = cost
  return [{ provider, model, taskType, chosenBy: '', status: 'answered', ...amountsOf(cost) }]
}

/** A counter that is zero beside no price was never told (U43). */
function amountsOf(cost: Extract<Payload, { type: 'cost' }>): Pick<CallRecord, 'usage' | 'cost'> {
  const isTold = (tokens: number) => tokens > 0 || cost.cost != null
  return {
    usage: {
      ...(isTold(cost.input_tokens) ? { inputTokens: cost.input_tokens } : {}),
      ...(isTold(cost.output_tokens) ? { outputTokens: cost.output_tokens } : {}),
      ...(cost.cached_tokens === undefined ? {} : { cachedTokens: cost.cached_tokens }),
      ...(cost.cache_write_tokens === undefined ? {} : { cacheWriteTokens: cost.cache_write_tokens }),
      ...(cost.reasoning_tokens === undefined ? {} : { reasoningTokens: cost.reasoning_tokens }),
    },
    ...(cost.cost == null ? {} : { cost: cost.cost }),
  }
}
