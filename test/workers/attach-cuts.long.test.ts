import { expect, test } from 'vitest'
import { playCuts } from '../support/remote-device/attached/cuts.ts'
import { workersWorld } from '../support/workers/attach-world.ts'
import { isFull } from '../support/workers/crash-tier.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'

const world = workersWorld(scriptModels())
/** All of them at the end of a step, a tenth in the daily run (D54). */
const CUTS = isFull() ? 1520 : 152

test('[U01, U02] a device that is cut off every few events of a run loses nothing and repeats nothing', {
  timeout: 1_200_000,
}, async () => {
  await playCuts({ world, cuts: CUTS, seed: 7 })
  expect(await world.takeBreaches()).toEqual([])
})
