import { describe, expect, it } from 'vitest'
import { MAX_JSON_DEPTH } from '../../../src/protocol/json-depth.ts'
import { recoverPrintedCalls } from '../../../src/providers/printed-calls.ts'
import type { ModelEvent } from '../../../src/providers/provider.ts'
import { CALLS, expectedOf, finished, play, printed, TEXTS, TOOLS, text } from './printed-calls-corpus.ts'
import { joinDeltas } from './support.ts'

const recover = async (events: readonly ModelEvent[], tools = TOOLS): Promise<ModelEvent[]> => {
  const recovered: ModelEvent[] = []
  for await (const event of recoverPrintedCalls(play(events), tools)) recovered.push(event)
  return recovered
}
const FORM = '<tool_call>{"name":"list_files","arguments":{}}</tool_call>'
const call: ModelEvent = { type: 'tool_call', name: 'list_files', arguments: {} }

describe('calls that a model prints', () => {
  it.each(CALLS)('[EC 12.6] $what is a call', async (one) => {
    expect(joinDeltas(await recover(printed([one.printed])))).toEqual(expectedOf(one))
  })

  it.each(TEXTS)('[EC 12.6] $what stays text', async (one) => {
    expect(joinDeltas(await recover(printed([one.printed])))).toEqual(expectedOf(one))
  })

  it('[EC 12.6] without tools the very same events pass', () => {
    const events = play(printed([FORM]))
    expect(recoverPrintedCalls(events, [])).toBe(events)
  })

  it('[EC 12.6] a name is offered or not, whatever objects inherit', async () => {
    for (const name of ['toString', '__proto__', 'constructor']) {
      const form = `<tool_call>{"name":"${name}","arguments":{}}</tool_call>`
      expect(await recover(printed([form]))).toEqual(printed([form]))
    }
    const parameters = '{"name":"list_files","arguments":{"__proto__":{"a":1}}}'
    const [own] = await recover(printed([parameters]))
    expect(JSON.stringify(own)).toBe(
      '{"type":"tool_call","name":"list_files","arguments":{"__proto__":{"a":1}}}',
    )
  })

  it('[EC 12.6] arguments nested more deeply than can be handed on are no call', async () => {
    const nested = (levels: number) => `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`
    for (const form of [
      (json: string) => `{"tool_calls":[{"function":{"name":"list_files","arguments":${json}}}]}`,
      (json: string) => `<tool_call>[{"name":"list_files","arguments":${json}}]</tool_call>`,
      (json: string) => `<function=list_files>${json}</function>`,
    ]) {
      const types = async (levels: number) =>
        joinDeltas(await recover(printed([form(nested(levels))]))).map(({ type }) => type)
      expect(await types(MAX_JSON_DEPTH)).toEqual(['tool_call', 'finished'])
      expect(await types(MAX_JSON_DEPTH + 1)).toEqual(['text_delta', 'finished'])
      expect(await types(10_000)).toEqual(['text_delta', 'finished'])
    }
  })
})

describe('what else is in the answer', () => {
  const usage: ModelEvent = { type: 'usage', usage: { inputTokens: 3, outputTokens: 4 } }
  const native: ModelEvent = { type: 'tool_call', providerCallId: 'c1', name: 'read_file', arguments: {} }

  it('calls come after all text and before the usage, as where a provider makes them', async () => {
    expect(await recover([text(`a${FORM}`), text('\n'), usage, finished('stop')])).toEqual([
      text('a'),
      call,
      usage,
      finished('tool_calls'),
    ])
  })

  it('[EC 15] what is reported on the way passes at once, whatever of the text is held back', async () => {
    const report: ModelEvent = { type: 'usage_so_far', usage: { inputTokens: 3 } }
    const failed: ModelEvent = { type: 'failed', failure: { category: 'timeout', message: 'too slow' } }
    expect(await recover([text('a<tool_'), report, text('x'), failed])).toEqual([
      text('a'),
      report,
      text('<tool_x'),
      failed,
    ])
  })

  it('thoughts pass as they come, and a call within them is a thought', async () => {
    const thought: ModelEvent = { type: 'reasoning_delta', delta: FORM }
    expect(await recover([text('<tool_'), thought, text('call>'), finished('stop')])).toEqual([
      thought,
      text('<tool_call>'),
      finished('stop'),
    ])
  })

  it('when the model made a call natively, what it printed is text, in its place', async () => {
    const events = [text(`a${FORM}b`), native, text(FORM), usage, finished('tool_calls')]
    expect(joinDeltas(await recover(events))).toEqual(events)
  })

  it('only a plain end is turned into one with calls', async () => {
    for (const reason of ['tool_calls', 'other', 'length'] as const) {
      expect(await recover([text(FORM), finished(reason)])).toEqual([call, finished(reason)])
    }
  })

  it('[U42] an answer cut off at the limit has only the calls that were complete', async () => {
    for (const open of [
      '<tool_call>{"name":"list_files","arguments":{}}\n',
      '<tool_call>{"name":"list_files","arg',
      '<function=list_files>{}',
      '```tool_call\n{"name":"list_files","arguments":{}}\n',
      '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>list_files<｜tool▁sep｜>{}<｜tool▁call▁end｜>',
    ]) {
      expect(joinDeltas(await recover([text(`a${FORM}\n${open}`), finished('length')]))).toEqual([
        text(`a\n${open}`),
        call,
        finished('length'),
      ])
    }
    const bare = '{"name":"list_files","arguments":{}}\n'
    for (const form of [bare, `\`\`\`json\n${bare}\`\`\`\n`]) {
      expect(joinDeltas(await recover([text(form), finished('length')]))).toEqual([
        text(form),
        finished('length'),
      ])
    }
  })

  it('[D24] an answer that fails shows none of its calls, and all of its text', async () => {
    const failed: ModelEvent = { type: 'failed', failure: { category: 'timeout', message: 'too slow' } }
    const cut = `a${FORM}\n<tool_call>{"name`
    expect(joinDeltas(await recover([text(cut), usage, failed]))).toEqual([text(cut), usage, failed])
  })

  it('[U42] a refused answer has no calls', async () => {
    expect(joinDeltas(await recover([text(`a${FORM}`), finished('refused')]))).toEqual([
      text(`a${FORM}`),
      finished('refused'),
    ])
  })

  it('whoever stops listening ends the answer', async () => {
    let ended = false
    const events = async function* (): AsyncGenerator<ModelEvent, void> {
      try {
        yield* [text('a'), text('b')]
      } finally {
        ended = true
      }
    }
    for await (const event of recoverPrintedCalls(events(), TOOLS)) {
      expect(event).toEqual(text('a'))
      break
    }
    expect(ended).toBe(true)
  })
})
