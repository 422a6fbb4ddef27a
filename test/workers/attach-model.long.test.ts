import { expect, test } from 'vitest'
import { EVICTIONS, playSchedules } from '../support/remote-device/attached/model.ts'
import { workersWorld } from '../support/workers/attach-world.ts'
import { isFull } from '../support/workers/crash-tier.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'

const world = workersWorld(scriptModels())
/** All of them at the end of a step, a tenth in the daily run (D54). */
const SCHEDULES = isFull() ? 1500 : 100

test('[U01, U02, U14] schedules with evictions of every object agree on one session', {
  timeout: 1_800_000,
}, async () => {
  await playSchedules({ world, seed: 10_000, schedules: SCHEDULES, steps: 10, faults: EVICTIONS })
  expect(await world.takeBreaches()).toEqual([])
})
