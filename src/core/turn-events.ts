import type { TurnEvent } from '../protocol/execution/stream.ts'
import type { TurnResponse } from '../protocol/execution/turn.ts'

/**
 * How a turn's stream ends (EC 18): usage of a completed turn, or each call that goes to the client, then exactly one
 * `turn_end`. Calls are told only here, after they were checked and stored: a client may run one as soon as it sees it.
 */
export function closingEvents(outcome: TurnResponse): TurnEvent[] {
  const events: TurnEvent[] = []
  if (outcome.status === 'completed') events.push({ type: 'usage', ...outcome.data.usage })
  if (outcome.status === 'awaiting_tool') {
    for (const { call_id, name, arguments: args, requires_approval } of outcome.data.tool_requests) {
      events.push({ type: 'tool_call_started', call_id, name })
      events.push({ type: 'tool_call_requested', call_id, name, arguments: args, requires_approval })
    }
  }
  events.push({ type: 'turn_end', ...outcome })
  return events
}

/** The short stream of a turn whose own is no longer held: the same events, the text in one piece. */
export function replayEvents(outcome: TurnResponse): TurnEvent[] {
  const text = outcome.status === 'completed' ? outcome.data.message.content : ''
  return [...(text === '' ? [] : [{ type: 'text_delta' as const, delta: text }]), ...closingEvents(outcome)]
}
