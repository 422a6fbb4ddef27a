import type { ClientFailure } from '../../client/failure.ts'
import type { Result } from '../../protocol/result.ts'
import type { Clock } from '../clock.ts'
import { must } from '../command-context.ts'

/** Soon enough for somebody with a phone in his hand, and 60 small requests for a pairing. */
const POLL_MS = 2_000

/**
 * Looks again and again, the last time when the time has come.
 * @param look is told whether it is the last time; undefined: go on
 * @returns what was found; undefined when nothing was until then, or the signal fired
 */
export async function pollUntil<T>(
  clock: Clock,
  untilMs: number,
  signal: AbortSignal,
  look: (isLast: boolean) => Promise<T | undefined>,
): Promise<T | undefined> {
  for (;;) {
    const isLast = clock.nowMs() >= untilMs
    const found = await look(isLast)
    if (found !== undefined || isLast || signal.aborted) return found
    await clock.pause(Math.min(POLL_MS, untilMs - clock.nowMs()), signal)
    if (signal.aborted) return undefined
  }
}

/** The highest status of an answer that the router itself gives for good. */
const LAST_REFUSAL_STATUS = 499

/**
 * What the router answered to one look of many; undefined when the look was stopped, or when the router cannot be
 * reached or is busy, which passes. Any other refusal ends the command, and after the last look any at all does.
 */
export function ifReached<T>(answer: Result<T, ClientFailure>, isLast: boolean): T | undefined {
  if (answer.ok) return answer.value
  const passes = answer.error.kind === 'aborted' || (!isLast && isPassing(answer.error))
  return passes ? undefined : must(answer)
}

function isPassing(failure: ClientFailure): boolean {
  switch (failure.kind) {
    case 'network':
    case 'not_json':
      return true
    case 'http':
      return failure.status === 429 || failure.status > LAST_REFUSAL_STATUS
    default:
      return false
  }
}
