import { describe, expect, it } from 'vitest'
import type { PromptMessage } from '../../../src/core/prompt.ts'
import { OpenAiProvider } from '../../../src/providers/openai.ts'
import { jsonAnswer, namedEvent, streamedAnswer } from '../../support/node/scripted-upstream-completion.ts'
import { responsesDialect, responsesRefusal } from '../../support/node/scripted-upstream-responses.ts'
import { afterRound, BROKEN_OPAQUE, BUFFERED, cloudCalls } from './cloud-calls.ts'
import { KEY, makeRequest, READ_FILE } from './support.ts'

const { call } = cloudCalls(OpenAiProvider, 'openai', 'https://openai.test/v1', 'gpt-5.2')
const ok = streamedAnswer(responsesDialect, { text: ['ok'] })
const bodyOf = async (request: Parameters<typeof call>[1]) => (await call(ok, request)).request?.body
const PLAIN = { model: 'gpt-4.1', capabilities: { streaming: true, tools: true, reasoning: false } }

describe('OpenAI: the request', () => {
  it('[D15, D16] goes to the Responses API under the base URL, with the key in its header only', async () => {
    const { request, routes } = await call(ok)
    expect(request?.url).toBe('https://openai.test/v1/responses')
    expect(request?.headers).toMatchObject({ authorization: `Bearer ${KEY}` })
    const { authorization: _, ...others } = request?.headers ?? {}
    expect(JSON.stringify([others, request?.body, request?.url, routes])).not.toContain(KEY)
  })

  it('[U40] nothing is stored there, and reasoning is asked for in sealed form', async () => {
    expect(await bodyOf({})).toMatchObject({ store: false, include: ['reasoning.encrypted_content'] })
    const plain = await bodyOf({ model: PLAIN })
    expect(plain).toMatchObject({ store: false })
    expect(plain).not.toHaveProperty('include')
    expect(plain).not.toHaveProperty('reasoning')
  })

  it('[EC 21] carries no temperature and no top-p, and leaves optional parameters of tools optional', async () => {
    const model = { ...PLAIN, max_output_tokens: 900, default_parameters: { temperature: 0.1, top_p: 0.5 } }
    const body = await bodyOf({ model })
    expect(body).not.toHaveProperty('temperature')
    expect(body).not.toHaveProperty('top_p')
    expect(body).toMatchObject({
      max_output_tokens: 900,
      tools: [{ type: 'function', ...READ_FILE, strict: false }],
    })
  })

  it('[EC 21] effort is the wanted step, or the nearest that the model takes', async () => {
    const effortOf = async (effort: 'low' | 'medium' | 'high' | 'xhigh', allowed?: unknown) =>
      (
        (await bodyOf({
          effort,
          model: allowed === undefined ? {} : { provider_options: { reasoning_effort: allowed } },
        })) as { reasoning: { effort: string } }
      ).reasoning.effort
    expect(await effortOf('low')).toBe('low')
    expect(await effortOf('xhigh')).toBe('high')
    expect(await effortOf('xhigh', ['low', 'medium', 'high', 'xhigh'])).toBe('xhigh')
    expect(await effortOf('medium', ['high'])).toBe('high')
    expect(await effortOf('low', ['none', 'minimal', 'high'])).toBe('minimal')
    expect(await effortOf('high', 'no list')).toBe('high')
  })

  it('carries pictures beside the words', async () => {
    const messages: PromptMessage[] = [
      { role: 'user', text: 'What?', images: [{ mediaType: 'image/jpeg', base64: '/9j/4A==' }] },
    ]
    expect(await bodyOf({ messages })).toMatchObject({
      input: [
        {
          content: [
            { type: 'input_image', image_url: 'data:image/jpeg;base64,/9j/4A==' },
            { type: 'input_text', text: 'What?' },
          ],
        },
      ],
    })
  })

  it('[U40] opaque fields that cannot be read are left out, and the request is made', async () => {
    for (const opaque of BROKEN_OPAQUE) {
      const messages: PromptMessage[] = [
        ...makeRequest().messages,
        { role: 'assistant', text: '', toolCalls: [{ callId: 'c1', name: 'f', arguments: {}, opaque }] },
        { role: 'tool', results: [{ callId: 'c1', name: 'f', content: 'x', isError: false }] },
      ]
      const { events, request } = await call(ok, { messages })
      expect(events.at(-1)).toEqual({ type: 'finished', reason: 'stop' })
      expect(request?.body).toMatchObject({
        input: [{}, {}, { type: 'function_call' }, { type: 'function_call_output' }],
      })
    }
  })
})

describe('OpenAI: the answer', () => {
  const thought = {
    reasoning: ['Let me ', 'see.'],
    signature: 'c2VhbGVk',
    text: ['Reading.'],
    calls: [
      { id: 'call_a', name: 'read_file', arguments: { path: 'a' } },
      { id: 'call_b', name: 'read_file', arguments: { path: 'b' }, travel: 'last' as const },
    ],
  }

  it('[U40] sealed reasoning goes back before the calls it led to, and to models that reason only', async () => {
    for (const [answer, model] of [
      [streamedAnswer(responsesDialect, thought), {}],
      [responsesDialect.buffered(thought), BUFFERED],
    ] as const) {
      const { events } = await call(answer, { model })
      const messages = afterRound(events)
      expect(await bodyOf({ messages })).toMatchObject({
        input: [
          {},
          {},
          {
            type: 'reasoning',
            encrypted_content: 'c2VhbGVk',
            summary: [{ type: 'summary_text', text: 'Let me see.' }],
          },
          { role: 'assistant', content: 'Reading.' },
          { type: 'function_call', call_id: 'call_a', arguments: '{"path":"a"}' },
          { type: 'function_call', call_id: 'call_b', arguments: '{"path":"b"}' },
          { type: 'function_call_output', call_id: 'call_a' },
          { type: 'function_call_output', call_id: 'call_b' },
        ],
      })
      expect(JSON.stringify(await bodyOf({ messages, model: PLAIN }))).not.toContain('c2VhbGVk')
    }
  })

  it('[U42] a refusal in words, a filter and the limit are not finished answers', async () => {
    const refusal = await call({ body: responsesRefusal('I cannot.').join('') })
    expect(refusal.events[0]).toEqual({ type: 'text_delta', delta: 'I cannot.' })
    expect(refusal.events.at(-1)).toEqual({ type: 'finished', reason: 'refused' })
    const endOf = async (finish: 'length' | 'refused') =>
      (await call(streamedAnswer(responsesDialect, { text: ['a'], finish }))).events.at(-1)
    expect(await endOf('refused')).toEqual({ type: 'finished', reason: 'refused' })
    expect(await endOf('length')).toEqual({ type: 'finished', reason: 'length' })
  })

  it('[U43] reasoning is part of the output and counted apart; what was not reported is unknown', async () => {
    const usage = { input: 40, output: 30, cached: 8, reasoning: 20 }
    expect((await call(streamedAnswer(responsesDialect, { text: ['a'], usage }))).events).toContainEqual({
      type: 'usage',
      usage: { inputTokens: 40, outputTokens: 30, cachedTokens: 8, reasoningTokens: 20 },
    })
    expect((await call(ok)).events.map(({ type }) => type)).toEqual(['text_delta', 'finished'])
  })

  it.each([
    ['server_error', 'provider_unavailable'],
    ['rate_limit_exceeded', 'rate_limit'],
    ['insufficient_quota', 'authentication'],
    ['context_length_exceeded', 'context_length'],
    ['invalid_prompt', 'invalid_request'],
    ['something_new', 'unknown'],
  ])('[EC 3] %s is %s, as an event or as a failed response, first thing or later', async (code, category) => {
    const frames = responsesDialect.frames({ text: ['a', 'b'] })
    const error = namedEvent({ type: 'error', sequence_number: 9, code, message: 'No.', param: null })
    const failed = namedEvent({
      type: 'response.failed',
      sequence_number: 9,
      response: { status: 'failed', error: { code, message: 'No.' }, output: [], usage: null },
    })
    for (const end of [error, failed]) {
      for (const before of [0, 2, 5]) {
        const last = (await call({ body: [...frames.slice(0, before), end].join('') })).events.at(-1)
        expect(last, `after ${before} frames`).toMatchObject({ type: 'failed', failure: { category } })
      }
    }
    const buffered = jsonAnswer({ id: 'r', error: { code, message: 'No.' }, output: [], usage: null })
    const { events } = await call(buffered, { model: BUFFERED })
    expect(events).toMatchObject([{ type: 'failed', failure: { category } }])
  })
})
