import type { TraceEntry } from '../core/run/writes.ts'
import type { Payload, TraceEvent } from '../protocol/execution/trace.ts'
import { toWireTime } from '../protocol/time.ts'
import type { StoredTurn } from '../storage/session/turns.ts'

/** The wire form of a stored entry; the list of verdicts becomes one event per candidate (D28). */
export function traceEvents(entry: TraceEntry, turn?: Pick<StoredTurn, 'turnId' | 'runId'>): TraceEvent[] {
  const payloads: Payload[] =
    entry.payload.type === 'context_selection_list'
      ? entry.payload.items.map((item) => ({ type: 'context_selection', ...item }))
      : [entry.payload]
  return payloads.map((payload) => ({
    event_type: payload.type,
    task_type: entry.taskType,
    provider: entry.provider,
    model: entry.model,
    ...(entry.matchedRule === undefined ? {} : { matched_rule: entry.matchedRule }),
    created_at: toWireTime(entry.createdAtMs),
    ...(turn === undefined ? {} : { run_id: turn.runId, turn_id: turn.turnId }),
    payload: { plaintext: payload },
  }))
}

/** A window of the trace, oldest first (EC 2.14); turns beyond it are not asked for. */
export function traceWindow(
  turns: Iterable<Pick<StoredTurn, 'turnId' | 'runId' | 'trace'>>,
  { limit, offset }: { limit: number; offset: number },
): TraceEvent[] {
  const window: TraceEvent[] = []
  let before = 0
  for (const turn of turns) {
    for (const event of turn.trace.flatMap((entry) => traceEvents(entry, turn))) {
      if (before++ < offset) continue
      if (window.length === limit) return window
      window.push(event)
    }
  }
  return window
}

/** The keys of the policies that routing decisions among these events name. */
export const policiesOf = (events: readonly TraceEvent[]): Set<string> =>
  new Set(
    events.flatMap(({ payload }) => {
      const told = 'plaintext' in payload ? payload.plaintext : null
      return told?.type === 'routing_decision' ? (told.inputs?.policy ?? []) : []
    }),
  )
