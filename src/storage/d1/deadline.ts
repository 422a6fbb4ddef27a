/**
 * D1 counts as failed when it has not answered by then: as long as the platform lets one query take. An answer that comes
 * after all is harmless (D26).
 */
export const D1_DEADLINE_MS = 30_000

/** Rejects when the work takes longer than this; the work goes on. */
export async function withDeadline<T>(work: PromiseLike<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | null = null
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), ms)
  })
  try {
    return await Promise.race([work, limit])
  } finally {
    if (timer !== null) clearTimeout(timer)
  }
}
