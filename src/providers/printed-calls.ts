import type { OfferedTool } from '../core/prompt.ts'
import { PrintedAnswer } from './printed-calls/answer.ts'
import type { ModelEvent } from './provider.ts'

/**
 * Turns the tool calls that a model printed as text into calls (EC 12.6), whatever it was trained to print: JSON, in a
 * fence or not, or one of the known tags. Only names of offered tools count; without any the events pass untouched. What
 * stands between printed thinking tags is thinking, and no call.
 *
 * Text passes as soon as it cannot belong to a call, and the outcome does not depend on how it was split. Calls come
 * when the answer has ended, without an id. They do not count, and stay text, when the model also made a call by its
 * provider's own means, when the answer failed or was refused, and, of an answer that was cut off, where the cut fell
 * into the form.
 */
export function recoverPrintedCalls(
  events: AsyncIterable<ModelEvent>,
  tools: readonly OfferedTool[],
): AsyncIterable<ModelEvent> {
  return tools.length === 0 ? events : recover(events, tools)
}

async function* recover(
  events: AsyncIterable<ModelEvent>,
  tools: readonly OfferedTool[],
): AsyncGenerator<ModelEvent, void> {
  const answer = new PrintedAnswer(tools)
  // Calls come before the usage, as they do where a provider makes them.
  const usage: ModelEvent[] = []
  for await (const event of events) {
    switch (event.type) {
      case 'text_delta':
        yield* textOf(answer.push(event.delta))
        break
      case 'reasoning_delta':
      case 'usage_so_far':
        yield event
        break
      case 'tool_call':
        yield* textOf(answer.giveUp())
        yield event
        break
      case 'usage':
        usage.push(event)
        break
      case 'failed':
        yield* textOf(answer.giveUp())
        yield* usage
        yield event
        break
      case 'finished': {
        const { text, calls } =
          event.reason === 'refused'
            ? { text: answer.giveUp(), calls: [] }
            : answer.end(event.reason !== 'length')
        yield* textOf(text)
        for (const call of calls) yield { type: 'tool_call', ...call }
        yield* usage
        yield calls.length > 0 && event.reason === 'stop' ? { ...event, reason: 'tool_calls' } : event
        break
      }
    }
  }
}

function* textOf(delta: string): Generator<ModelEvent, void> {
  if (delta !== '') yield { type: 'text_delta', delta }
}
