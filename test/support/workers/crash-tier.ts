import { env } from 'cloudflare:workers'
import { afterAll, beforeAll, beforeEach, it, vi } from 'vitest'
import type { Manner } from './crash-client.ts'
import { CrashPoints } from './crash-points.ts'
import { mannersOf, SCRIPTS } from './crash-scripts.ts'
import { sweep } from './crash-sweep.ts'
import { type Client, makeClient } from './router.ts'
import type { ScriptedModels } from './scripted-models.ts'

/** How much of all that can be tried a tier tries (D54). */
export type Tier = {
  /** Every so-many-th place, over all scripts; another start in each. */
  stride: number
  /** Each script with and without keys, or in turns. */
  manners: 'both' | 'in turns'
  /** A second death while the first one is made good. */
  twice?: boolean
}

/** Every place of every script takes minutes: `SWITCHYARD_FULL=1`. */
export const isFull = (): boolean => (env as { SWITCHYARD_FULL?: string }).SWITCHYARD_FULL === '1'

/** One test per script and manner. What is tried is told at the end of the file. */
export function tryScripts(models: ScriptedModels, tier: Tier, sealed: boolean): void {
  const points = new CrashPoints()
  let client: Client
  let deaths = 0
  beforeAll(async () => {
    client = await makeClient()
  })
  beforeEach(() => {
    // Requests that die with their object are told as failures of the router, and D1 gets its rows late.
    vi.spyOn(console, 'error').mockImplementation(() => {})
    vi.spyOn(console, 'warn').mockImplementation(() => {})
  })
  afterAll(() => {
    console.log(`crash points${sealed ? ', sealed' : ''}: ${deaths}`)
  })
  let tried = 0
  for (const [index, script] of SCRIPTS.entries()) {
    const all = mannersOf(index)
    const manners = tier.manners === 'both' ? all : all.filter((_, which) => which === (index >> 1) % 2)
    for (const manner of manners) {
      const offset = tried++ * 7
      it(
        titleOf(script.name, manner, { sealed, twice: tier.twice === true }),
        async () => {
          points.start()
          try {
            const stage = {
              points,
              models,
              client,
              ...(sealed ? ({ sealed: index % 2 === 0 ? 1 : 2 } as const) : {}),
            }
            const { stride, twice = false } = tier
            deaths += await sweep(script, manner, stage, { stride, offset, twice })
          } finally {
            points.stop()
          }
        },
        SCRIPT_TIMEOUT_MS,
      )
    }
  }
}

/** A whole script in the full tier: hundreds of plays. */
const SCRIPT_TIMEOUT_MS = 600_000

function titleOf(
  name: string,
  { keyed, stream }: Manner,
  { sealed, twice }: { sealed: boolean; twice: boolean },
): string {
  const what = sealed ? `[D20] a sealed session: ${name}` : `[EC 5.8, U14] ${name}`
  const how = [keyed ? 'with keys' : 'without keys', stream ? 'streamed' : 'buffered'].join(', ')
  return `${what}: comes to the same wherever its object dies${twice ? ' twice' : ''} (${how})`
}
