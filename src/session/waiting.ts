/** An answer waits this long for the copy in D1, then leaves without it (design: outbox). */
export const ANSWER_WAIT_MS = 250

/** Waits for the work, but no longer than this; the work goes on. */
export async function atMost(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | null = null
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  try {
    await Promise.race([work, limit])
  } finally {
    clearTimeout(timer)
  }
}
