import { describe, expect, it } from 'vitest'
import type { PromptMessage } from '../../../src/core/prompt.ts'
import { AnthropicProvider } from '../../../src/providers/anthropic.ts'
import { anthropicDialect } from '../../support/node/scripted-upstream-anthropic.ts'
import { namedEvent, streamedAnswer } from '../../support/node/scripted-upstream-completion.ts'
import { afterRound, BROKEN_OPAQUE, BUFFERED, cloudCalls } from './cloud-calls.ts'
import { KEY, makeRequest, READ_FILE, toolRound } from './support.ts'

const { call } = cloudCalls(AnthropicProvider, 'anthropic', 'https://claude.test', 'claude-opus-5')
const ok = streamedAnswer(anthropicDialect, { text: ['ok'] })
const bodyOf = async (request: Parameters<typeof call>[1]) => (await call(ok, request)).request?.body
const budgetModel = { model: 'claude-sonnet-4-5', max_output_tokens: 64_000 }

describe('Anthropic: the request', () => {
  it('[D15, D16] goes to the Messages API under the origin, with the key in its header only', async () => {
    const { request, routes } = await call(ok)
    expect(request?.url).toBe('https://claude.test/v1/messages')
    expect(request?.headers).toMatchObject({ 'x-api-key': KEY, 'anthropic-version': '2023-06-01' })
    const { 'x-api-key': _, ...others } = request?.headers ?? {}
    expect(JSON.stringify([others, request?.body, request?.url, routes])).not.toContain(KEY)
    expect(routes).toMatchObject([{ provider: 'anthropic', local: false, origin: 'https://claude.test' }])
  })

  it('asks for the tools as they are, and for the limit of the model or a stated one', async () => {
    const { name, description, parameters } = READ_FILE
    expect(await bodyOf({})).toMatchObject({
      max_tokens: 8_192,
      tools: [{ name, description, input_schema: parameters }],
      tool_choice: { type: 'auto' },
    })
    expect(await bodyOf({ tools: [] })).not.toHaveProperty('tool_choice')
    expect(await bodyOf({ model: { max_output_tokens: 32_000 } })).toMatchObject({ max_tokens: 32_000 })
  })

  it('[U43] marks the end of the system message and of the conversation as what to cache', async () => {
    const mark = { cache_control: { type: 'ephemeral' } }
    const body = await bodyOf({ messages: [{ role: 'system', text: 'Be brief.' }, ...toolRound] })
    expect(body).toMatchObject({
      system: [{ text: 'Be brief.', ...mark }],
      messages: [
        { role: 'user' },
        { role: 'assistant' },
        { content: [{ tool_use_id: 'c1' }, { tool_use_id: 'c2', is_error: true, ...mark }] },
      ],
    })
    expect(JSON.stringify(body).match(/cache_control/g)).toHaveLength(2)
  })

  it('carries pictures beside the words', async () => {
    const messages: PromptMessage[] = [
      { role: 'user', text: 'What is this?', images: [{ mediaType: 'image/png', base64: 'iVBORw==' }] },
    ]
    expect(await bodyOf({ messages })).toMatchObject({
      messages: [
        {
          content: [
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw==' } },
            { type: 'text', text: 'What is this?' },
          ],
        },
      ],
    })
  })

  it('[EC 21] effort decides how much a model thinks, in the way that the model takes', async () => {
    expect(await bodyOf({ effort: 'low' })).toMatchObject({ thinking: { type: 'disabled' } })
    expect(await bodyOf({ effort: 'xhigh' })).toMatchObject({
      thinking: { type: 'adaptive', display: 'summarized' },
      output_config: { effort: 'xhigh' },
    })
    expect(await bodyOf({ effort: 'high', model: budgetModel })).toMatchObject({
      thinking: { type: 'enabled', budget_tokens: 16_384 },
      max_tokens: 64_000,
    })
    // The descriptor knows better than the name.
    const says = (thinking: string) => ({ model: 'claude-sonnet-4-6', provider_options: { thinking } })
    expect(await bodyOf({ model: says('budget') })).toMatchObject({ thinking: { type: 'enabled' } })
    expect(await bodyOf({ model: says('adaptive') })).toMatchObject({ thinking: { type: 'adaptive' } })
    const plain = await bodyOf({ model: { capabilities: { streaming: true, reasoning: false } } })
    expect(plain).not.toHaveProperty('thinking')
    expect(plain).not.toHaveProperty('output_config')
  })

  it('a model that always thinks is asked to think little, not refused with a wish it cannot grant', async () => {
    const body = await bodyOf({ effort: 'low', model: { model: 'claude-opus-5-5' } })
    expect(body).toMatchObject({ thinking: { type: 'adaptive' }, output_config: { effort: 'low' } })
  })

  it('a limit that leaves no room for a budget means no thinking', async () => {
    expect(await bodyOf({ model: { ...budgetModel, max_output_tokens: 2_000 } })).toMatchObject({
      thinking: { type: 'disabled' },
      max_tokens: 2_000,
    })
  })
})

describe('Anthropic: thinking comes back with the calls it led to', () => {
  const thought = {
    reasoning: ['Let me ', 'see.'],
    signature: 'c2ln',
    redacted: 'aGlkZGVu',
    text: ['Reading.'],
    calls: [
      { id: 'toolu_a', name: 'read_file', arguments: { path: 'a' } },
      { id: 'toolu_b', name: 'read_file', arguments: { path: 'b' } },
    ],
  }
  const blocks = [
    { type: 'thinking', thinking: 'Let me see.', signature: 'c2ln' },
    { type: 'redacted_thinking', data: 'aGlkZGVu' },
    { type: 'text', text: 'Reading.' },
    { type: 'tool_use', id: 'toolu_a', name: 'read_file', input: { path: 'a' } },
    { type: 'tool_use', id: 'toolu_b', name: 'read_file', input: { path: 'b' } },
  ]

  it('[U40] verbatim, sealed blocks too, and before the text that followed them', async () => {
    for (const [answer, model] of [
      [streamedAnswer(anthropicDialect, thought), {}],
      [anthropicDialect.buffered(thought), BUFFERED],
    ] as const) {
      const { events } = await call(answer, { model })
      const calls = events.filter(({ type }) => type === 'tool_call')
      expect(calls.map((event) => 'opaque' in event)).toEqual([true, false])
      expect(await bodyOf({ messages: afterRound(events) })).toMatchObject({
        messages: [{}, { role: 'assistant', content: blocks }, {}],
      })
    }
  })

  it('[U40] a block between two pieces of text goes back between them', async () => {
    const events = [
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'First. ' } },
      { type: 'content_block_stop', index: 0 },
      {
        type: 'content_block_start',
        index: 1,
        content_block: { type: 'thinking', thinking: '', signature: '' },
      },
      { type: 'content_block_delta', index: 1, delta: { type: 'thinking_delta', thinking: 'Hm.' } },
      { type: 'content_block_delta', index: 1, delta: { type: 'signature_delta', signature: 'c2ln' } },
      { type: 'content_block_stop', index: 1 },
    ].map(namedEvent)
    const frames = anthropicDialect.frames({ text: ['Then.'], calls: [{ name: 'read_file', arguments: {} }] })
    const shifted = frames.map((frame) =>
      frame.replace(/"index":(\d)/, (_, index) => `"index":${Number(index) + 2}`),
    )
    const [start = '', ...rest] = shifted
    const answered = await call({ body: [start, ...events, ...rest].join('') })
    expect(await bodyOf({ messages: afterRound(answered.events) })).toMatchObject({
      messages: [
        {},
        {
          content: [
            { type: 'text', text: 'First. ' },
            { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' },
            { type: 'text', text: 'Then.' },
            { type: 'tool_use' },
          ],
        },
        {},
      ],
    })
  })

  it('models that check what stood before a block are asked to drop it rather than to refuse', async () => {
    const { events } = await call(streamedAnswer(anthropicDialect, thought))
    const messages = afterRound(events)
    const binding = { block_binding: { prefix_mismatch_behavior: 'drop_block' } }
    const { request } = await call(ok, { messages, model: { model: 'claude-opus-5-5' } })
    expect(request?.body).toMatchObject({ thinking: { type: 'adaptive', ...binding } })
    expect(request?.headers['anthropic-beta']).toContain('thinking-binding-controls-2026-08-01')
    expect(JSON.stringify(await bodyOf({ messages }))).not.toContain('block_binding')
  })

  it('without thinking none goes back, and a round made without it is not followed by a budget', async () => {
    const { events } = await call(streamedAnswer(anthropicDialect, thought))
    const low = await bodyOf({ messages: afterRound(events), effort: 'low' })
    expect(JSON.stringify(low)).not.toContain('c2ln')
    expect(await bodyOf({ messages: toolRound, model: budgetModel })).toMatchObject({
      thinking: { type: 'disabled' },
    })
    expect(await bodyOf({ messages: afterRound(events), model: budgetModel })).toMatchObject({
      thinking: { type: 'enabled' },
    })
  })

  it('[U40] opaque fields that cannot be read are left out, and the request is made', async () => {
    for (const opaque of BROKEN_OPAQUE) {
      const messages: PromptMessage[] = [
        ...makeRequest().messages,
        {
          role: 'assistant',
          text: 'a',
          toolCalls: [{ callId: 'c1', name: 'read_file', arguments: {}, opaque }],
        },
        { role: 'tool', results: [{ callId: 'c1', name: 'read_file', content: 'x', isError: false }] },
      ]
      const { events, request } = await call(ok, { messages })
      expect(events.at(-1)).toEqual({ type: 'finished', reason: 'stop' })
      expect(request?.body).toMatchObject({
        messages: [{}, { content: [{ type: 'text' }, { type: 'tool_use' }] }, {}],
      })
    }
  })
})

describe('Anthropic: the answer', () => {
  it('[U43] the prompt is what was read anew, what the cache gave and what it took', async () => {
    const usage = { input: 120, output: 31, cached: 64, cacheWrite: 16 }
    const expected = { inputTokens: 120, outputTokens: 31, cachedTokens: 64, cacheWriteTokens: 16 }
    const streamed = await call(streamedAnswer(anthropicDialect, { text: ['a'], usage }))
    expect(streamed.events).toContainEqual({ type: 'usage', usage: expected })
    const buffered = await call(anthropicDialect.buffered({ text: ['a'], usage }), { model: BUFFERED })
    expect(buffered.events).toContainEqual({ type: 'usage', usage: expected })
  })

  it('[U43] a counter that the last event nulls is what the first one said; one never told is unknown', async () => {
    const frames = anthropicDialect.frames({ text: ['a'], usage: { input: 20, output: 3, cached: 8 } })
    const body = frames
      .map((frame) =>
        frame.startsWith('event: message_delta')
          ? namedEvent({
              type: 'message_delta',
              delta: { stop_reason: 'end_turn', stop_sequence: null },
              usage: { input_tokens: null, cache_read_input_tokens: null, output_tokens: 3 },
            })
          : frame.replace('"cache_creation_input_tokens":0,', ''),
      )
      .join('')
    expect((await call({ body })).events).toContainEqual({
      type: 'usage',
      usage: { inputTokens: 20, outputTokens: 3, cachedTokens: 8 },
    })
  })

  it('[U42] cut, refused, and a window that is full in the middle are different endings', async () => {
    const endOf = async (finish: 'length' | 'refused' | 'overflow') =>
      (await call(streamedAnswer(anthropicDialect, { text: ['a'], finish }))).events.at(-1)
    expect(await endOf('length')).toEqual({ type: 'finished', reason: 'length' })
    expect(await endOf('refused')).toEqual({ type: 'finished', reason: 'refused' })
    expect(await endOf('overflow')).toMatchObject({
      type: 'failed',
      failure: { category: 'context_length' },
    })
  })

  it.each([
    ['overloaded_error', 'Overloaded', 'provider_unavailable'],
    ['api_error', 'Internal server error', 'provider_unavailable'],
    ['rate_limit_error', 'Slow down', 'rate_limit'],
    ['authentication_error', 'No', 'invalid_credentials'],
    ['invalid_request_error', 'prompt is too long: 9 tokens > 8 maximum', 'context_length'],
    ['invalid_request_error', 'messages: wrong', 'invalid_request'],
  ])('[EC 3] %s "%s" in a stream is %s, first thing or later', async (type, message, category) => {
    const frames = anthropicDialect.frames({ text: ['a', 'b'] })
    for (const before of [0, 1, 4]) {
      const error = namedEvent({ type: 'error', error: { type, message } })
      const body = [...frames.slice(0, before), error].join('')
      const last = (await call({ body })).events.at(-1)
      expect(last, `after ${before} frames`).toMatchObject({ type: 'failed', failure: { category } })
    }
  })
})
