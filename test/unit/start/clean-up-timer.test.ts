import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { startCleanUpTimer } from '../../../scripts/lib-node/clean-up-timer.mjs'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

describe('[D31] the clean-up of a local router', () => {
  beforeEach(() => vi.useFakeTimers())
  afterEach(() => vi.useRealTimers())

  test('rings soon after the start and each hour, until it is stopped', async () => {
    const ring = vi.fn(async () => {})
    const stop = startCleanUpTimer('http://127.0.0.1:1', ring)
    await vi.advanceTimersByTimeAsync(MINUTE_MS)
    expect(ring.mock.calls).toEqual([['http://127.0.0.1:1/cdn-cgi/handler/scheduled']])
    await vi.advanceTimersByTimeAsync(3 * HOUR_MS)
    expect(ring).toHaveBeenCalledTimes(4)
    stop()
    await vi.advanceTimersByTimeAsync(3 * HOUR_MS)
    expect(ring).toHaveBeenCalledTimes(4)
  })

  test('a router that does not answer is asked again the next hour', async () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => {})
    const ring = vi.fn(async () => {
      throw new Error('refused')
    })
    const stop = startCleanUpTimer('http://127.0.0.1:1', ring)
    await vi.advanceTimersByTimeAsync(2 * HOUR_MS)
    expect(ring).toHaveBeenCalledTimes(3)
    expect(said).toHaveBeenCalledWith('the clean-up could not be started: refused')
    stop()
  })
})
