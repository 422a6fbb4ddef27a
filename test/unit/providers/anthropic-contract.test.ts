import { describe, expect, it } from 'vitest'
import { ok } from '../../../src/protocol/result.ts'
import { AnthropicProvider } from '../../../src/providers/anthropic.ts'
import { checkConversation } from '../../support/node/conversation-checker.ts'
import { scriptedFetch } from '../../support/node/scripted-upstream.ts'
import { anthropicDialect } from '../../support/node/scripted-upstream-anthropic.ts'
import { namedEvent } from '../../support/node/scripted-upstream-completion.ts'
import { describeProviderContract } from './provider-contract.ts'
import { collect, KEY, makeContext, makeDescriptor, makeRequest } from './support.ts'

const makeProvider = (origin: string) =>
  new AnthropicProvider({ id: 'anthropic', displayName: 'Anthropic', baseUrl: origin }, async () => ok([]), {
    firstByteMs: 3_000,
    totalMs: 10_000,
  })

/** An older model thinks within a budget, a newer one as much as it finds right. */
for (const name of ['claude-sonnet-4-5', 'claude-opus-4-7']) {
  describeProviderContract({
    name: `Anthropic (${name})`,
    makeProvider,
    makeRequest: ({ streaming = true, reasoning = false } = {}) =>
      makeRequest({
        model: makeDescriptor({
          provider: 'anthropic',
          model: name,
          local: false,
          auth: 'api_key',
          capabilities: { streaming, tools: true, reasoning },
          max_context_tokens: 200_000,
          max_output_tokens: 16_000,
        }),
      }),
    wire: anthropicDialect,
    conversation: 'anthropic',
    keyHeader: { name: 'x-api-key', value: KEY },
    tells: ['cached', 'cacheWrite'],
    reportsFirst: ({ input, cached = 0, cacheWrite = 0 }) => ({
      inputTokens: input,
      outputTokens: 1,
      cachedTokens: cached,
      cacheWriteTokens: cacheWrite,
    }),
    alwaysTellsUsage: true,
    endings: ['refused', 'overflow'],
    signs: ['reasoning', 'redacted'],
  })
}

const reply = async (body: string, messages = makeRequest().messages) => {
  const upstream = scriptedFetch({ headers: { 'content-type': 'text/event-stream' }, body })
  const { context } = makeContext({ credential: KEY, fetch: upstream.fetch })
  const model = makeDescriptor({
    provider: 'anthropic',
    model: 'claude-sonnet-4-5',
    local: false,
    auth: 'api_key',
    capabilities: { streaming: true, tools: true, reasoning: true },
    max_output_tokens: 16_000,
  })
  const events = await collect(
    makeProvider('http://lab.internal:8080'),
    makeRequest({ model, messages }),
    context,
  )
  return { events, request: upstream.requests[0] }
}

describe('Anthropic: what only this dialect has', () => {
  it('[U43] counts of the beginning hold where the end does not repeat them', async () => {
    const frames = anthropicDialect.frames({
      text: ['a'],
      usage: { input: 100, output: 7, cached: 60, cacheWrite: 30 },
    })
    const end = { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 7 } }
    const older = frames.with(-2, namedEvent({ type: 'message_delta', ...end }))
    expect((await reply(older.join(''))).events).toContainEqual({
      type: 'usage',
      usage: { inputTokens: 100, outputTokens: 7, cachedTokens: 60, cacheWriteTokens: 30 },
    })
  })

  it('[U40] thinking between texts and calls goes back to its place', async () => {
    const block = (index: number, start: object, deltas: object[]) => [
      namedEvent({ type: 'content_block_start', index, content_block: start }),
      ...deltas.map((delta) => namedEvent({ type: 'content_block_delta', index, delta })),
      namedEvent({ type: 'content_block_stop', index }),
    ]
    const thinking = (index: number, text: string, signature: string) =>
      block(index, { type: 'thinking', thinking: '', signature: '' }, [
        { type: 'thinking_delta', thinking: text },
        { type: 'signature_delta', signature },
      ])
    const call = (index: number, id: string) =>
      block(index, { type: 'tool_use', id, name: 'read_file', input: {} }, [
        { type: 'input_json_delta', partial_json: '{"path":"a"}' },
      ])
    const [start = '', ...rest] = anthropicDialect.frames({ finish: 'tool_calls' })
    const { events } = await reply(
      [
        start,
        ...thinking(0, 'first', 'c2lnMQ=='),
        ...block(1, { type: 'text', text: '' }, [{ type: 'text_delta', text: 'Reading.' }]),
        ...thinking(2, 'second', 'c2lnMg=='),
        ...call(3, 'toolu_1'),
        ...thinking(4, 'third', 'c2lnMw=='),
        ...call(5, 'toolu_2'),
        ...rest,
      ].join(''),
    )
    const calls = events.filter((event) => event.type === 'tool_call')
    const toolCalls = calls.map(({ providerCallId = '', name, arguments: args, opaque }) => ({
      callId: providerCallId,
      name,
      arguments: args,
      ...(opaque === undefined ? {} : { opaque: JSON.parse(JSON.stringify(opaque)) }),
    }))
    const results = toolCalls.map(({ callId, name }) => ({ callId, name, content: 'x', isError: false }))
    const { request } = await reply(anthropicDialect.frames({ text: ['ok'] }).join(''), [
      { role: 'user', text: 'Compare.' },
      { role: 'assistant', text: 'Reading.', toolCalls },
      { role: 'tool', results },
    ])
    expect(checkConversation('anthropic', request?.body)).toEqual([])
    expect(request?.body).toMatchObject({
      messages: [
        { role: 'user' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'first', signature: 'c2lnMQ==' },
            { type: 'text', text: 'Reading.' },
            { type: 'thinking', thinking: 'second', signature: 'c2lnMg==' },
            { type: 'tool_use', id: 'toolu_1' },
            { type: 'thinking', thinking: 'third', signature: 'c2lnMw==' },
            { type: 'tool_use', id: 'toolu_2' },
          ],
        },
        { role: 'user' },
      ],
    })
  })
})
