import type { SessionCutoffs } from '../storage/d1/session-cutoffs.ts'
import type { SessionRow } from '../storage/session/session-row.ts'

/** Whether a session's time is over: an archived one counts from its archiving, any other from its last update (D31). */
export function isExpired(
  { archivedAtMs, updatedAtMs }: SessionRow,
  { archivedBeforeMs, idleBeforeMs }: SessionCutoffs,
): boolean {
  if (archivedAtMs !== null) return archivedBeforeMs !== null && archivedAtMs < archivedBeforeMs
  return idleBeforeMs !== null && updatedAtMs < idleBeforeMs
}
