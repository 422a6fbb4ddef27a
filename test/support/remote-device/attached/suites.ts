import { afterEach, describe, expect, test } from 'vitest'
import { Coverage } from './coverage.ts'
import { Stage } from './stage.ts'
import { SUITES } from './tests/all.ts'
import type { World } from './world.ts'

/**
 * Remote protocol v1 as attached devices see it. Each test plays in an account of its own, and meets what it says that it
 * covers.
 * @param long the tests that move megabytes, and only those
 */
export function attachSuites(world: () => World, { long = false }: { long?: boolean } = {}): void {
  afterEach(async () => {
    const breaches = await world().takeBreaches()
    if (breaches.length > 0) throw new Error(`the gateway broke the contract:\n${breaches.join('\n')}`)
  })
  for (const [section, tests] of Object.entries(SUITES)) {
    const chosen = tests.filter((one) => (one.long ?? false) === long)
    if (chosen.length === 0) continue
    describe(section, () => {
      for (const { name, covers, run } of chosen) {
        test(name, async () => {
          const coverage = new Coverage()
          const stage = await Stage.open(world(), coverage)
          await run(stage)
          stage.close()
          expect(covers.filter((word) => !coverage.met.has(word))).toEqual([])
        })
      }
    })
  }
}
