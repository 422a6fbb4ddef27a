import { describe, expect, it } from 'vitest'
import type { ModelRequest } from '../../src/core/prompt.ts'
import { parseProviderConfig } from '../../src/providers/config.ts'
import { makeEgress } from '../../src/providers/egress.ts'
import type { CallContext, ModelEvent } from '../../src/providers/provider.ts'
import { makeProviders } from '../../src/providers/registry.ts'
import { type ScriptedAnswer, scriptedFetch } from '../support/node/scripted-upstream.ts'
import {
  ollamaBuffered,
  ollamaStream,
  openAiBuffered,
  openAiStream,
  type ScriptedCompletion,
} from '../support/node/scripted-upstream-dialects.ts'

const COMPLETION: ScriptedCompletion = {
  text: ['Größe ', '🚂'],
  calls: [{ id: 'call_a', name: 'read_file', arguments: { path: 'größe.ts' } }],
  usage: { input: 12, output: 3 },
}
const EXPECTED: ModelEvent[] = [
  { type: 'text_delta', delta: 'Größe 🚂' },
  { type: 'tool_call', providerCallId: 'call_a', name: 'read_file', arguments: { path: 'größe.ts' } },
  { type: 'usage', usage: { inputTokens: 12, outputTokens: 3 } },
  { type: 'finished', reason: 'tool_calls' },
]

const providers = makeProviders(
  parseProviderConfig({
    OLLAMA_BASE_URL: 'http://127.0.0.1:11434',
    PROVIDERS: JSON.stringify([{ name: 'lab', base_url: 'http://127.0.0.1:8000/v1', local: true }]),
  }),
)

/** What only this runtime shows: its streams, its fetch, its loading of the SDK on the first call. */
describe.each([
  { id: 'ollama', streamed: ollamaStream, buffered: ollamaBuffered },
  { id: 'openai-compat:lab', streamed: openAiStream, buffered: openAiBuffered },
])('$id in workerd', ({ id, streamed, buffered }) => {
  const run = async (options: { answer?: ScriptedAnswer; streaming?: boolean; signal?: AbortSignal }) => {
    const provider = providers.get(id)
    if (provider === undefined) throw new Error(`no ${id}`)
    const request: ModelRequest = {
      model: {
        provider: id,
        model: 'lab-7b',
        display_name: null,
        local: true,
        auth: 'none',
        capabilities: { streaming: options.streaming ?? true, tools: true },
        max_context_tokens: 8192,
        max_output_tokens: null,
        default_parameters: {},
      },
      messages: [{ role: 'user', text: 'Why does the parser drop the final row?' }],
      tools: [],
      effort: 'medium',
    }
    const context: CallContext = {
      signal: options.signal ?? new AbortController().signal,
      egress: makeEgress({
        record: () => {},
        purpose: 'completion',
        provider: id,
        chosenBy: 'default route',
        remoteAllowed: false,
        ...(options.answer === undefined ? {} : { fetch: scriptedFetch(options.answer).fetch }),
      }),
    }
    let text = ''
    const events: ModelEvent[] = []
    for await (const event of provider.invoke(request, context)) {
      if (event.type === 'text_delta') text += event.delta
      // What a provider reports on the way is no part of the answer.
      else if (event.type !== 'usage_so_far') events.push(event)
    }
    return text === '' ? events : [{ type: 'text_delta', delta: text }, ...events]
  }

  it('[U39] a stream in single bytes and a buffered answer give the same events', async () => {
    expect(await run({ answer: { ...streamed(COMPLETION), chunkBytes: 1 } })).toEqual(EXPECTED)
    expect(await run({ answer: buffered(COMPLETION), streaming: false })).toEqual(EXPECTED)
  })

  it('[D16] the runtime’s own fetch is the way out, and its answer is sorted like any other', async () => {
    expect(await run({})).toMatchObject([
      {
        type: 'failed',
        failure: { category: 'provider_unavailable', message: expect.stringContaining('HTTP 599') },
      },
    ])
  })

  it('an abort ends the iteration with failed, and a caller that ran out of time with a timeout', async () => {
    const controller = new AbortController()
    const events = run({ answer: { body: '', ending: 'hang' }, signal: controller.signal })
    await scheduler.wait(0)
    controller.abort()
    expect(await events).toMatchObject([{ type: 'failed', failure: { aborted: true } }])
    const late = await run({ answer: { body: '', ending: 'hang' }, signal: AbortSignal.timeout(5) })
    expect(late).toMatchObject([{ type: 'failed', failure: { category: 'timeout' } }])
  })

  it('a redirect, a broken connection and a cut stream are failures', async () => {
    const whole = String(streamed(COMPLETION).body)
    expect(await run({ answer: { status: 302, headers: { location: 'http://127.0.0.1/' } } })).toMatchObject([
      { type: 'failed', failure: { category: 'unknown' } },
    ])
    for (const ending of ['close', 'break'] as const) {
      const events = await run({ answer: { body: whole.slice(0, 40), ending } })
      expect(events).toMatchObject([{ type: 'failed' }])
    }
  })
})
