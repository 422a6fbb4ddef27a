import { MAX_SHARED_SESSIONS } from '../../protocol/remote/limits.ts'
import type { RemoteSessionInfo } from '../../protocol/remote/session-info.ts'

/** What decides how long a session stays on the live list (D03). */
export type ListedRow = {
  sessionId: string
  activity: RemoteSessionInfo['activity']
  /** When its row last changed. */
  touchedAtMs: number
}

/** An idle session that nothing happened to for so long is saved, and not live any more. */
const IDLE_TTL_MS = 7 * 24 * 3_600_000

/**
 * The sessions that leave the list, in the order in which they go: idle ones of 7 days, then, while more than 32 are
 * left, the idle one untouched longest, then the waiting one untouched longest. A running session stays, even if
 * there are more than 32 of them.
 */
export function toDelist(rows: readonly ListedRow[], nowMs: number): string[] {
  const oldestFirst = rows.toSorted(
    (a, b) => a.touchedAtMs - b.touchedAtMs || byCodeUnit(a.sessionId, b.sessionId),
  )
  const idle = oldestFirst.filter((row) => row.activity === 'idle')
  const waiting = oldestFirst.filter((row) => row.activity !== 'idle' && row.activity !== 'running')

  const expired = idle.filter((row) => nowMs >= row.touchedAtMs + IDLE_TTL_MS)
  const surplus = Math.max(0, rows.length - expired.length - MAX_SHARED_SESSIONS)
  const mayLeave = [...idle.slice(expired.length), ...waiting]
  return [...expired, ...mayLeave.slice(0, surplus)].map((row) => row.sessionId)
}

/** When the next session leaves by its age; null when no session is idle. */
export function nextExpiryMs(rows: readonly ListedRow[]): number | null {
  const idle = rows.filter((row) => row.activity === 'idle')
  return idle.length === 0 ? null : Math.min(...idle.map((row) => row.touchedAtMs)) + IDLE_TTL_MS
}

/** The order of the list: ascending by session id, compared by code units, so that every device sees one order. */
export function byId<T extends { session_id: string }>(rows: readonly T[]): T[] {
  return rows.toSorted((a, b) => byCodeUnit(a.session_id, b.session_id))
}

const byCodeUnit = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
