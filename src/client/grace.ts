/**
 * A signal for what has to be finished although the user has stopped the run: it fires `ms` after `stopped` did.
 * `end` leaves no timer behind.
 */
export function graceAfter(stopped: AbortSignal, ms: number): { signal: AbortSignal; end(): void } {
  const over = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const begin = () => {
    timer = setTimeout(() => over.abort(), ms)
  }
  if (stopped.aborted) begin()
  else stopped.addEventListener('abort', begin, { once: true })
  return {
    signal: over.signal,
    end: () => {
      stopped.removeEventListener('abort', begin)
      if (timer !== undefined) clearTimeout(timer)
    },
  }
}
