import type { SwitchyardClient } from '../client/client.ts'
import type { CallRecord } from '../core/run/writes.ts'
import { sessionUsage } from '../core/usage.ts'
import type { Payload, TraceEvent } from '../protocol/execution/trace.ts'
import type { SessionUsageResponse, Usage } from '../protocol/execution/usage.ts'
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
  const usage = counted(told, sessionUsage(calls))
  return { usage, untold: missing(told.total, calls.length) }
}

/**
 * The calls as the router counts them with the amounts that were opened: one that was cut or that failed has none in the
 * trace, and was made all the same (U43).
 */
const counted = (told: SessionUsageResponse, opened: SessionUsageResponse): SessionUsageResponse => ({
  total: withAmounts(told.total, opened.total, requestsOf(opened)),
  by_model: merged(told.by_model, opened.by_model, ({ provider, model }) => ({ provider, model })),
  by_task_type: merged(told.by_task_type, opened.by_task_type, ({ task_type }) => ({ task_type })),
})

const requestsOf = ({ by_model }: SessionUsageResponse): number =>
  by_model.reduce((sum, { request_count }) => sum + request_count, 0)

type Group = Usage & { request_count: number }

/** Groups in the order of the router. A call that came between its answer and the trace stands in the trace alone. */
function merged<G extends Group, I extends object>(
  told: readonly G[],
  opened: readonly G[],
  identityOf: (group: G) => I,
): (Group & I)[] {
  const nameOf = (group: G) => JSON.stringify(identityOf(group))
  const amounts = new Map(opened.map((group) => [nameOf(group), group]))
  const groups = told.map((group) => {
    const found = amounts.get(nameOf(group))
    amounts.delete(nameOf(group))
    const foundCount = found?.request_count ?? 0
    return {
      ...withAmounts(group, found ?? {}, foundCount),
      ...identityOf(group),
      request_count: Math.max(group.request_count, foundCount),
    }
  })
  return [...groups, ...[...amounts.values()].map((group) => ({ ...group, ...identityOf(group) }))]
}

/** @param found how many of the sealed calls were opened */
function withAmounts(told: Usage, opened: Usage, found: number): Usage {
  const { sealed_count: _sealed, unknown_count: toldUnknown = 0, ...rest } = told
  const unknown = toldUnknown + (opened.unknown_count ?? 0) + missing(told, found)
  return { ...rest, ...opened, ...(unknown > 0 ? { unknown_count: unknown } : {}) }
}

/** Sealed calls that the trace does not tell of. */
const missing = ({ sealed_count: sealed = 0 }: Usage, found: number): number => Math.max(0, sealed - found)

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
