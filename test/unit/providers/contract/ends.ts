import { afterEach, describe, expect, it, vi } from 'vitest'
import type { ModelEvent } from '../../../../src/providers/provider.ts'
import { scriptedFetch } from '../../../support/node/scripted-upstream.ts'
import { piecesUntil } from '../../../support/node/scripted-upstream-completion.ts'
import { startScriptedUpstream } from '../../../support/node/scripted-upstream-server.ts'
import { collect, KEY, makeContext } from '../support.ts'
import { type DialectUnderTest, makeRunner, ORIGIN } from './dialect.ts'

/** Whatever ends a call from this side ends it for the provider, too, and leaves nothing behind. */
export function describeEnds(dialect: DialectUnderTest): void {
  const { makeProvider, makeRequest, wire } = dialect
  const { run, streamed } = makeRunner(dialect)
  const hanging = {
    headers: { 'content-type': wire.contentType },
    body: piecesUntil(wire, 'one').join(''),
    ending: 'hang',
  } as const

  describe(`${dialect.name}: ends from this side`, () => {
    afterEach(() => {
      vi.useRealTimers()
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
      const { events, upstream } = run(hanging)
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
        return wire.buffered({ text: ['late'] })
      })
      const { context } = makeContext({ credential: KEY, fetch: upstream.fetch })
      const events = collect(makeProvider(ORIGIN), makeRequest({ streaming: false }), context)
      await vi.advanceTimersByTimeAsync(8_000)
      expect((await events).filter(({ type }) => type !== 'usage')).toEqual([
        { type: 'text_delta', delta: 'late' },
        { type: 'finished', reason: 'stop' },
      ])
      expect(vi.getTimerCount()).toBe(0)
    })

    it('a call whose signal was aborted before it began sends nothing', async () => {
      const upstream = scriptedFetch(streamed({ text: ['a'] }))
      const { context, routes } = makeContext({
        credential: KEY,
        fetch: upstream.fetch,
        signal: AbortSignal.abort(),
      })
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
      const upstream = scriptedFetch(hanging)
      const { context } = makeContext({ credential: KEY, fetch: upstream.fetch })
      for await (const event of makeProvider(ORIGIN).invoke(makeRequest(), context)) {
        if (event.type === 'usage_so_far') continue
        expect(event).toEqual({ type: 'text_delta', delta: 'one' })
        break
      }
      expect(upstream.abortedCount()).toBe(1)
      expect(vi.getTimerCount()).toBe(0)
    })

    it('[U26] an abort in mid-stream closes the upstream socket and ends the iteration with failed', async () => {
      const server = await startScriptedUpstream(hanging)
      const controller = new AbortController()
      const { context } = makeContext({ credential: KEY, signal: controller.signal })
      const events: ModelEvent[] = []
      for await (const event of makeProvider(server.url).invoke(makeRequest(), context)) {
        if (event.type !== 'usage_so_far') events.push(event)
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
  })
}
