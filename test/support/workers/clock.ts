import { vi } from 'vitest'

/** Puts the clock of the whole isolate at a time, where it stays; timers and alarms keep real time. */
export function setClock(ms: number): void {
  vi.useFakeTimers({ toFake: ['Date'] })
  vi.setSystemTime(ms)
}

/** Farther away than any test takes. */
const AHEAD_MS = 60 * 60 * 1000

/** Stops the clock in the future: alarms that are set from now on ring when the test rings them, never by themselves. */
export function stopClock(): number {
  const now = Date.now() + AHEAD_MS
  setClock(now)
  return now
}
