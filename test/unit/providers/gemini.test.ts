import { describe, expect, it } from 'vitest'
import type { PromptMessage } from '../../../src/core/prompt.ts'
import { GeminiProvider } from '../../../src/providers/gemini.ts'
import { dataEvent, jsonAnswer, streamedAnswer } from '../../support/node/scripted-upstream-completion.ts'
import { geminiBlockedPrompt, geminiDialect } from '../../support/node/scripted-upstream-gemini.ts'
import { afterRound, BROKEN_OPAQUE, BUFFERED, cloudCalls } from './cloud-calls.ts'
import { KEY, makeRequest, READ_FILE } from './support.ts'

const { call } = cloudCalls(GeminiProvider, 'gemini', 'https://gemini.test', 'gemini-3-pro-preview')
const ok = streamedAnswer(geminiDialect, { text: ['ok'] })
const bodyOf = async (request: Parameters<typeof call>[1]) => (await call(ok, request)).request?.body

describe('Gemini: the request', () => {
  it('[D15, D16] goes to the model under the origin, with the key in its header and never in the URL', async () => {
    const { request, routes } = await call(ok)
    expect(request?.url).toBe(
      'https://gemini.test/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse',
    )
    expect(request?.headers).toMatchObject({ 'x-goog-api-key': KEY })
    const { 'x-goog-api-key': _, ...others } = request?.headers ?? {}
    expect(JSON.stringify([others, request?.body, request?.url, routes])).not.toContain(KEY)
    const buffered = await call(geminiDialect.buffered({ text: ['ok'] }), { model: BUFFERED })
    expect(buffered.request?.url).toBe(
      'https://gemini.test/v1beta/models/gemini-3-pro-preview:generateContent',
    )
  })

  it('carries the prompt, pictures, tools and parameters', async () => {
    const messages: PromptMessage[] = [
      { role: 'system', text: 'Be brief.' },
      { role: 'user', text: '', images: [{ mediaType: 'image/webp', base64: 'UklGRg==' }] },
    ]
    const model = { max_output_tokens: 500, default_parameters: { temperature: 0.2, top_p: 0.9, top_k: 40 } }
    const { name, description, parameters } = READ_FILE
    expect(await bodyOf({ messages, model })).toMatchObject({
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      contents: [{ role: 'user', parts: [{ inlineData: { mimeType: 'image/webp', data: 'UklGRg==' } }] }],
      tools: [{ functionDeclarations: [{ name, description, parametersJsonSchema: parameters }] }],
      generationConfig: { maxOutputTokens: 500, temperature: 0.2, topP: 0.9, topK: 40 },
    })
  })

  it('[EC 21] effort becomes a level or a budget, as the model takes it; the descriptor knows best', async () => {
    const thinkingOf = async (request: Parameters<typeof call>[1]) =>
      (await bodyOf(request)) as { generationConfig: { thinkingConfig?: object } }
    const withThoughts = { includeThoughts: true }
    expect((await thinkingOf({ effort: 'low' })).generationConfig.thinkingConfig).toEqual({
      ...withThoughts,
      thinkingLevel: 'low',
    })
    const older = { model: 'gemini-2.5-flash' }
    expect((await thinkingOf({ effort: 'high', model: older })).generationConfig.thinkingConfig).toEqual({
      ...withThoughts,
      thinkingBudget: expect.any(Number),
    })
    const says = (thinking: string, model: string) => ({ model, provider_options: { thinking } })
    const level = await thinkingOf({ effort: 'medium', model: says('level', 'gemini-2.5-flash') })
    expect(level.generationConfig.thinkingConfig).toEqual({ ...withThoughts, thinkingLevel: 'high' })
    const budget = await thinkingOf({ effort: 'medium', model: says('budget', 'gemini-3-pro-preview') })
    expect(budget.generationConfig.thinkingConfig).toEqual({ ...withThoughts, thinkingBudget: 8_192 })
    const plain = await thinkingOf({ model: { capabilities: { streaming: true, reasoning: false } } })
    expect(plain.generationConfig).not.toHaveProperty('thinkingConfig')
  })

  it('[U40] opaque fields that cannot be read are left out, and the request is made', async () => {
    for (const opaque of BROKEN_OPAQUE) {
      const messages: PromptMessage[] = [
        ...makeRequest().messages,
        { role: 'assistant', text: '', toolCalls: [{ callId: 'c1', name: 'f', arguments: {}, opaque }] },
        { role: 'tool', results: [{ callId: 'c1', name: 'f', content: 'x', isError: false }] },
      ]
      expect((await call(ok, { messages })).events.at(-1)).toEqual({ type: 'finished', reason: 'stop' })
    }
  })
})

describe('Gemini: the answer', () => {
  it('[U40] the signature comes with its call and goes back with it; ids that the SDK made up do not', async () => {
    const calls = [
      { name: 'read_file', arguments: { path: 'a' }, signature: 'c2ln' },
      { name: 'read_file', arguments: { path: 'b' } },
    ]
    for (const [answer, model] of [
      [streamedAnswer(geminiDialect, { calls }), {}],
      [geminiDialect.buffered({ calls }), BUFFERED],
    ] as const) {
      const { events } = await call(answer, { model })
      expect(events).toEqual([
        {
          type: 'tool_call',
          name: 'read_file',
          arguments: { path: 'a' },
          opaque: { thoughtSignature: 'c2ln' },
        },
        { type: 'tool_call', name: 'read_file', arguments: { path: 'b' } },
        { type: 'finished', reason: 'tool_calls' },
      ])
      expect(await bodyOf({ messages: afterRound(events) })).toMatchObject({
        contents: [
          {},
          {
            role: 'model',
            parts: [
              { functionCall: { args: { path: 'a' } }, thoughtSignature: 'c2ln' },
              { functionCall: { args: { path: 'b' } } },
            ],
          },
          {},
        ],
      })
    }
  })

  it('[U43] thoughts count as output, and what was not reported is unknown', async () => {
    const usage = { input: 40, output: 30, cached: 8, reasoning: 20 }
    expect((await call(streamedAnswer(geminiDialect, { text: ['a'], usage }))).events).toContainEqual({
      type: 'usage',
      usage: { inputTokens: 40, outputTokens: 30, cachedTokens: 8, reasoningTokens: 20 },
    })
    expect((await call(ok)).events.map(({ type }) => type)).toEqual(['text_delta', 'finished'])
  })

  const ended = (finishReason: string) => ({
    candidates: [{ content: { parts: [{ text: 'a' }], role: 'model' }, finishReason }],
  })

  const REFUSED = { type: 'finished', reason: 'refused' }
  const BROKEN = { type: 'failed', failure: { category: 'unknown' } }

  it.each<[string, object]>([
    ['MAX_TOKENS', { type: 'finished', reason: 'length' }],
    ['SAFETY', REFUSED],
    ['RECITATION', REFUSED],
    ['PROHIBITED_CONTENT', REFUSED],
    ['BLOCKLIST', REFUSED],
    ['SPII', REFUSED],
    ['IMAGE_PROHIBITED_CONTENT', REFUSED],
    ['MALFORMED_FUNCTION_CALL', BROKEN],
    ['UNEXPECTED_TOOL_CALL', BROKEN],
    ['OTHER', BROKEN],
    ['A_NEW_WORD', BROKEN],
  ])('[U42] an answer that ends with %s', async (finishReason, expected) => {
    const streamed = await call({ body: dataEvent(ended(finishReason)) })
    expect(streamed.events.at(-1)).toMatchObject(expected)
    const buffered = await call(jsonAnswer(ended(finishReason)), { model: BUFFERED })
    expect(buffered.events.at(-1)).toMatchObject(expected)
  })

  it('[U42] a prompt that a filter stopped is refused', async () => {
    const streamed = await call({ body: dataEvent(geminiBlockedPrompt()) })
    const buffered = await call(jsonAnswer(geminiBlockedPrompt()), { model: BUFFERED })
    for (const { events } of [streamed, buffered]) {
      expect(events).toEqual([
        { type: 'usage', usage: { inputTokens: 12 } },
        { type: 'finished', reason: 'refused' },
      ])
    }
  })

  it('[D24] calls of an answer without an end are not seen', async () => {
    const [first = ''] = geminiDialect.frames({ calls: [{ name: 'read_file', arguments: {} }] })
    for (const body of [first, first + dataEvent(ended('MALFORMED_FUNCTION_CALL'))]) {
      const { events } = await call({ body })
      expect(events.map(({ type }) => type).filter((type) => type !== 'text_delta')).toEqual(['failed'])
    }
  })

  it.each([
    ['UNAVAILABLE', 'provider_unavailable'],
    ['RESOURCE_EXHAUSTED', 'rate_limit'],
    ['INVALID_ARGUMENT', 'invalid_request'],
    ['PERMISSION_DENIED', 'authentication'],
  ])('[EC 3] %s in a stream is %s', async (status, category) => {
    const [first] = geminiDialect.frames({ text: ['a'] })
    const { events } = await call({
      body: first + dataEvent({ error: { code: null, message: 'No.', status } }),
    })
    expect(events).toMatchObject([{ type: 'text_delta' }, { type: 'failed', failure: { category } }])
  })

  it('[EC 3] a limit per minute is a rate limit with its wait, a wrong key is one despite its status', async () => {
    expect((await call(geminiDialect.refusal('rate_limited') ?? {})).events).toMatchObject([
      { failure: { category: 'rate_limit', status: 429, retryAfterMs: 7_000 } },
    ])
    expect((await call(geminiDialect.refusal('bad_key') ?? {})).events).toMatchObject([
      { failure: { category: 'invalid_credentials', status: 400 } },
    ])
  })
})
