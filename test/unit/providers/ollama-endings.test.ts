import { afterEach, describe, expect, it, vi } from 'vitest'
import { OllamaProvider } from '../../../src/providers/ollama.ts'
import type { ModelEvent } from '../../../src/providers/provider.ts'
import { OWN_MACHINE_DEADLINES } from '../../../src/providers/upstream-call.ts'
import { type ScriptedAnswer, scriptedFetch } from '../../support/node/scripted-upstream.ts'
import { jsonAnswer } from '../../support/node/scripted-upstream-completion.ts'
import {
  ndjson,
  ollamaBuffered,
  ollamaLines,
  ollamaStream,
} from '../../support/node/scripted-upstream-dialects.ts'
import { startScriptedUpstream } from '../../support/node/scripted-upstream-server.ts'
import { collect, joinDeltas, makeContext, makeDescriptor, makeRequest } from './support.ts'

const makeProvider = (baseUrl: string) =>
  new OllamaProvider({ baseUrl, local: true, maxContextTokens: 32_768 }, OWN_MACHINE_DEADLINES)
const requestOf = (streaming: boolean) =>
  makeRequest({
    model: makeDescriptor({
      provider: 'ollama',
      model: 'qwen3:8b',
      capabilities: { streaming, tools: true },
    }),
  })
const eventsOf = async (answer: ScriptedAnswer, streaming = true) => {
  const { context } = makeContext({ fetch: scriptedFetch(answer).fetch })
  return joinDeltas(await collect(makeProvider('http://127.0.0.1:11434'), requestOf(streaming), context))
}

/** How daemons say that a prompt does not fit: their own words, and those of the runners below them. */
const TOO_LONG = [
  'the input length exceeds the context length',
  'prompt too long; exceeded max context length by 123 tokens',
  'the request exceeds the available context size, try increasing it',
  'request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it',
]

describe('Ollama: how an answer ends', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  it.each(TOO_LONG)(
    '[U42] a prompt that does not fit is told as that, wherever it is said: %s',
    async (error) => {
      for (const status of [400, 500]) {
        for (const streaming of [true, false]) {
          expect(await eventsOf(jsonAnswer({ error }, { status }), streaming)).toMatchObject([
            { type: 'failed', failure: { category: 'context_length', status } },
          ])
        }
      }
      const failed = { type: 'failed', failure: { category: 'context_length' } }
      const [line] = ollamaLines({ text: ['Hm'] })
      expect(await eventsOf({ body: ndjson([{ error }]) })).toMatchObject([failed])
      expect(await eventsOf({ body: ndjson([line, { error }]) })).toMatchObject([
        { type: 'text_delta' },
        failed,
      ])
      expect(await eventsOf(jsonAnswer({ error }), false)).toMatchObject([failed])
    },
  )

  it('[U42] a window that is full before the answer is complete cuts it, also where it is buffered', async () => {
    const completion = { text: ['a'], finish: 'length', usage: { input: 8_000, output: 192 } } as const
    const cut = await eventsOf(ollamaStream({ ...completion, text: ['a'] }))
    expect(cut).toEqual([
      { type: 'text_delta', delta: 'a' },
      { type: 'usage', usage: { inputTokens: 8_000, outputTokens: 192 } },
      { type: 'finished', reason: 'length' },
    ])
    expect(await eventsOf(ollamaBuffered({ ...completion, text: ['a'] }), false)).toEqual(cut)
  })

  it('[U42] a reason that is not known is neither a good end nor a cut', async () => {
    const done = (reason: unknown) => ({ body: ndjson([{ done: true, done_reason: reason }]) })
    expect(await eventsOf(done('unload'))).toEqual([{ type: 'finished', reason: 'other' }])
    expect(await eventsOf(done(null))).toEqual([{ type: 'finished', reason: 'stop' }])
  })

  it('[D24] an error after calls shows none of them, and nothing after an error counts', async () => {
    const [call, end] = ollamaLines({ calls: [{ name: 'read_file', arguments: { path: 'a' } }] })
    const error = { error: 'llama runner process has terminated: exit status 2' }
    expect(await eventsOf({ body: ndjson([call, error, end]) })).toMatchObject([{ type: 'failed' }])
  })

  it('[D24] a buffered answer that is not marked as complete fails', async () => {
    expect(await eventsOf(jsonAnswer({ message: { content: 'a' }, done: false }), false)).toMatchObject([
      { type: 'text_delta', delta: 'a' },
      { type: 'failed', failure: { category: 'unknown' } },
    ])
  })

  it('a daemon has five minutes to load a model, and no more', async () => {
    vi.useFakeTimers()
    let settled = false
    const events = eventsOf({ body: '', ending: 'hang' }).finally(() => {
      settled = true
    })
    await vi.advanceTimersByTimeAsync(5 * 60_000 - 1)
    expect(settled).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(await events).toEqual([
      { type: 'failed', failure: { category: 'timeout', message: 'the provider sent nothing within 300 s' } },
    ])
    expect(vi.getTimerCount()).toBe(0)
  })

  it.each([true, false])(
    '[U26] an abort while the model is loaded reaches the daemon, streaming: %s',
    async (streaming) => {
      const controller = new AbortController()
      // The daemon answers, headers included, when the first token is there.
      const server = await startScriptedUpstream(() => {
        controller.abort()
        return new Promise(() => {})
      })
      const { context } = makeContext({ signal: controller.signal })
      const events: ModelEvent[] = await collect(makeProvider(server.url), requestOf(streaming), context)
      await server.callerLeft
      await server.close()
      expect(events).toEqual([
        {
          type: 'failed',
          failure: { category: 'unknown', message: 'the call was cancelled', aborted: true },
        },
      ])
    },
  )
})
