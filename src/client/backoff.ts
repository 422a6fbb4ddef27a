/** How long a client goes on trying when the connection is lost. */
export type Backoff = {
  /** The wait before the second attempt; it doubles with each further one. */
  firstMs: number
  /** No wait is longer. */
  maxMs: number
  /** Repetitions without any progress after which a turn that was under way is reported lost. */
  attempts: number
  /** The same before the router has answered at all: somebody waits for the first sign of life. */
  openAttempts: number
}

/**
 * About two minutes for a turn under way (a laptop that changes networks, a router that restarts), four seconds for
 * one that has not begun.
 */
export const DEFAULT_BACKOFF: Backoff = { firstMs: 250, maxMs: 15_000, attempts: 14, openAttempts: 4 }

/** The wait before attempt `attempt` (1 = the first repetition). */
export const backoffMs = (backoff: Backoff, attempt: number): number =>
  Math.min(backoff.maxMs, backoff.firstMs * 2 ** Math.max(0, attempt - 1))

/** Waits, or less when the signal fires; leaves no timer behind. */
export function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done, { once: true })
  })
}

/**
 * The waiting time of a `Retry-After` header in milliseconds: seconds or an HTTP date.
 * @param nowMs the present, for the date form
 */
export function parseRetryAfter(header: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined
  const text = header.trim()
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs)
}
