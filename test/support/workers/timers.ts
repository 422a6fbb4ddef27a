import { vi } from 'vitest'

/** Watches every `setTimeout` of the isolate until the mocks are restored. */
export function watchTimers(): { pending(): number[] } {
  const pending = new Map<unknown, number>()
  const set = globalThis.setTimeout
  const clear = globalThis.clearTimeout
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((
    work: (...args: unknown[]) => void,
    ms = 0,
    ...args: unknown[]
  ) => {
    const timer = set(() => {
      pending.delete(timer)
      work(...args)
    }, ms)
    pending.set(timer, ms)
    return timer
  }) as typeof setTimeout)
  vi.spyOn(globalThis, 'clearTimeout').mockImplementation((timer) => {
    pending.delete(timer)
    clear(timer ?? null)
  })
  return { pending: () => [...pending.values()] }
}
