import { wait } from '../client/backoff.ts'

/** The time of commands that wait for something; replaced by tests. */
export type Clock = {
  /** Epoch milliseconds. */
  nowMs(): number
  /** Waits, or less when the signal fires. */
  pause(ms: number, signal: AbortSignal): Promise<void>
}

export const WALL_CLOCK: Clock = { nowMs: () => Date.now(), pause: wait }

const two = (value: number): string => String(value).padStart(2, '0')

/** A time of today as the clock on the wall shows it: `hh:mm:ss`. */
export function timeOfDay(atMs: number): string {
  const at = new Date(atMs)
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':')
}
