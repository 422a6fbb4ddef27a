import { describe, expect, it } from 'vitest'
import { priceCall } from '../../../../src/core/cost.ts'
import type { ModelEvent } from '../../../../src/providers/provider.ts'
import type { ScriptedCompletion } from '../../../support/node/scripted-upstream-completion.ts'
import { joinDeltas } from '../support.ts'
import {
  COMPLETION,
  type DialectUnderTest,
  expectedEvents,
  makeRunner,
  usageOf,
  usageTold,
  withoutOpaque,
} from './dialect.ts'

/** Up to this size each is tried; beyond it in steps that share no factor with the sizes of events. */
const EVERY_SIZE_TO_BYTES = 64
const STEP_BYTES = 997

/** One answer is one answer, however it travels. */
export function describeAnswers(dialect: DialectUnderTest): void {
  const { makeRequest, wire } = dialect
  const { run, streamed, runStreamed, runBuffered } = makeRunner(dialect)

  describe(`${dialect.name}: answers`, () => {
    it('[U39] the bytes may be split anywhere, the events stay the same', async () => {
      const answer = streamed({ ...COMPLETION, signature: 'c2lnbmVk' })
      const whole = joinDeltas(await run(answer).events)
      expect(withoutOpaque(whole)).toEqual(expectedEvents(dialect))
      const bytes = new TextEncoder().encode(String(answer.body)).length
      for (let size = 1; size <= bytes; size += size < EVERY_SIZE_TO_BYTES ? 1 : STEP_BYTES) {
        const { events } = run({ ...answer, chunkBytes: size })
        expect(joinDeltas(await events), `in pieces of ${size} bytes`).toEqual(whole)
      }
    })

    it('[U39] a buffered answer gives the same calls and texts as a streamed one', async () => {
      const signed = { ...COMPLETION, signature: 'c2lnbmVk' }
      const { events, upstream } = run(wire.buffered(signed), makeRequest({ streaming: false }))
      expect(await events).toEqual(joinDeltas(await runStreamed(signed)))
      expect(withoutOpaque(await events)).toEqual(expectedEvents(dialect))
      expect(upstream.requests[0]?.body).not.toMatchObject({ stream: true })
    })

    it.each([
      ['in several deltas', { travel: 'thirds', arguments: { path: 'größe "1"' } }],
      ['only with the last event', { travel: 'last', arguments: { path: 'größe "1"' } }],
      ['as an empty object', { travel: 'thirds', arguments: {} }],
      ['not at all', { travel: 'absent', arguments: {} }],
    ] as const)('[U39] arguments that come %s are the same streamed and buffered', async (_how, how) => {
      const completion: ScriptedCompletion = {
        calls: [
          { id: 'call_a', name: 'read_file', ...how },
          { id: 'call_b', name: 'read_file', ...how },
        ],
      }
      const call = { type: 'tool_call', name: 'read_file', arguments: how.arguments } as const
      const expected: ModelEvent[] = [
        { ...call, providerCallId: 'call_a' },
        { ...call, providerCallId: 'call_b' },
        { type: 'finished', reason: 'tool_calls' },
      ]
      const told = (events: readonly ModelEvent[]) => events.filter(({ type }) => type !== 'usage')
      expect(told(await runBuffered(completion))).toEqual(expected)
      for (let chunkBytes = 1; chunkBytes <= 48; chunkBytes++) {
        const { events } = run({ ...streamed(completion), chunkBytes })
        expect(told(await events), `in pieces of ${chunkBytes} bytes`).toEqual(expected)
      }
    })

    it('[U43] the same usage costs the same streamed and buffered, the cache and the reasoning apart', async () => {
      const model = {
        input_cost_per_million_tokens: '3',
        output_cost_per_million_tokens: '15',
        cached_input_cost_per_million_tokens: '0.3',
        cache_write_cost_per_million_tokens: '3.75',
      }
      for (const usage of [
        { input: 120, output: 31, cached: 64, cacheWrite: 20, reasoning: 9 },
        { input: 120, output: 31, cached: 0, cacheWrite: 0, reasoning: 0 },
        { input: 120, output: 0, cached: 120 },
        // Reported as zero, it is known.
        { input: 0, output: 0 },
      ]) {
        const completion = { text: ['a'], usage }
        const streamedUsage = usageOf(await runStreamed(completion))
        const bufferedUsage = usageOf(await runBuffered(completion))
        expect(streamedUsage).toMatchObject({ inputTokens: usage.input, outputTokens: usage.output })
        expect(streamedUsage).toMatchObject(definedOnly(usageTold(dialect, usage), usage))
        expect(bufferedUsage).toEqual(streamedUsage)
        const price = priceCall(model, streamedUsage ?? {})
        expect(price).toEqual(expect.any(String))
        expect(priceCall(model, bufferedUsage ?? {})).toBe(price)
      }
    })

    if (!dialect.alwaysTellsUsage) {
      it('[U43] usage that is not reported is unknown: there is no usage event', async () => {
        const { usage: _, ...unreported } = COMPLETION
        const expected = expectedEvents(dialect).filter(({ type }) => type !== 'usage')
        expect(withoutOpaque(joinDeltas(await runStreamed(unreported)))).toEqual(expected)
        expect(withoutOpaque(await runBuffered(unreported))).toEqual(expected)
      })
    }

    it('[U42] finished, cut off, refused and too long are different endings', async () => {
      const endings: [ScriptedCompletion['finish'], object][] = [
        ['stop', { type: 'finished', reason: 'stop' }],
        ['length', { type: 'finished', reason: 'length' }],
      ]
      if (dialect.endings.includes('refused')) {
        endings.push(['refused', { type: 'finished', reason: 'refused' }])
      }
      if (dialect.endings.includes('overflow')) {
        endings.push(['overflow', { type: 'failed', failure: { category: 'context_length' } }])
      }
      for (const [finish, expected] of endings) {
        const completion: ScriptedCompletion = { text: ['a'], ...(finish === undefined ? {} : { finish }) }
        expect((await runStreamed(completion)).at(-1), `${finish}, streamed`).toMatchObject(expected)
        expect((await runBuffered(completion)).at(-1), `${finish}, buffered`).toMatchObject(expected)
      }
      const tooLong = wire.refusal('too_long')
      if (tooLong === undefined) throw new Error('each provider refuses a prompt that is too long')
      expect(await run(tooLong).events).toMatchObject([
        { type: 'failed', failure: { category: 'context_length', status: 400 } },
      ])
    })
  })
}

/** The counters that the script named: a dialect may tell zero for another, or nothing. */
const definedOnly = (told: object, usage: object): object => {
  const names: Record<string, string> = {
    cachedTokens: 'cached',
    cacheWriteTokens: 'cacheWrite',
    reasoningTokens: 'reasoning',
  }
  return Object.fromEntries(Object.entries(told).filter(([key]) => (names[key] ?? 'input') in usage))
}
