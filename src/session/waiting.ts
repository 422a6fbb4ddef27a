/** An answer waits this long for the copy in D1, then leaves without it (design: outbox). */
export const ANSWER_WAIT_MS = 250
/** D1 counts as failed when it has not answered by then; an answer that comes after all is harmless (D26). */
export const D1_DEADLINE_MS = 30_000

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

/** Rejects when the work takes longer than this; the work goes on. */
export async function withDeadline<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | null = null
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('D1 did not answer in time')), ms)
  })
  try {
    return await Promise.race([work, limit])
  } finally {
    clearTimeout(timer)
  }
}
