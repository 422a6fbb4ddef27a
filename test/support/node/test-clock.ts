import type { Clock } from '../../../src/cli/clock.ts'

/** A clock on which only waiting takes time. */
export type TestClock = Clock & {
  /** What was waited for so far, in milliseconds. */
  pauses: number[]
}

/** @param onPause happens during the wait with this number, the first being 1 */
export function testClock(onPause: (number: number) => void | Promise<void> = () => undefined): TestClock {
  let nowMs = Date.parse('2026-03-01T12:00:00.000Z')
  const pauses: number[] = []
  return {
    pauses,
    nowMs: () => nowMs,
    pause: async (ms, signal) => {
      // Others get their turn, as in any wait.
      await new Promise((resolve) => setImmediate(resolve))
      if (signal.aborted) return
      pauses.push(ms)
      nowMs += ms
      await onPause(pauses.length)
    },
  }
}
