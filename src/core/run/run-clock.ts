import { eventTurnId } from './events.ts'
import { withLastDecision } from './last-decision.ts'
import type { RunState } from './state.ts'
import type { Step } from './step.ts'
import type { RunOutcome, Write } from './writes.ts'

/**
 * What every step keeps, whichever it is: the clock of the run (RF 14), and with the last turn of a run how the run ended.
 */
export const withRunKept = (before: RunState | null, result: Step, nowMs: number): Step =>
  withOutcome(before, {
    ...result,
    state: withLastDecision(before, withClock(before, result.state, nowMs), nowMs),
  })

/** The clocks of a run that has ended, in epoch milliseconds and milliseconds; of one that an older release began only its end. */
export type EndedClock = { startedAtMs?: number; workMs?: number; endedAtMs: number }

/** The clocks of a run that ends with this step: the one of the state before it, or of the one after. */
export function endedClock(
  before: RunState | null,
  after: RunState,
  runId: string,
  nowMs: number,
): EndedClock {
  if (after.runId === runId) return { ...after.clock, endedAtMs: nowMs }
  if (before?.runId !== runId) return { endedAtMs: nowMs }
  return { ...withClock(before, { ...before, active: null }, nowMs).clock, endedAtMs: nowMs }
}

/** A run's clock begins with it; what a turn took is added when its lock goes, and pauses are not counted. */
function withClock(before: RunState | null, after: RunState, nowMs: number): RunState {
  if (before === null || before.runId !== after.runId)
    return { ...after, clock: { startedAtMs: nowMs, workMs: 0 } }
  const { active, clock } = before
  if (active === null || clock === undefined || active.lease === after.active?.lease) return after
  // A turn that a crash cut off was not served for longer than its lock held.
  const servedMs = Math.max(0, Math.min(nowMs, active.leaseUntilMs) - active.startedAtMs)
  return { ...after, clock: { ...clock, workMs: clock.workMs + servedMs } }
}

function withOutcome(before: RunState | null, result: Step): Step {
  if (before === null) return result
  const outcome = outcomeOf(before, result)
  if (outcome === null) return result
  const turnId = before.active?.turnId
  const isClosing = (write: Write) => write.w === 'close_turn' && write.turnId === turnId
  if (result.writes.some(isClosing)) {
    const writes = result.writes.map((write) =>
      write.w === 'close_turn' && write.turnId === turnId ? { ...write, runOutcome: outcome } : write,
    )
    return { ...result, writes }
  }
  return { ...result, writes: [{ w: 'run_ended', outcome }, ...result.writes] }
}

/** How the run ended that was there before the step; null where it goes on, or had ended earlier. */
function outcomeOf({ runId }: RunState, { events }: Step): RunOutcome | null {
  const turnId = eventTurnId(runId)
  for (const event of events) {
    if (event.type === 'turn_finished' && event.turnId === turnId) return event.outcome
    if (event.type === 'turn_cancelled' && event.turnId === turnId) return 'cancelled'
  }
  return null
}
