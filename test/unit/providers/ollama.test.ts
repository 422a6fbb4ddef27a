import { describe, expect, it } from 'vitest'
import { OllamaProvider } from '../../../src/providers/ollama.ts'
import { scriptedFetch } from '../../support/node/scripted-upstream.ts'
import {
  ndjson,
  ollamaDialect,
  ollamaLines,
  ollamaStream,
} from '../../support/node/scripted-upstream-dialects.ts'
import { describeProviderContract } from './provider-contract.ts'
import { collect, KEY, makeContext, makeDescriptor, makeRequest, READ_FILE, toolRound } from './support.ts'

const makeProvider = (baseUrl: string) =>
  new OllamaProvider(
    { baseUrl, local: true, maxContextTokens: 32_768 },
    { firstByteMs: 3_000, totalMs: 10_000 },
  )
const model = makeDescriptor({ provider: 'ollama', model: 'qwen3:8b' })

describeProviderContract({
  name: 'Ollama',
  makeProvider,
  makeRequest: ({ streaming = true, reasoning = false } = {}) =>
    makeRequest({ model: { ...model, capabilities: { ...model.capabilities, streaming, reasoning } } }),
  wire: ollamaDialect,
  conversation: 'ollama',
  keyHeader: { name: 'authorization', value: `Bearer ${KEY}` },
  tells: ['cached'],
  endings: [],
  signs: [],
})

describe('Ollama: the request', () => {
  const bodyOf = async (request: Parameters<typeof makeRequest>[0]) => {
    const upstream = scriptedFetch(ollamaStream({ text: ['ok'] }))
    const { context } = makeContext({ fetch: upstream.fetch })
    await collect(makeProvider('http://127.0.0.1:11434'), makeRequest({ model, ...request }), context)
    expect(upstream.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(['POST /api/chat'])
    return upstream.requests[0]?.body
  }

  it('[D13] the window of the descriptor is the window that is loaded, and a longer prompt is an error', async () => {
    expect(await bodyOf({ model: { ...model, max_context_tokens: 24_000 } })).toEqual({
      model: 'qwen3:8b',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Why does the parser drop the final row of the table?' },
      ],
      tools: [{ type: 'function', function: READ_FILE }],
      stream: true,
      truncate: false,
      shift: false,
      options: { num_ctx: 24_000 },
    })
  })

  it('default parameters go under Ollama’s names and cannot change the window', async () => {
    const parameters = { temperature: 0.2, top_p: 0.9, top_k: 20, max_tokens: 900, num_ctx: 5 }
    expect(await bodyOf({ model: { ...model, default_parameters: parameters } })).toMatchObject({
      options: { temperature: 0.2, top_p: 0.9, top_k: 20, num_predict: 900, num_ctx: 16_384 },
    })
    expect(
      await bodyOf({ model: { ...model, max_output_tokens: 700, default_parameters: parameters } }),
    ).toMatchObject({
      options: { num_predict: 700 },
    })
  })

  it('pictures go beside the words', async () => {
    const images = [{ mediaType: 'image/png' as const, base64: 'iVBORw==' }]
    const messages = [
      { role: 'user' as const, text: 'What?', images },
      { role: 'user' as const, text: 'And?' },
    ]
    expect(await bodyOf({ messages })).toMatchObject({
      messages: [
        { role: 'user', content: 'What?', images: ['iVBORw=='] },
        { role: 'user', content: 'And?' },
      ],
    })
  })

  it('each result follows its call and names it, and a failed one says so', async () => {
    expect(await bodyOf({ messages: toolRound, tools: [] })).toMatchObject({
      messages: [
        { role: 'user', content: 'Compare a and b.' },
        {
          role: 'assistant',
          content: 'Reading both.',
          tool_calls: [
            { id: 'c1', function: { name: 'read_file', arguments: { path: 'a' } } },
            { id: 'c2', function: { name: 'read_file', arguments: { path: 'b' } } },
          ],
        },
        { role: 'tool', content: 'alpha', tool_name: 'read_file', tool_call_id: 'c1' },
        { role: 'tool', content: 'Error: no such file', tool_name: 'read_file', tool_call_id: 'c2' },
      ],
    })
  })

  it('effort is asked of models that think, and only of them', async () => {
    const thinker = { ...model, capabilities: { ...model.capabilities, reasoning: true } }
    const levels = { ...thinker, provider_options: { think: 'levels' } }
    const think = async (request: Parameters<typeof makeRequest>[0]) =>
      Object.entries((await bodyOf(request)) ?? {}).find(([key]) => key === 'think')?.[1]
    expect(await think({ effort: 'high' })).toBeUndefined()
    expect(await think({ model: thinker, effort: 'low' })).toBe(false)
    expect(await think({ model: thinker, effort: 'medium' })).toBe(true)
    expect(await think({ model: levels, effort: 'low' })).toBe('low')
    expect(await think({ model: levels, effort: 'xhigh' })).toBe('high')
  })
})

describe('Ollama: the answer', () => {
  const eventsOf = (body: string) => {
    const { context } = makeContext({ fetch: scriptedFetch({ body }).fetch })
    return collect(makeProvider('http://127.0.0.1:11434'), makeRequest({ model }), context)
  }

  it('a call without an id is a call without an id', async () => {
    expect(
      await eventsOf(ndjson(ollamaLines({ calls: [{ name: 'read_file', arguments: { path: 'a' } }] }))),
    ).toEqual([
      { type: 'tool_call', name: 'read_file', arguments: { path: 'a' } },
      { type: 'finished', reason: 'tool_calls' },
    ])
  })

  it('arguments that are no object are kept as they came', async () => {
    const call = (args: unknown) => ({
      message: { tool_calls: [{ function: { name: 'read_file', arguments: args } }] },
    })
    expect(
      await eventsOf(
        ndjson([call('{"path":"a"}'), call('{"path":'), call(['a']), call(null), { done: true }]),
      ),
    ).toEqual([
      { type: 'tool_call', name: 'read_file', arguments: { path: 'a' } },
      { type: 'tool_call', name: 'read_file', arguments: {}, malformedArguments: '{"path":' },
      { type: 'tool_call', name: 'read_file', arguments: {}, malformedArguments: '["a"]' },
      { type: 'tool_call', name: 'read_file', arguments: {} },
      { type: 'finished', reason: 'tool_calls' },
    ])
  })

  it('arguments nested too deeply to be stored and handed on are none', async () => {
    const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
    const line = (args: string) =>
      `{"message":{"tool_calls":[{"function":{"name":"shell","arguments":${args}}}]}}\n`
    const events = await eventsOf(
      `${[nested(128), nested(129), nested(50_000), JSON.stringify(nested(129))].map(line).join('')}{"done":true}\n`,
    )
    const malformed = events.map((event) => event.type === 'tool_call' && 'malformedArguments' in event)
    expect(malformed).toEqual([false, true, true, true, false])
  })

  it('[U37] a model listed as local whose answer comes from another host fails', async () => {
    const [line] = ollamaLines({ text: ['a'] })
    expect(await eventsOf(ndjson([{ ...Object(line), remote_host: 'https://ollama.com:443' }]))).toEqual([
      {
        type: 'failed',
        failure: {
          category: 'invalid_configuration',
          message: 'qwen3:8b was listed as local, but the daemon forwards it to another host',
        },
      },
    ])
  })

  it('a capability that the model lacks is told as such', async () => {
    const { context } = makeContext({
      fetch: scriptedFetch({
        status: 400,
        body: '{"error":"registry.ollama.ai/library/x does not support tools"}',
      }).fetch,
    })
    expect(
      await collect(makeProvider('http://127.0.0.1:11434'), makeRequest({ model }), context),
    ).toMatchObject([{ failure: { category: 'unsupported_capability' } }])
  })
})
