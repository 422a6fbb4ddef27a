import type { TraceEntry } from '../core/run/writes.ts'
import type { Payload, TraceEvent, TraceEventPayload } from '../protocol/execution/trace.ts'
import { toWireTime } from '../protocol/time.ts'
import type { StoredTurn } from '../storage/session/turns.ts'

/** What is known of a sealed entry, by its id: its envelope, or its content while that is held; null: neither. */
export type OpenTrace = (id: string) => TraceEventPayload | null

const NOTHING_SEALED: OpenTrace = () => null

/** The same for all entries of one turn: which are told at all, and what they say. */
export type OpenTurn = { isTold(id: string): boolean; open: OpenTrace }

/**
 * The wire form of a stored entry; the list of verdicts becomes one event per candidate (D28). An entry of a sealed
 * session is one event, named by its id; it is none while nothing is known of it.
 */
export function traceEvents(
  entry: TraceEntry,
  turn?: Pick<StoredTurn, 'turnId' | 'runId'>,
  open: OpenTrace = NOTHING_SEALED,
): TraceEvent[] {
  const { payload } = entry
  const head = (type: TraceEvent['event_type']) => ({
    event_type: type,
    task_type: entry.taskType,
    provider: entry.provider,
    model: entry.model,
    ...(entry.matchedRule === undefined ? {} : { matched_rule: entry.matchedRule }),
    created_at: toWireTime(entry.createdAtMs),
    ...(turn === undefined ? {} : { run_id: turn.runId, turn_id: turn.turnId }),
  })
  if (payload.type === 'sealed') {
    const opened = open(entry.id)
    return opened === null ? [] : [{ ...head(payload.event_type), id: entry.id, payload: opened }]
  }
  const payloads: Payload[] =
    payload.type === 'context_selection_list'
      ? payload.items.map((item) => ({ type: 'context_selection', ...item }))
      : [payload]
  return payloads.map((plaintext) => ({ ...head(plaintext.type), payload: { plaintext } }))
}

/** A window of the trace, oldest first (EC 2.14); of turns before and beyond it nothing is opened. */
export function traceWindow(
  turns: Iterable<Pick<StoredTurn, 'turnId' | 'runId' | 'trace'>>,
  { limit, offset }: { limit: number; offset: number },
  openTurn: (trace: readonly TraceEntry[]) => OpenTurn = () => ({
    isTold: () => false,
    open: NOTHING_SEALED,
  }),
): TraceEvent[] {
  const window: TraceEvent[] = []
  let before = 0
  for (const turn of turns) {
    const { isTold, open } = openTurn(turn.trace)
    for (const entry of turn.trace) {
      const count = eventCount(entry, isTold)
      if (before + count <= offset) {
        before += count
        continue
      }
      for (const event of traceEvents(entry, turn, open)) {
        if (before++ < offset) continue
        if (window.length === limit) return window
        window.push(event)
      }
    }
  }
  return window
}

/** How many events an entry comes to, without opening it. */
function eventCount({ id, payload }: TraceEntry, isTold: (id: string) => boolean): number {
  if (payload.type === 'sealed') return isTold(id) ? 1 : 0
  return payload.type === 'context_selection_list' ? payload.items.length : 1
}

/**
 * The keys of the policies that routing decisions among these events name. Of sealed events that is not to be read: of
 * those they are the ones that `ofTurns` tells of their turns.
 */
export function policiesOf(
  events: readonly TraceEvent[],
  ofTurns: (turnIds: ReadonlySet<string>) => Iterable<string> = () => [],
): Set<string> {
  const named = new Set<string>()
  const sealedTurns = new Set<string>()
  for (const { payload, id, turn_id: turnId } of events) {
    const told = 'plaintext' in payload ? payload.plaintext : null
    if (told?.type === 'routing_decision' && told.inputs?.policy !== undefined) named.add(told.inputs.policy)
    if (id !== undefined && turnId !== undefined) sealedTurns.add(turnId)
  }
  if (sealedTurns.size > 0) for (const digest of ofTurns(sealedTurns)) named.add(digest)
  return named
}
