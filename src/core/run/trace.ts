import type { LastRoute } from './state.ts'
import type { StepContext } from './step.ts'
import type { TraceEntry, TracePayload } from './writes.ts'

/** Turns payloads into entries of a turn's trace: under one route, but a call's under the model that was called (EC 19). */
export function traceEntries(
  payloads: TracePayload[],
  route: LastRoute,
  { nowMs, newId }: StepContext,
): TraceEntry[] {
  return payloads.map((payload) => ({
    id: newId(),
    createdAtMs: nowMs,
    taskType: route.taskType,
    provider: payload.type === 'cost' ? payload.provider : route.provider,
    model: payload.type === 'cost' ? payload.model : route.model,
    ...(route.matchedRule === undefined ? {} : { matchedRule: route.matchedRule }),
    payload,
  }))
}

/** `trace:<uuid>` of the newest entry (EC 19). */
export function traceIdOf(entries: TraceEntry[], before: string): string {
  const newest = entries.at(-1)
  return newest ? `trace:${newest.id}` : before
}
