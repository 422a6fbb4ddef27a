import { describe, expect, it } from 'vitest'
import { scriptedFetch } from '../../../support/node/scripted-upstream.ts'
import { collectAll, KEY, makeContext, reportsIn } from '../support.ts'
import { COMPLETION, type DialectUnderTest, ORIGIN, usageTold } from './dialect.ts'

/** What a provider has reported before its answer was cut is known. */
export function describeReports(dialect: DialectUnderTest): void {
  const { makeProvider, makeRequest, reportsFirst, wire } = dialect
  const usage = COMPLETION.usage ?? { input: 0, output: 0 }
  const first = reportsFirst === undefined ? [] : [reportsFirst(usage)]
  const whole = usageTold(dialect, usage)

  describe(`${dialect.name}: usage before the end`, () => {
    it('[EC 15][U43] of an answer that is cut, the counts that had come were told before it failed', async () => {
      const frames = wire.frames(COMPLETION)
      const completeAt = frames.findIndex((frame) => wire.completes(frame))
      expect(completeAt).toBeGreaterThan(4)
      for (let count = 1; count <= completeAt; count++) {
        // A library may look ahead before it gives anything out: a break in that very moment takes the first piece along.
        const endings = count === 1 ? (['close'] as const) : (['close', 'break'] as const)
        for (const ending of endings) {
          const { fetch } = scriptedFetch({
            headers: { 'content-type': wire.contentType },
            body: frames.slice(0, count).join(''),
            ending,
          })
          const { context } = makeContext({ credential: KEY, fetch })
          const events = await collectAll(makeProvider(ORIGIN), makeRequest(), context)
          const types = events.map(({ type }) => type)
          const cut = `${ending} after ${count} events`
          expect(types, cut).not.toContain('usage')
          expect(types.at(-1), cut).toBe('failed')
          const [told, ...later] = reportsIn(events)
          expect(told, cut).toEqual(first[0])
          // The last counts may come just before the end. The same counts are not told again.
          if (later.length > 0) expect(later, cut).toEqual([whole])
        }
      }
    })
  })
}
