import { expect, test } from 'vitest'
import { playSchedules } from '../support/remote-device/attached/model.ts'
import { workersWorld } from '../support/workers/attach-world.ts'
import { isFull } from '../support/workers/crash-tier.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'

const world = workersWorld(scriptModels())
/** All of them at the end of a step, a tenth in the daily run (D54). */
const SHARE = isFull() ? 1 : 0.1
const EVICTIONS = ['hibernate', 'close_gateway', 'evict_session'] as const

test('[U01, U02, U14] 1,500 schedules with evictions of every object agree on one session', {
  timeout: 900_000,
}, async () => {
  await playSchedules({ world, seed: 10_000, schedules: 1500 * SHARE, steps: 20, faults: EVICTIONS })
  expect(await world.takeBreaches()).toEqual([])
})

test('[U06, D33] 500 schedules in which sessions die in mid-stream agree on one session', {
  timeout: 600_000,
}, async () => {
  await playSchedules({
    world,
    seed: 20_000,
    schedules: 500 * SHARE,
    steps: 20,
    faults: [...EVICTIONS, 'crash_session'],
  })
  expect(await world.takeBreaches()).toEqual([])
})
