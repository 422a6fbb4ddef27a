import { afterEach, describe, expect, it, vi } from 'vitest'
import { OllamaProvider } from '../../../src/providers/ollama.ts'
import { OpenAiCompatibleProvider } from '../../../src/providers/openai-compatible.ts'
import type { ModelEvent, ModelProvider } from '../../../src/providers/provider.ts'
import { type ScriptedAnswer, scriptedFetch } from '../../support/node/scripted-upstream.ts'
import {
  piecesUntil,
  type ScriptedCompletion,
  streamedAnswer,
} from '../../support/node/scripted-upstream-completion.ts'
import { chatDialect, ollamaDialect } from '../../support/node/scripted-upstream-dialects.ts'
import { startScriptedUpstream } from '../../support/node/scripted-upstream-server.ts'
import { collect, joinDeltas, makeContext, makeDescriptor, makeRequest } from './support.ts'

const DEADLINES = { firstByteMs: 3_000, totalMs: 10_000 }
const ORIGIN = 'http://lab.internal:8080'
const instance = { id: 'openai-compat:lab', displayName: 'Lab', local: true, auth: 'none' } as const

const PROVIDERS = [
  {
    name: 'Ollama',
    wire: ollamaDialect,
    makeProvider: (baseUrl: string): ModelProvider =>
      new OllamaProvider({ baseUrl, local: true, maxContextTokens: 32_768 }, DEADLINES),
  },
  {
    name: 'an OpenAI-compatible endpoint',
    wire: chatDialect,
    makeProvider: (origin: string): ModelProvider =>
      new OpenAiCompatibleProvider({ ...instance, baseUrl: `${origin}/v1` }, DEADLINES),
  },
]

const FORM = '<tool_call>\n{"name":"read_file","arguments":{"path":"größe.ts"}}\n</tool_call>'
const PRINTED: ScriptedCompletion = {
  text: ['I read „größe.ts“.\n<tool', ...(FORM.slice('<tool'.length).match(/.{1,4}/gsu) ?? []), '\n'],
  usage: { input: 20, output: 31 },
}
const CALLED: ModelEvent[] = [
  { type: 'text_delta', delta: 'I read „größe.ts“.\n' },
  { type: 'tool_call', name: 'read_file', arguments: { path: 'größe.ts' } },
  { type: 'usage', usage: { inputTokens: 20, outputTokens: 31 } },
  { type: 'finished', reason: 'tool_calls' },
]

describe.each(PROVIDERS)('a call that a model of $name prints', ({ wire, makeProvider }) => {
  afterEach(() => {
    vi.useRealTimers()
  })

  const eventsOf = async (answer: ScriptedAnswer, capabilities = { streaming: true, tools: true }) => {
    const { context } = makeContext({ fetch: scriptedFetch(answer).fetch })
    const request = makeRequest({ model: makeDescriptor({ capabilities }) })
    return joinDeltas(await collect(makeProvider(ORIGIN), request, context))
  }

  it('[U39] is the same call streamed and buffered, however the bytes are split', async () => {
    expect(await eventsOf(wire.buffered(PRINTED), { streaming: false, tools: true })).toEqual(CALLED)
    for (const chunkBytes of [1, 7, 64, 1_000, 100_000]) {
      expect(await eventsOf({ ...streamedAnswer(wire, PRINTED), chunkBytes })).toEqual(CALLED)
    }
  })

  it('[EC 12.6] is text where the model is not one that calls tools', async () => {
    const events = await eventsOf(streamedAnswer(wire, PRINTED), { streaming: true, tools: false })
    expect(events.map(({ type }) => type)).toEqual(['text_delta', 'usage', 'finished'])
  })

  it('[EC 12.6] is text beside a call that the model made natively', async () => {
    const calls = [{ id: 'c1', name: 'read_file', arguments: { path: 'b' } }]
    expect(await eventsOf(streamedAnswer(wire, { text: [FORM], calls }))).toEqual([
      { type: 'text_delta', delta: FORM },
      { type: 'tool_call', providerCallId: 'c1', name: 'read_file', arguments: { path: 'b' } },
      { type: 'finished', reason: 'tool_calls' },
    ])
  })

  it('[U42] is text where the limit cut into it', async () => {
    const text = FORM.slice(0, 30)
    expect(await eventsOf(streamedAnswer(wire, { text: [text], finish: 'length' }))).toEqual([
      { type: 'text_delta', delta: text },
      { type: 'finished', reason: 'length' },
    ])
  })

  const CUT = 'Hm <tool_call>\n{"name":'
  const half = {
    headers: { 'content-type': wire.contentType },
    body: piecesUntil(wire, CUT).join(''),
    ending: 'hang',
  } as const

  it('[D21] is text where the deadline cut into it; no timer is left', async () => {
    vi.useFakeTimers()
    const events = eventsOf(half)
    await vi.advanceTimersByTimeAsync(DEADLINES.totalMs)
    expect(await events).toEqual([
      { type: 'text_delta', delta: CUT },
      {
        type: 'failed',
        failure: { category: 'timeout', message: 'the provider did not finish within 10 s' },
      },
    ])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('[U26] does not keep an abort from reaching the provider', async () => {
    const server = await startScriptedUpstream(half)
    const controller = new AbortController()
    const { context } = makeContext({ signal: controller.signal })
    const events: ModelEvent[] = []
    for await (const event of makeProvider(server.url).invoke(makeRequest(), context)) {
      events.push(event)
      controller.abort()
    }
    await server.callerLeft
    await server.close()
    expect(events).toEqual([
      { type: 'text_delta', delta: 'Hm ' },
      { type: 'text_delta', delta: CUT.slice('Hm '.length) },
      { type: 'failed', failure: { category: 'unknown', message: 'the call was cancelled', aborted: true } },
    ])
  })
})
