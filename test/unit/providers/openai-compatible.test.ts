import { describe, expect, it } from 'vitest'
import type { InstanceConfig } from '../../../src/providers/config.ts'
import { OpenAiCompatibleProvider } from '../../../src/providers/openai-compatible.ts'
import { scriptedFetch } from '../../support/node/scripted-upstream.ts'
import {
  chatDialect,
  openAiChunks,
  openAiStream,
  sse,
} from '../../support/node/scripted-upstream-dialects.ts'
import { describeProviderContract } from './provider-contract.ts'
import {
  collect,
  collectAll,
  KEY,
  makeContext,
  makeDescriptor,
  makeRequest,
  READ_FILE,
  reportsIn,
  toolRound,
} from './support.ts'

const instance: InstanceConfig = {
  id: 'openai-compat:lab',
  displayName: 'Lab',
  baseUrl: 'http://lab.internal:8080/v1',
  local: true,
  auth: 'none',
}
const makeProvider = (overrides: Partial<InstanceConfig> = {}) =>
  new OpenAiCompatibleProvider({ ...instance, ...overrides }, { firstByteMs: 3_000, totalMs: 10_000 })

describeProviderContract({
  name: 'OpenAI-compatible',
  makeProvider: (origin) => makeProvider({ baseUrl: `${origin}/v1` }),
  makeRequest: ({ streaming = true, reasoning = false } = {}) =>
    makeRequest({ model: makeDescriptor({ capabilities: { streaming, tools: true, reasoning } }) }),
  wire: chatDialect,
  conversation: 'chat',
  keyHeader: { name: 'authorization', value: `Bearer ${KEY}` },
  tells: ['cached', 'reasoning'],
  endings: ['refused'],
  signs: ['calls'],
})

const bodyOf = async (request: Parameters<typeof makeRequest>[0]) => {
  const upstream = scriptedFetch(openAiStream({ text: ['ok'] }))
  const { context } = makeContext({ fetch: upstream.fetch })
  await collect(makeProvider(), makeRequest(request), context)
  expect(upstream.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'POST /v1/chat/completions',
  ])
  return upstream.requests[0]?.body
}
const eventsOf = (chunks: readonly unknown[]) => {
  const { context } = makeContext({ fetch: scriptedFetch({ body: sse(chunks) }).fetch })
  return collect(makeProvider(), makeRequest(), context)
}

describe('OpenAI-compatible: the request', () => {
  it('carries the prompt, the tools and the wish for usage', async () => {
    expect(await bodyOf({})).toEqual({
      model: 'lab-7b',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Why does the parser drop the final row of the table?' },
      ],
      tools: [{ type: 'function', function: READ_FILE }],
      tool_choice: 'auto',
      stream: true,
      stream_options: { include_usage: true },
    })
  })

  it('default parameters are sent, unknown ones under their own names', async () => {
    const model = makeDescriptor({
      max_output_tokens: 4_000,
      default_parameters: {
        temperature: 0.1,
        top_p: 0.5,
        max_tokens: 800,
        top_k: 30,
        repetition_penalty: 1.1,
      },
    })
    expect(await bodyOf({ model, tools: [] })).toMatchObject({
      temperature: 0.1,
      top_p: 0.5,
      max_tokens: 800,
      top_k: 30,
      repetition_penalty: 1.1,
    })
    expect(await bodyOf({ model, tools: [] })).not.toHaveProperty('tool_choice')
  })

  it('effort is asked of models that reason, and only of them', async () => {
    expect(await bodyOf({ effort: 'high' })).not.toHaveProperty('reasoning_effort')
    const model = makeDescriptor({ capabilities: { streaming: true, reasoning: true } })
    expect(await bodyOf({ model, effort: 'low' })).toMatchObject({ reasoning_effort: 'low' })
    expect(await bodyOf({ model, effort: 'xhigh' })).toMatchObject({ reasoning_effort: 'high' })
  })

  it('[EC 11] the calls stand directly before their results, under the ids of the provider', async () => {
    expect(await bodyOf({ messages: toolRound, tools: [] })).toMatchObject({
      messages: [
        { role: 'user', content: 'Compare a and b.' },
        {
          role: 'assistant',
          content: 'Reading both.',
          tool_calls: [
            { id: 'c1', type: 'function', function: { name: 'read_file', arguments: '{"path":"a"}' } },
            { id: 'c2', type: 'function', function: { name: 'read_file', arguments: '{"path":"b"}' } },
          ],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'alpha' },
        { role: 'tool', tool_call_id: 'c2', content: 'Error: no such file' },
      ],
    })
  })

  it('a picture goes beside the words, and alone where there are none', async () => {
    const image = { mediaType: 'image/png' as const, base64: 'iVBORw==' }
    const part = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw==' } }
    const user = (text: string) => bodyOf({ messages: [{ role: 'user', text, images: [image] }] })
    expect(await user('What?')).toMatchObject({
      messages: [{ content: [part, { type: 'text', text: 'What?' }] }],
    })
    expect(await user('')).toMatchObject({ messages: [{ content: [part] }] })
  })

  it('[U40] a signature comes with its call and goes back with it', async () => {
    const signed = { extra_content: { google: { thought_signature: 'sig-1' } } }
    const call = { index: 0, id: 'c1', function: { name: 'read_file', arguments: '{}' }, ...signed }
    const [, end] = openAiChunks({ finish: 'tool_calls' })
    expect(await eventsOf([{ choices: [{ delta: { tool_calls: [call] } }] }, end])).toEqual([
      {
        type: 'tool_call',
        providerCallId: 'c1',
        name: 'read_file',
        arguments: {},
        opaque: { thoughtSignature: 'sig-1' },
      },
      { type: 'finished', reason: 'tool_calls' },
    ])
    const toolCalls = [
      { callId: 'c1', name: 'read_file', arguments: {}, opaque: { thoughtSignature: 'sig-1' } },
      { callId: 'c2', name: 'read_file', arguments: {} },
    ]
    const body = await bodyOf({ messages: [{ role: 'assistant', text: '', toolCalls }] })
    expect(body).toMatchObject({ messages: [{ tool_calls: [{ id: 'c1', ...signed }, { id: 'c2' }] }] })
    expect(JSON.stringify(body).match(/thought_signature/g)).toHaveLength(1)
  })

  it('[EC 8.5] a model that needs a key is not asked without one', async () => {
    const upstream = scriptedFetch(openAiStream({ text: ['ok'] }))
    const { context, routes } = makeContext({ fetch: upstream.fetch })
    const request = makeRequest({ model: makeDescriptor({ auth: 'api_key' }) })
    expect(await collect(makeProvider(), request, context)).toEqual([
      {
        type: 'failed',
        failure: {
          category: 'missing_credentials',
          message: 'the provider needs an API key and none was given',
        },
      },
    ])
    expect({ routes, requests: upstream.requests }).toEqual({ routes: [], requests: [] })
    const keyed = makeContext({ fetch: upstream.fetch, credential: KEY })
    expect(await collect(makeProvider(), request, keyed.context)).toHaveLength(2)
  })

  it('an instance that is not local reaches no remote endpoint for a model that claims to be', async () => {
    const { context } = makeContext({ fetch: scriptedFetch({}).fetch, remoteAllowed: false })
    await expect(collect(makeProvider({ local: false }), makeRequest(), context)).rejects.toThrow(
      'local models',
    )
  })
})

describe('OpenAI-compatible: the answer', () => {
  const chunk = (delta: unknown, finish: string | null = null) => ({
    choices: [{ delta, finish_reason: finish }],
  })

  it('[U39] arguments that come only in the last event, with the finish reason, are whole', async () => {
    const call = { index: 0, id: 'c1', function: { name: 'read_file', arguments: '{"path":"a"}' } }
    expect(await eventsOf([chunk({ tool_calls: [call] }, 'tool_calls')])).toEqual([
      { type: 'tool_call', providerCallId: 'c1', name: 'read_file', arguments: { path: 'a' } },
      { type: 'finished', reason: 'tool_calls' },
    ])
  })

  it('[U39] the arguments of parallel calls may come in turns', async () => {
    const part = (index: number, text: string) =>
      chunk({ tool_calls: [{ index, function: { arguments: text } }] })
    const start = (index: number) =>
      chunk({ tool_calls: [{ index, id: `c${index}`, function: { name: 'read_file', arguments: '' } }] })
    expect(
      await eventsOf([
        ...[start(0), start(1), part(1, '{"path"'), part(0, '{"pa'), part(1, ':"b"}'), part(0, 'th":"a"}')],
        chunk({}, 'tool_calls'),
      ]),
    ).toEqual([
      { type: 'tool_call', providerCallId: 'c0', name: 'read_file', arguments: { path: 'a' } },
      { type: 'tool_call', providerCallId: 'c1', name: 'read_file', arguments: { path: 'b' } },
      { type: 'finished', reason: 'tool_calls' },
    ])
  })

  it('a call without an id gets none made up, and no arguments at all are an empty object', async () => {
    const call = { index: 0, function: { name: 'read_file', arguments: '' } }
    expect(await eventsOf([chunk({ tool_calls: [call] }, 'stop')])).toEqual([
      { type: 'tool_call', name: 'read_file', arguments: {} },
      { type: 'finished', reason: 'tool_calls' },
    ])
  })

  it('arguments cut at the output limit are kept as they came', async () => {
    const call = { index: 0, id: 'c1', function: { name: 'read_file', arguments: '{"path":"a' } }
    expect(await eventsOf([chunk({ tool_calls: [call] }, 'length')])).toEqual([
      {
        type: 'tool_call',
        providerCallId: 'c1',
        name: 'read_file',
        arguments: {},
        malformedArguments: '{"path":"a',
      },
      { type: 'finished', reason: 'length' },
    ])
  })

  it('[U42] a refusal and a content filter are refused, not finished', async () => {
    expect(await eventsOf([chunk({ refusal: 'I cannot.' }, 'stop')])).toEqual([
      { type: 'text_delta', delta: 'I cannot.' },
      { type: 'finished', reason: 'refused' },
    ])
    expect(await eventsOf([chunk({}, 'content_filter')])).toEqual([{ type: 'finished', reason: 'refused' }])
    expect(await eventsOf([chunk({}, 'eos')])).toEqual([{ type: 'finished', reason: 'other' }])
  })

  it('[U43] each counter is what was reported, and one that was not is absent', async () => {
    const usage = {
      prompt_tokens: 10,
      completion_tokens: 0,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 3 },
    }
    expect(await eventsOf([chunk({ content: 'a' }, 'stop'), { choices: [], usage }])).toContainEqual({
      type: 'usage',
      usage: { inputTokens: 10, outputTokens: 0, cachedTokens: 4, reasoningTokens: 3 },
    })
    expect(
      await eventsOf([chunk({ content: 'a' }, 'stop'), { choices: [], usage: { completion_tokens: 7 } }]),
    ).toContainEqual({ type: 'usage', usage: { outputTokens: 7 } })
  })

  it('[EC 15][U43] usage that comes with each chunk is told as it grows, and what came before a cut stays', async () => {
    const usageOf = (completion: number) => ({ prompt_tokens: 10, completion_tokens: completion })
    const chunks = [0, 1, 1, 2].map((count) => ({ ...chunk({ content: 'a' }), usage: usageOf(count) }))
    const told = [0, 1, 2].map((count) => ({ inputTokens: 10, outputTokens: count }))
    const all = async (body: string) => {
      const { context } = makeContext({ fetch: scriptedFetch({ body }).fetch })
      return collectAll(makeProvider(), makeRequest(), context)
    }
    const cut = await all(sse(chunks, { done: false }))
    expect(reportsIn(cut)).toEqual(told)
    expect(cut.map(({ type }) => type)).toEqual([
      'usage_so_far',
      'text_delta',
      'usage_so_far',
      'text_delta',
      'text_delta',
      'usage_so_far',
      'text_delta',
      'failed',
    ])
    const whole = await all(sse([...chunks, { ...chunk({}, 'stop'), usage: usageOf(2) }]))
    expect(reportsIn(whole)).toEqual(told)
    expect(whole.slice(-2)).toEqual([
      { type: 'usage', usage: { inputTokens: 10, outputTokens: 2 } },
      { type: 'finished', reason: 'stop' },
    ])
  })

  it('a status inside an error in the stream counts as one', async () => {
    const error = { code: 502, message: 'upstream is down' }
    expect(await eventsOf([{ id: '1', error, choices: [chunk({}, 'error').choices[0]] }])).toEqual([
      {
        type: 'failed',
        failure: {
          category: 'provider_unavailable',
          message: 'the provider is not available (HTTP 502): upstream is down',
        },
      },
    ])
    expect(await eventsOf([{ error: 'plain text' }])).toMatchObject([{ failure: { category: 'unknown' } }])
  })

  it('comments between the events are ignored', async () => {
    const body = `: processing\n\n${sse(openAiChunks({ text: ['a'] }))}`
    const { context } = makeContext({ fetch: scriptedFetch({ body }).fetch })
    expect(await collect(makeProvider(), makeRequest(), context)).toEqual([
      { type: 'text_delta', delta: 'a' },
      { type: 'finished', reason: 'stop' },
    ])
  })
})
