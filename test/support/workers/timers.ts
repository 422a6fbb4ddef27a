import { vi } from 'vitest'

type Timer = { ms: number; fate: 'pending' | 'cleared' | 'rang' }

/** The one timer that a turn may leave behind: it waits a second at most, when many changed rows came before (D33). */
const ALLOWED = 'rowIsDue'

/** Watches every other `setTimeout` of the isolate until the mocks are restored. */
export function watchTimers(): { pending(): Timer[] } {
  const timers = new Map<unknown, Timer>()
  const set = globalThis.setTimeout
  const clear = globalThis.clearTimeout
  const watched = (work: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => {
    const timer: Timer = { ms, fate: 'pending' }
    const id = set(() => {
      timer.fate = 'rang'
      work(...args)
    }, ms)
    if (work.name !== ALLOWED) timers.set(id, timer)
    return id
  }
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(watched as typeof setTimeout)
  vi.spyOn(globalThis, 'clearTimeout').mockImplementation((id) => {
    const timer = timers.get(id)
    if (timer?.fate === 'pending') timer.fate = 'cleared'
    clear(id ?? null)
  })
  return { pending: () => [...timers.values()].filter(({ fate }) => fate === 'pending') }
}
