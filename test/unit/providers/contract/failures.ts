import { describe, expect, it } from 'vitest'
import type { ProviderFailure } from '../../../../src/providers/provider.ts'
import type { ScriptedAnswer } from '../../../support/node/scripted-upstream.ts'
import { piecesUntil, RETRY_AFTER_S } from '../../../support/node/scripted-upstream-completion.ts'
import { startScriptedUpstream } from '../../../support/node/scripted-upstream-server.ts'
import { collect, KEY, makeContext } from '../support.ts'
import { COMPLETION, type DialectUnderTest, makeRunner } from './dialect.ts'

const CATEGORIES = [
  ['bad_key', 'invalid_credentials'],
  ['rate_limited', 'rate_limit'],
  ['out_of_credit', 'authentication'],
  ['server_error', 'provider_unavailable'],
  ['overloaded', 'provider_unavailable'],
  ['too_long', 'context_length'],
  ['unknown_model', 'model_not_found'],
] as const

/** What a provider refuses, breaks off or garbles ends the call as one failure of the right kind. */
export function describeFailures(dialect: DialectUnderTest): void {
  const { makeProvider, makeRequest, wire } = dialect
  const { run, runFrames } = makeRunner(dialect)
  const failureOf = async (answer: ScriptedAnswer, request = makeRequest()): Promise<ProviderFailure> => {
    const events = await run(answer, request).events
    const last = events.at(-1)
    if (last?.type !== 'failed') throw new Error(`no failure but ${last?.type}`)
    expect(events).toHaveLength(1)
    return last.failure
  }

  const refusals = CATEGORIES.flatMap(([reason, category]) => {
    const answer = wire.refusal(reason)
    return answer === undefined ? [] : [[reason, category, answer] as const]
  })

  describe(`${dialect.name}: failures`, () => {
    it.each(refusals)('[EC 3] %s, as this provider says it, is %s', async (reason, category, answer) => {
      for (const streaming of [true, false]) {
        const failure = await failureOf(answer, makeRequest({ streaming }))
        expect(failure).toMatchObject({ category, status: answer.status })
        if (reason === 'rate_limited') expect(failure.retryAfterMs).toBe(RETRY_AFTER_S * 1000)
      }
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
      [529, 'overloaded', 'provider_unavailable'],
    ] as const)('[EC 3] HTTP %i "%s" of a gateway before it is %s', async (status, message, category) => {
      expect((await failureOf({ status, body: JSON.stringify({ error: message }) })).category).toBe(category)
      const nested = { error: { message, type: 'gateway', code: null } }
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
        const last = (await runFrames([...piecesUntil(wire, 'Hm'), wire.errorFrame(said)])).at(-1)
        if (last?.type !== 'failed') throw new Error(`no failure but ${last?.type}`)
        expect(last.failure.message).not.toContain(KEY)
        expect(last.failure.message).not.toContain('final row')
      }
    })

    it('an error inside the stream ends the call as failed, after what came before it', async () => {
      const error = wire.errorFrame('rate limit reached for this model')
      expect(await runFrames([...piecesUntil(wire, 'Hm'), error])).toEqual([
        { type: 'text_delta', delta: 'Hm' },
        {
          type: 'failed',
          failure: {
            category: 'rate_limit',
            message: expect.stringMatching(
              /^the rate limit of the provider is reached( \(HTTP 429\))?: rate limit reached for this model$/,
            ),
          },
        },
      ])
    })

    it('an error inside the stream before any text is a failure of its kind, too', async () => {
      const events = await runFrames([wire.errorFrame('rate limit reached for this model')])
      expect(events).toMatchObject([{ type: 'failed', failure: { category: 'rate_limit' } }])
    })

    it('a piece that is no JSON fails the call and is not quoted', async () => {
      expect(await runFrames([...piecesUntil(wire, 'Hm'), wire.garbageFrame])).toEqual([
        { type: 'text_delta', delta: 'Hm' },
        {
          type: 'failed',
          failure: { category: 'unknown', message: 'the provider failed: its answer cannot be read' },
        },
      ])
    })

    it('a buffered answer that is cut, empty or no answer at all fails, and shows no call', async () => {
      const whole = String(wire.buffered(COMPLETION).body)
      for (const body of [whole.slice(0, -1), whole.slice(0, 40), '', '{}', '[]', 'null', '<html>']) {
        const { events } = run({ body }, makeRequest({ streaming: false }))
        const types = (await events).map(({ type }) => type)
        expect(types, JSON.stringify(body.slice(0, 20))).toEqual(['failed'])
      }
    })

    it('[D24] a stream that is cut between two events fails, and shows none of its calls', async () => {
      const frames = wire.frames(COMPLETION)
      const completeAt = frames.findIndex((frame) => wire.completes(frame))
      expect(completeAt).toBeGreaterThan(4)
      for (let count = 0; count <= completeAt; count++) {
        for (const ending of ['close', 'break'] as const) {
          const events = await runFrames(frames.slice(0, count), { ending })
          const types = events.map(({ type }) => type)
          expect(types.at(-1), `${ending} after ${count} events`).toBe('failed')
          expect(types.filter((type) => type === 'failed' || type === 'finished')).toHaveLength(1)
          expect(types).not.toContain('tool_call')
        }
      }
      expect((await runFrames(frames.slice(0, completeAt + 1))).at(-1)?.type).toBe('finished')
    })

    it('[D24] a stream that is cut inside an event fails, and shows none of its calls', async () => {
      const frames = wire.frames(COMPLETION)
      const completeAt = frames.findIndex((frame) => wire.completes(frame))
      const bytes = new TextEncoder().encode(frames.slice(0, completeAt).join(''))
      const step = Math.ceil(bytes.length / 60)
      for (let length = 1; length < bytes.length; length += step) {
        for (const ending of ['close', 'break'] as const) {
          const { events } = run({ body: bytes.subarray(0, length), chunkBytes: 500, ending })
          const types = (await events).map(({ type }) => type)
          expect(types.at(-1), `${ending} after ${length} bytes`).toBe('failed')
          expect(types).not.toContain('tool_call')
        }
      }
    })

    it('[EC 3] a refused connection, a name that does not exist and a reset are an unavailable provider', async () => {
      const server = await startScriptedUpstream({ body: '', ending: 'break' })
      const unavailable = async (origin: string) => {
        const last = (
          await collect(makeProvider(origin), makeRequest(), makeContext({ credential: KEY }).context)
        ).at(-1)
        expect(last).toMatchObject({ type: 'failed', failure: { category: 'provider_unavailable' } })
      }
      await unavailable(server.url)
      await server.close()
      await unavailable(server.url)
      await unavailable('http://no-such-host.invalid')
    })
  })
}
