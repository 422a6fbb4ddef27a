import { describe, expect, it } from 'vitest'
import { ok } from '../../../src/protocol/result.ts'
import { OpenAiProvider } from '../../../src/providers/openai.ts'
import { scriptedFetch } from '../../support/node/scripted-upstream.ts'
import { namedEvent, piecesUntil } from '../../support/node/scripted-upstream-completion.ts'
import { responsesDialect, responsesRefusal } from '../../support/node/scripted-upstream-responses.ts'
import { describeProviderContract } from './provider-contract.ts'
import { collectAll, KEY, makeContext, makeDescriptor, makeRequest, reportsIn } from './support.ts'

const makeProvider = (origin: string) =>
  new OpenAiProvider({ id: 'openai', displayName: 'OpenAI', baseUrl: `${origin}/v1` }, async () => ok([]), {
    firstByteMs: 3_000,
    totalMs: 10_000,
  })
const requestWith = ({ streaming = true, reasoning = false } = {}) =>
  makeRequest({
    model: makeDescriptor({
      provider: 'openai',
      model: 'gpt-5.2',
      local: false,
      auth: 'api_key',
      capabilities: { streaming, tools: true, reasoning },
      max_context_tokens: 400_000,
      max_output_tokens: 128_000,
      default_parameters: { temperature: 0.2, top_p: 0.9 },
    }),
  })

describeProviderContract({
  name: 'OpenAI',
  makeProvider,
  makeRequest: requestWith,
  wire: responsesDialect,
  conversation: 'responses',
  keyHeader: { name: 'authorization', value: `Bearer ${KEY}` },
  tells: ['cached', 'reasoning'],
  endings: ['refused', 'overflow'],
  signs: ['reasoning'],
})

describe('OpenAI: what only this dialect has', () => {
  const reply = async (frames: readonly string[]) => {
    const upstream = scriptedFetch({
      headers: { 'content-type': 'text/event-stream' },
      body: frames.join(''),
    })
    const { context } = makeContext({ credential: KEY, fetch: upstream.fetch })
    const all = await collectAll(makeProvider('http://lab.internal:8080'), requestWith(), context)
    const events = all.filter(({ type }) => type !== 'usage_so_far')
    return { events, reports: reportsIn(all), seen: upstream.requests[0] }
  }

  it('[U42] the words of a model that declines are no finished answer', async () => {
    const { events } = await reply(responsesRefusal('I cannot help with that.'))
    expect(events.at(-1)).toEqual({ type: 'finished', reason: 'refused' })
  })

  it('[EC 3] an error of a stream is read in both of its shapes', async () => {
    const start = responsesDialect.frames({ text: ['Hm'] }).slice(0, 2)
    const said = { code: 'rate_limit_exceeded', message: 'Rate limit reached for gpt-5.2' }
    for (const error of [
      { type: 'error', sequence_number: 2, ...said, param: null },
      { type: 'error', sequence_number: 2, error: { type: 'tokens', ...said, param: null } },
      {
        type: 'response.failed',
        sequence_number: 2,
        response: { id: 'resp_1', object: 'response', status: 'failed', error: said, output: [] },
      },
    ]) {
      const { events } = await reply([...start, namedEvent(error)])
      expect(events.at(-1)).toMatchObject({ type: 'failed', failure: { category: 'rate_limit' } })
    }
  })

  it('[EC 15][U43] what an answer used before it failed is told', async () => {
    const { events, reports } = await reply([
      ...piecesUntil(responsesDialect, 'Hm'),
      namedEvent({
        type: 'response.failed',
        sequence_number: 9,
        response: {
          id: 'resp_1',
          object: 'response',
          status: 'failed',
          error: { code: 'server_error', message: 'No.' },
          output: [],
          usage: {
            input_tokens: 40,
            input_tokens_details: { cached_tokens: 8 },
            output_tokens: 3,
            output_tokens_details: { reasoning_tokens: 0 },
            total_tokens: 43,
          },
        },
      }),
    ])
    expect(events.map(({ type }) => type)).toEqual(['text_delta', 'failed'])
    expect(reports).toEqual([{ inputTokens: 40, outputTokens: 3, cachedTokens: 8, reasoningTokens: 0 }])
  })

  it('[EC 21] nothing is stored there, and neither temperature nor top-p is sent', async () => {
    const { seen } = await reply(responsesDialect.frames({ text: ['ok'] }))
    expect(seen?.url).toBe('http://lab.internal:8080/v1/responses')
    expect(seen?.body).toMatchObject({ store: false, stream: true })
    expect(seen?.body).not.toHaveProperty('temperature')
    expect(seen?.body).not.toHaveProperty('top_p')
    expect(seen?.body).not.toHaveProperty('previous_response_id')
  })
})
