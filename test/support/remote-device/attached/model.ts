import { seededRandom } from '../../node/seeded.ts'
import { Coverage } from './coverage.ts'
import { Schedule, type ScheduleFault } from './schedule.ts'
import { Stage } from './stage.ts'
import type { World } from './world.ts'

export type ModelRun = {
  world: World
  /** The first seed; each schedule takes the next. */
  seed: number
  schedules: number
  steps: number
  faults: readonly ScheduleFault[]
}

/** What takes an object out of memory while nothing runs in it, as the platform does at any time. */
export const EVICTIONS = ['hibernate', 'close_gateway', 'evict_session'] as const

/** An account serves so many schedules: its live list holds 32 sessions. */
const PER_ACCOUNT = 25

/** Plays schedules one after the other; the first that fails is thrown with its seed and what was done in it. */
export async function playSchedules({ world, seed, schedules, steps, faults }: ModelRun): Promise<void> {
  for (let done = 0; done < schedules; ) {
    const stage = await Stage.open(world, new Coverage())
    const devices = [await stage.device(), await stage.device(), await stage.device('thread')]
    const witness = await stage.device()
    for (let count = 0; count < PER_ACCOUNT && done < schedules; count++, done++) {
      const own = seed + done
      const schedule = new Schedule(stage, devices, witness, { random: seededRandom(own), steps, faults })
      try {
        await withDeadline(schedule.play())
      } catch (error) {
        const what = error instanceof Error ? (error.stack ?? error.message) : String(error)
        throw new Error(`seed ${own}: ${what}\nafter\n  ${schedule.trace.join('\n  ')}`)
      }
    }
    stage.close()
  }
}

/** A schedule takes less than a second; one that hangs is a fault with a seed as well. */
const DEADLINE_MS = 20_000

async function withDeadline(work: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | null = null
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it hangs after ${DEADLINE_MS} ms`)), DEADLINE_MS)
  })
  try {
    await Promise.race([work, late])
  } finally {
    if (timer !== null) clearTimeout(timer)
  }
}
