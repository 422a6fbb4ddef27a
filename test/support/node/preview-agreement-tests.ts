import fc from 'fast-check'
import { expect, test } from 'vitest'
import { world } from '../core/previewed-worlds.ts'
import { type Came, checkAgreement } from './preview-agreement.ts'

/** Worlds are made from it: a failure is found again by the same run. */
const SEED = 20_261_129
const PATIENCE_MS = 120_000

/** Each of these is common enough that some hundred worlds hold it several times. */
const KINDS: Came[] = [
  'refused',
  'warned of a refusal',
  'ready',
  'asks for a disclosure',
  'asks for the cost',
  'left something out',
  'planning',
  'fallback',
]

export function testAgreement(worlds: number): void {
  test(
    `[EC 2.13] over ${worlds} requests, preview says what execute does, writes nothing and asks no model`,
    async () => {
      const counts = new Map<Came, number>()
      await fc.assert(
        fc.asyncProperty(world, async (one) => {
          for (const kind of await checkAgreement(one)) counts.set(kind, (counts.get(kind) ?? 0) + 1)
        }),
        { seed: SEED, numRuns: worlds },
      )
      // A property over requests that are all refused would hold as well.
      for (const kind of KINDS) expect(counts.get(kind) ?? 0, kind).toBeGreaterThan(worlds / 100)
    },
    PATIENCE_MS,
  )
}
