import { expect, test } from 'vitest'
import { EVICTIONS, playSchedules } from '../support/remote-device/attached/model.ts'
import { workersWorld } from '../support/workers/attach-world.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'

const world = workersWorld(scriptModels())

test('[U01, U02, U14] three devices and a laptop in any order, while gateways and sessions come and go, agree on one session', async () => {
  await playSchedules({ world, seed: 1, schedules: 10, steps: 8, faults: EVICTIONS })
  expect(await world.takeBreaches()).toEqual([])
})
