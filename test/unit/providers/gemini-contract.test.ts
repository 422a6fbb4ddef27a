import { describe, expect, it } from 'vitest'
import { ok } from '../../../src/protocol/result.ts'
import { GeminiProvider } from '../../../src/providers/gemini.ts'
import { checkConversation } from '../../support/node/conversation-checker.ts'
import { scriptedFetch } from '../../support/node/scripted-upstream.ts'
import { dataEvent, jsonAnswer } from '../../support/node/scripted-upstream-completion.ts'
import { geminiBlockedPrompt, geminiDialect } from '../../support/node/scripted-upstream-gemini.ts'
import { describeProviderContract } from './provider-contract.ts'
import { collectAll, KEY, makeContext, makeDescriptor, makeRequest, reportsIn } from './support.ts'

const makeProvider = (origin: string) =>
  new GeminiProvider({ id: 'gemini', displayName: 'Gemini', baseUrl: origin }, async () => ok([]), {
    firstByteMs: 3_000,
    totalMs: 10_000,
  })
const requestWith = ({ streaming = true, reasoning = false } = {}) =>
  makeRequest({
    model: makeDescriptor({
      provider: 'gemini',
      model: 'gemini-3-flash-preview',
      local: false,
      auth: 'api_key',
      capabilities: { streaming, tools: true, reasoning },
      max_context_tokens: 1_000_000,
      max_output_tokens: 64_000,
    }),
  })

describeProviderContract({
  name: 'Gemini',
  makeProvider,
  makeRequest: requestWith,
  wire: geminiDialect,
  conversation: 'gemini',
  keyHeader: { name: 'x-goog-api-key', value: KEY },
  tells: ['cached', 'reasoning'],
  reportsFirst: ({ input }) => ({ inputTokens: input }),
  endings: ['refused'],
  signs: ['calls'],
})

describe('Gemini: what only this dialect has', () => {
  const reply = async (answer: Parameters<typeof scriptedFetch>[0], request = requestWith()) => {
    const upstream = scriptedFetch(answer)
    const { context } = makeContext({ credential: KEY, fetch: upstream.fetch })
    const all = await collectAll(makeProvider('http://lab.internal:8080'), request, context)
    const events = all.filter(({ type }) => type !== 'usage_so_far')
    return { events, reports: reportsIn(all), seen: upstream.requests[0] }
  }
  const stream = (...pieces: unknown[]) => ({
    headers: { 'content-type': 'text/event-stream' },
    body: pieces.map(dataEvent).join(''),
  })

  it('[U42] a prompt that a filter stopped is refused, and no broken answer', async () => {
    const refused = { type: 'finished', reason: 'refused' }
    expect((await reply(stream(geminiBlockedPrompt()))).events.at(-1)).toEqual(refused)
    const buffered = await reply(jsonAnswer(geminiBlockedPrompt()), requestWith({ streaming: false }))
    expect(buffered.events.at(-1)).toEqual(refused)
  })

  it('[U42] an answer with a call that is none is broken, and shows no call', async () => {
    for (const finishReason of ['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'OTHER']) {
      const { events } = await reply(
        stream({
          candidates: [
            { content: { parts: [{ functionCall: { name: 'read_file' } }], role: 'model' }, finishReason },
          ],
        }),
      )
      expect(events.map(({ type }) => type)).toEqual(['failed'])
    }
  })

  it('[U42] a word of some gateways for a round of calls is a good end with calls, and a broken one without', async () => {
    const answer = (part: object) => ({
      candidates: [{ content: { parts: [part], role: 'model' }, finishReason: 'FUNCTION_CALL' }],
    })
    const called = answer({ functionCall: { name: 'read_file', args: { path: 'a' } } })
    const spoken = answer({ text: 'Hm' })
    const buffered = requestWith({ streaming: false })
    for (const { events } of [await reply(stream(called)), await reply(jsonAnswer(called), buffered)]) {
      expect(events).toEqual([
        { type: 'tool_call', name: 'read_file', arguments: { path: 'a' } },
        { type: 'finished', reason: 'tool_calls' },
      ])
    }
    for (const { events } of [await reply(stream(spoken)), await reply(jsonAnswer(spoken), buffered)]) {
      expect(events.map(({ type }) => type)).toEqual(['text_delta', 'failed'])
    }
  })

  it('[EC 15][U43] counts that grow with the answer are told as they grow, each once', async () => {
    const piece = (candidatesTokenCount?: number) => ({
      candidates: [{ content: { parts: [{ text: 'a' }], role: 'model' } }],
      usageMetadata: {
        promptTokenCount: 40,
        cachedContentTokenCount: 8,
        ...(candidatesTokenCount === undefined ? {} : { candidatesTokenCount, thoughtsTokenCount: 5 }),
      },
    })
    const { events, reports } = await reply(stream(piece(), piece(), piece(2), piece(2), piece(9)))
    const known = { inputTokens: 40, cachedTokens: 8 }
    expect(reports).toEqual([
      known,
      { ...known, outputTokens: 7, reasoningTokens: 5 },
      { ...known, outputTokens: 14, reasoningTokens: 5 },
    ])
    expect(events.at(-1)?.type).toBe('failed')
  })

  it('[U24] parallel calls without ids are apart, and their results find them', async () => {
    const call = (path: string) => ({ name: 'read_file', arguments: { path } })
    const { frames, contentType } = geminiDialect
    const { events } = await reply({
      headers: { 'content-type': contentType },
      body: frames({ calls: [call('a'), call('b')] }).join(''),
    })
    expect(events).toEqual([
      { type: 'tool_call', ...call('a') },
      { type: 'tool_call', ...call('b') },
      { type: 'finished', reason: 'tool_calls' },
    ])
    const ids = ['019a0000-0000-7000-8000-000000000001', '019a0000-0000-7000-8000-000000000002']
    const toolCalls = ids.map((callId, index) => ({ callId, ...call(index === 0 ? 'a' : 'b') }))
    const { seen } = await reply(stream(JSON.parse(String(geminiDialect.buffered({ text: ['ok'] }).body))), {
      ...requestWith(),
      messages: [
        { role: 'user', text: 'Compare.' },
        { role: 'assistant', text: '', toolCalls },
        {
          role: 'tool',
          results: ids.map((callId) => ({ callId, name: 'read_file', content: 'x', isError: false })),
        },
      ],
    })
    expect(checkConversation('gemini', seen?.body)).toEqual([])
  })

  it('[D16] the model stands in the path, and nothing but the way of streaming behind it', async () => {
    const { seen } = await reply(stream())
    expect(seen?.url).toBe(
      'http://lab.internal:8080/v1beta/models/gemini-3-flash-preview:streamGenerateContent?alt=sse',
    )
    const buffered = await reply(jsonAnswer({}), requestWith({ streaming: false }))
    expect(buffered.seen?.url).toBe(
      'http://lab.internal:8080/v1beta/models/gemini-3-flash-preview:generateContent',
    )
  })
})
