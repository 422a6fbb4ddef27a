import type { LastRoute } from './state.ts'
import type { StepContext } from './step.ts'
import type { TraceEntry, TracePayload } from './writes.ts'

/** Turns payloads into entries of a turn's trace, all under one route (EC 19). */
export function traceEntries(
  payloads: TracePayload[],
  route: LastRoute,
  { nowMs, newId }: StepContext,
): TraceEntry[] {
  return payloads.map((payload) => ({
    id: newId(),
    createdAtMs: nowMs,
    taskType: route.taskType,
    provider: route.provider,
    model: route.model,
    ...(route.matchedRule === undefined ? {} : { matchedRule: route.matchedRule }),
    payload,
  }))
}

/** `trace:<uuid>` of the newest entry (EC 19). */
export function traceIdOf(entries: TraceEntry[], before: string): string {
  const newest = entries.at(-1)
  return newest ? `trace:${newest.id}` : before
}
