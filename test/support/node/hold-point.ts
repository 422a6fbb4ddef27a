/** A place where a scripted model waits for the test; it may be reached many times. */
export type HoldPoint = {
  /** What the script waits for. */
  hold: () => Promise<void>
  /** Resolves when it was reached so many times in all. */
  reached(times?: number): Promise<void>
  /** Lets everyone on, now and later. */
  release(): void
}

export function makeHoldPoint(): HoldPoint {
  let count = 0
  let waiting: { times: number; resolve: () => void }[] = []
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return {
    hold: () => {
      count++
      for (const one of waiting.filter(({ times }) => times <= count)) one.resolve()
      waiting = waiting.filter(({ times }) => times > count)
      return opened
    },
    reached: (times = 1) =>
      new Promise((resolve) => {
        if (count >= times) resolve()
        else waiting.push({ times, resolve })
      }),
    release: () => open(),
  }
}
