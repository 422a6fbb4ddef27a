import { afterEach, describe, expect, it, vi } from 'vitest'
import type { ModelRequest } from '../../../src/core/prompt.ts'
import { EgressViolation } from '../../../src/providers/egress.ts'
import type { ModelEvent, ModelProvider, ProviderFailure } from '../../../src/providers/provider.ts'
import { type ScriptedAnswer, scriptedFetch } from '../../support/node/scripted-upstream.ts'
import type { ScriptedCompletion } from '../../support/node/scripted-upstream-dialects.ts'
import { startScriptedUpstream } from '../../support/node/scripted-upstream-server.ts'
import { collect, joinDeltas, KEY, makeContext } from './support.ts'

/** What the contract suite needs to know of a dialect. */
export type DialectUnderTest = {
  name: string
  makeProvider: (origin: string) => ModelProvider
  makeRequest: (overrides?: { streaming?: boolean }) => ModelRequest
  streamed: (completion: ScriptedCompletion) => ScriptedAnswer
  buffered: (completion: ScriptedCompletion) => ScriptedAnswer
  /** A streamed answer that carries an error after its first text. */
  errorInStream: (message: string) => ScriptedAnswer
  /** What stands in the final piece of a streamed answer with calls, and nowhere else. */
  finalMark: string
  /** A streamed answer with a piece that is not JSON after its first text. */
  garbageInStream: string
}

const COMPLETION: ScriptedCompletion = {
  reasoning: ['Größe ', 'prüfen…'],
  text: ['Der Satz „', '最後の行', '“ fehlt 🚂', '.'],
  calls: [
    { id: 'call_a', name: 'read_file', arguments: { path: 'src/größe.ts' } },
    { id: 'call_b', name: 'read_file', arguments: { path: 'b', depth: 2, nested: { list: [1, '🚃'] } } },
  ],
  usage: { input: 120, output: 31, cached: 64 },
}

const EXPECTED: ModelEvent[] = [
  { type: 'reasoning_delta', delta: 'Größe prüfen…' },
  { type: 'text_delta', delta: 'Der Satz „最後の行“ fehlt 🚂.' },
  { type: 'tool_call', providerCallId: 'call_a', name: 'read_file', arguments: { path: 'src/größe.ts' } },
  {
    type: 'tool_call',
    providerCallId: 'call_b',
    name: 'read_file',
    arguments: { path: 'b', depth: 2, nested: { list: [1, '🚃'] } },
  },
  { type: 'usage', usage: { inputTokens: 120, outputTokens: 31, cachedTokens: 64 } },
  { type: 'finished', reason: 'tool_calls' },
]

const ORIGIN = 'http://lab.internal:8080'

/** The rules that every provider adapter keeps, whatever its dialect. */
export function describeProviderContract(dialect: DialectUnderTest): void {
  const { makeProvider, makeRequest } = dialect
  const run = (answer: ScriptedAnswer, request = makeRequest()) => {
    const upstream = scriptedFetch(answer)
    const { context, routes } = makeContext({ credential: KEY, fetch: upstream.fetch })
    return { events: collect(makeProvider(ORIGIN), request, context), upstream, routes }
  }
  const failureOf = async (answer: ScriptedAnswer, request = makeRequest()): Promise<ProviderFailure> => {
    const last = (await run(answer, request).events).at(-1)
    if (last?.type !== 'failed') throw new Error(`no failure but ${last?.type}`)
    return last.failure
  }

  describe(`${dialect.name}: the contract of an adapter`, () => {
    afterEach(() => {
      vi.useRealTimers()
    })

    it('[U39] the bytes may be split anywhere, the events stay the same', async () => {
      const answer = dialect.streamed(COMPLETION)
      const bytes = new TextEncoder().encode(String(answer.body)).length
      for (let chunkBytes = 1; chunkBytes <= bytes; chunkBytes += chunkBytes < 64 ? 1 : 61) {
        const { events } = run({ ...answer, chunkBytes })
        expect(joinDeltas(await events), `in pieces of ${chunkBytes} bytes`).toEqual(EXPECTED)
      }
    })

    it('[U39] a buffered answer gives the same calls and texts as a streamed one', async () => {
      const { events, upstream } = run(dialect.buffered(COMPLETION), makeRequest({ streaming: false }))
      expect(await events).toEqual(EXPECTED)
      expect(upstream.requests[0]?.body).not.toMatchObject({ stream: true })
    })

    it('[U43] usage that is not reported is unknown: there is no usage event', async () => {
      const { usage: _, ...unreported } = COMPLETION
      expect(joinDeltas(await run(dialect.streamed(unreported)).events)).toEqual(
        EXPECTED.filter(({ type }) => type !== 'usage'),
      )
    })

    it('[U42] a cut at the output limit is its own ending', async () => {
      const { events } = run(dialect.streamed({ text: ['a'], finish: 'length' }))
      expect(await events).toEqual([
        { type: 'text_delta', delta: 'a' },
        { type: 'finished', reason: 'length' },
      ])
    })

    it('[U38] a route is recorded before the request, with the model and where it went', async () => {
      const seenAtRequest: number[] = []
      const upstream = scriptedFetch(() => {
        seenAtRequest.push(routes.length)
        return dialect.streamed({ text: ['a'] })
      })
      const { context, routes } = makeContext({ fetch: upstream.fetch })
      const request = makeRequest()
      await collect(makeProvider(ORIGIN), request, context)
      expect(seenAtRequest).toEqual([1])
      expect(routes).toEqual([
        {
          purpose: 'completion',
          provider: 'openai-compat:lab',
          model: request.model.model,
          local: true,
          chosenBy: 'default route',
          origin: ORIGIN,
        },
      ])
    })

    it('[U37] a remote model in a local-only turn throws, and nothing leaves', async () => {
      const upstream = scriptedFetch(dialect.streamed({ text: ['a'] }))
      const { context, routes } = makeContext({ fetch: upstream.fetch, remoteAllowed: false })
      const local = makeRequest()
      const remote = { ...local, model: { ...local.model, local: false } }
      await expect(collect(makeProvider(ORIGIN), remote, context)).rejects.toThrow(EgressViolation)
      expect({ routes, requests: upstream.requests }).toEqual({ routes: [], requests: [] })
      expect(await collect(makeProvider(ORIGIN), local, context)).toHaveLength(2)
    })

    it('[D16] the key goes into the Authorization header and nowhere else', async () => {
      const { events, upstream, routes } = run(dialect.streamed({ text: ['a'] }))
      await events
      const { headers, ...rest } = upstream.requests[0] ?? {}
      expect(headers?.authorization).toBe(`Bearer ${KEY}`)
      const { authorization: _, ...others } = headers ?? {}
      expect(JSON.stringify([rest, others, routes])).not.toContain(KEY)
    })

    it('[D16] a redirect is not followed', async () => {
      const { events, upstream } = run({ status: 307, headers: { location: `${ORIGIN}/elsewhere` } })
      expect(await events).toEqual([
        {
          type: 'failed',
          failure: { category: 'unknown', message: 'the provider failed: a redirect, HTTP 307' },
        },
      ])
      expect(upstream.requests).toHaveLength(1)
      expect(upstream.inits[0]?.redirect).toBe('manual')
    })

    it.each([
      [400, 'bad request', 'invalid_request'],
      [401, 'nope', 'invalid_credentials'],
      [403, 'nope', 'authentication'],
      [404, 'no such page', 'unknown'],
      [404, "model 'lab' not found, try pulling it first", 'model_not_found'],
      [400, 'the prompt is longer than the context length currently available', 'context_length'],
      [429, 'slow down', 'rate_limit'],
      [429, 'You exceeded your current quota', 'authentication'],
      [500, 'oops', 'provider_unavailable'],
      [503, 'server busy', 'provider_unavailable'],
    ] as const)('[EC 3] HTTP %i "%s" is %s', async (status, message, category) => {
      expect((await failureOf({ status, body: JSON.stringify({ error: message }) })).category).toBe(category)
      const nested = { error: { message, type: 'api_error', code: null } }
      expect((await failureOf({ status, body: JSON.stringify(nested) })).category).toBe(category)
    })

    it('a rate limit tells how long to wait', async () => {
      const failure = await failureOf({ status: 429, headers: { 'retry-after': '7' }, body: '{}' })
      expect(failure).toEqual({
        category: 'rate_limit',
        message: 'the rate limit of the provider is reached (HTTP 429)',
        status: 429,
        retryAfterMs: 7000,
      })
    })

    it('a failure repeats neither the key nor the prompt', async () => {
      const request = makeRequest()
      const prompt = request.messages.map((message) => ('text' in message ? message.text : '')).join(' ')
      for (const said of [
        `bad key ${KEY}`,
        `cannot process: ${prompt}`,
        `value "${prompt}" is not allowed`,
      ]) {
        for (const status of [400, 401, 500]) {
          const { message } = await failureOf({ status, body: JSON.stringify({ error: { message: said } }) })
          expect(message).not.toContain(KEY)
          expect(message).not.toContain('final row')
        }
        const { message } = await failureOf(dialect.errorInStream(said))
        expect(message).not.toContain(KEY)
        expect(message).not.toContain('final row')
      }
    })

    it('an error inside the stream ends the call as failed, after what came before it', async () => {
      const { events } = run(dialect.errorInStream('rate limit reached for this model'))
      expect(await events).toEqual([
        { type: 'text_delta', delta: 'Hm' },
        {
          type: 'failed',
          failure: {
            category: 'rate_limit',
            message: 'the rate limit of the provider is reached: rate limit reached for this model',
          },
        },
      ])
    })

    it('a piece that is no JSON fails the call and is not quoted', async () => {
      const { events } = run({ body: dialect.garbageInStream })
      expect(await events).toEqual([
        { type: 'text_delta', delta: 'Hm' },
        {
          type: 'failed',
          failure: { category: 'unknown', message: 'the provider failed: its answer cannot be read' },
        },
      ])
    })

    it('[D24] a stream that is cut anywhere before its final piece fails, and shows none of its calls', async () => {
      const body = String(dialect.streamed(COMPLETION).body)
      const bytes = new TextEncoder().encode(body)
      const finalAt = new TextEncoder().encode(body.slice(0, body.indexOf(dialect.finalMark))).length
      for (let length = 0; length < finalAt; length += 37) {
        for (const ending of ['close', 'break'] as const) {
          const events = await run({ body: bytes.subarray(0, length), chunkBytes: 50, ending }).events
          expect(events.at(-1)?.type, `${ending} after ${length} bytes`).toBe('failed')
          expect(events.filter(({ type }) => type === 'failed' || type === 'finished')).toHaveLength(1)
          expect(events.some(({ type }) => type === 'tool_call')).toBe(false)
        }
      }
    })

    it('silence before the first byte is a timeout; no timer is left', async () => {
      vi.useFakeTimers()
      const { events } = run({ body: '', ending: 'hang' })
      await vi.advanceTimersByTimeAsync(3_000)
      expect(await events).toEqual([
        { type: 'failed', failure: { category: 'timeout', message: 'the provider sent nothing within 3 s' } },
      ])
      expect(vi.getTimerCount()).toBe(0)
    })

    it('[D21] a stream that goes on and on ends at the total deadline; no timer is left', async () => {
      vi.useFakeTimers()
      const answer = dialect.streamed({ text: ['one', 'two'] })
      const body = String(answer.body)
      const { events, upstream } = run({
        ...answer,
        body: body.slice(0, body.indexOf('two')),
        ending: 'hang',
      })
      await vi.advanceTimersByTimeAsync(9_000)
      expect(vi.getTimerCount()).toBe(1)
      await vi.advanceTimersByTimeAsync(1_000)
      expect(await events).toEqual([
        { type: 'text_delta', delta: 'one' },
        {
          type: 'failed',
          failure: { category: 'timeout', message: 'the provider did not finish within 10 s' },
        },
      ])
      expect(vi.getTimerCount()).toBe(0)
      expect(upstream.abortedCount()).toBe(1)
    })

    it('a buffered answer may take longer than the first byte of a stream may', async () => {
      vi.useFakeTimers()
      const upstream = scriptedFetch(async () => {
        await new Promise((resolve) => setTimeout(resolve, 8_000))
        return dialect.buffered({ text: ['late'] })
      })
      const { context } = makeContext({ fetch: upstream.fetch })
      const events = collect(makeProvider(ORIGIN), makeRequest({ streaming: false }), context)
      await vi.advanceTimersByTimeAsync(8_000)
      expect(await events).toEqual([
        { type: 'text_delta', delta: 'late' },
        { type: 'finished', reason: 'stop' },
      ])
      expect(vi.getTimerCount()).toBe(0)
    })

    it('a call whose signal was aborted before it began sends nothing', async () => {
      const upstream = scriptedFetch(dialect.streamed({ text: ['a'] }))
      const { context, routes } = makeContext({ fetch: upstream.fetch, signal: AbortSignal.abort() })
      expect(await collect(makeProvider(ORIGIN), makeRequest(), context)).toEqual([
        {
          type: 'failed',
          failure: { category: 'unknown', message: 'the call was cancelled', aborted: true },
        },
      ])
      expect({ routes, requests: upstream.requests }).toEqual({ routes: [], requests: [] })
    })

    it('whoever stops listening closes the upstream connection', async () => {
      vi.useFakeTimers()
      const answer = dialect.streamed({ text: ['one', 'two'] })
      const upstream = scriptedFetch({ ...answer, ending: 'hang' })
      const { context } = makeContext({ fetch: upstream.fetch })
      for await (const event of makeProvider(ORIGIN).invoke(makeRequest(), context)) {
        expect(event).toEqual({ type: 'text_delta', delta: 'one' })
        break
      }
      expect(upstream.abortedCount()).toBe(1)
      expect(vi.getTimerCount()).toBe(0)
    })

    it('[U26] an abort in mid-stream closes the upstream socket and ends the iteration with failed', async () => {
      const answer = dialect.streamed({ text: ['one', 'two'] })
      const body = String(answer.body)
      const server = await startScriptedUpstream({
        ...answer,
        body: body.slice(0, body.indexOf('two')),
        ending: 'hang',
      })
      const controller = new AbortController()
      const { context } = makeContext({ signal: controller.signal })
      const events: ModelEvent[] = []
      for await (const event of makeProvider(server.url).invoke(makeRequest(), context)) {
        events.push(event)
        if (event.type === 'text_delta') controller.abort()
      }
      await server.callerLeft
      await server.close()
      expect(events).toEqual([
        { type: 'text_delta', delta: 'one' },
        {
          type: 'failed',
          failure: { category: 'unknown', message: 'the call was cancelled', aborted: true },
        },
      ])
    })

    it('[EC 3] a refused connection, a name that does not exist and a reset are an unavailable provider', async () => {
      const server = await startScriptedUpstream({
        ...dialect.streamed({ text: ['one'] }),
        body: '',
        ending: 'break',
      })
      const unavailable = async (origin: string) => {
        const last = (await collect(makeProvider(origin), makeRequest(), makeContext().context)).at(-1)
        expect(last).toMatchObject({ type: 'failed', failure: { category: 'provider_unavailable' } })
      }
      await unavailable(server.url)
      await server.close()
      await unavailable(server.url)
      await unavailable('http://no-such-host.invalid')
    })
  })
}
