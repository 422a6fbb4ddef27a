import type { TraceEntry } from '../core/run/writes.ts'
import type { Payload, TraceEvent } from '../protocol/execution/trace.ts'
import { toWireTime } from '../protocol/time.ts'

/** The wire form of a stored entry; the list of verdicts becomes one event per candidate (D28). */
export function traceEvents(entry: TraceEntry): TraceEvent[] {
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
    payload: { plaintext: payload },
  }))
}
