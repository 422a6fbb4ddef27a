import { describe, expect, it } from 'vitest'
import { ok } from '../../../src/protocol/result.ts'
import { GeminiProvider } from '../../../src/providers/gemini.ts'
import { checkConversation } from '../../support/node/conversation-checker.ts'
import { scriptedFetch } from '../../support/node/scripted-upstream.ts'
import { dataEvent, jsonAnswer } from '../../support/node/scripted-upstream-completion.ts'
import { geminiBlockedPrompt, geminiDialect } from '../../support/node/scripted-upstream-gemini.ts'
import { describeProviderContract } from './provider-contract.ts'
import { collect, KEY, makeContext, makeDescriptor, makeRequest } from './support.ts'

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
  endings: ['refused'],
  signs: ['calls'],
})

describe('Gemini: what only this dialect has', () => {
  const reply = async (answer: Parameters<typeof scriptedFetch>[0], request = requestWith()) => {
    const upstream = scriptedFetch(answer)
    const { context } = makeContext({ credential: KEY, fetch: upstream.fetch })
    const events = await collect(makeProvider('http://lab.internal:8080'), request, context)
    return { events, seen: upstream.requests[0] }
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
