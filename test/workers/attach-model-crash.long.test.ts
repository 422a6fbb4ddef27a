import { afterEach, expect, test, vi } from 'vitest'
import { EVICTIONS, playSchedules } from '../support/remote-device/attached/model.ts'
import { workersWorld } from '../support/workers/attach-world.ts'
import { isFull } from '../support/workers/crash-tier.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'

const world = workersWorld(scriptModels())
/** All of them at the end of a step, a tenth in the daily run (D54). */
const SCHEDULES = isFull() ? 500 : 50

afterEach(() => {
  vi.restoreAllMocks()
})

test('[U06, D33] schedules in which sessions die in mid-stream agree on one session', {
  timeout: 1_800_000,
}, async () => {
  // Requests that die with their object are told as failures of the router.
  vi.spyOn(console, 'error').mockImplementation(() => {})
  vi.spyOn(console, 'warn').mockImplementation(() => {})
  const faults = [...EVICTIONS, 'crash_session'] as const
  await playSchedules({ world, seed: 20_000, schedules: SCHEDULES, steps: 10, faults })
  expect(await world.takeBreaches()).toEqual([])
})
