import { describe, expect, test } from 'vitest'
import { awaitingTool, completed, failed, idle } from '../../../src/core/run/envelope.ts'
import { closingEvents, replayEvents } from '../../../src/core/turn-events.ts'
import { makeReport } from '../../support/core/run-machine.ts'

const tools = awaitingTool(
  ['a', 'b'].map((id) => ({
    call_id: id,
    name: `tool-${id}`,
    arguments: { id },
    requires_approval: 'ask' as const,
  })),
  'trace:1',
)
const done = completed('Hello.', null, makeReport(), { input_tokens: 1 }, 'trace:1')

describe('[EC 18] how a stream ends', () => {
  test('a completed turn: its usage, then the end', () => {
    expect(closingEvents(done)).toEqual([
      { type: 'usage', input_tokens: 1 },
      { type: 'turn_end', ...done },
    ])
  })

  test('calls for the client: each announced and asked for, in order, then the end', () => {
    expect(closingEvents(tools)).toEqual([
      { type: 'tool_call_started', call_id: 'a', name: 'tool-a' },
      {
        type: 'tool_call_requested',
        call_id: 'a',
        name: 'tool-a',
        arguments: { id: 'a' },
        requires_approval: 'ask',
      },
      { type: 'tool_call_started', call_id: 'b', name: 'tool-b' },
      {
        type: 'tool_call_requested',
        call_id: 'b',
        name: 'tool-b',
        arguments: { id: 'b' },
        requires_approval: 'ask',
      },
      { type: 'turn_end', ...tools },
    ])
  })

  test('[U07] everything else: the end alone', () => {
    for (const outcome of [idle('trace:1'), failed({ code: 'no_route', message: 'none' })])
      expect(closingEvents(outcome)).toEqual([{ type: 'turn_end', ...outcome }])
  })
})

describe('[D19] the stream of a turn that is no longer held', () => {
  test('the text in one piece before the end; none where there is none', () => {
    expect(replayEvents(done)).toEqual([{ type: 'text_delta', delta: 'Hello.' }, ...closingEvents(done)])
    expect(replayEvents(tools)).toEqual(closingEvents(tools))
    const silent = completed('', null, makeReport(), {}, 'trace:1')
    expect(replayEvents(silent)).toEqual(closingEvents(silent))
  })
})
