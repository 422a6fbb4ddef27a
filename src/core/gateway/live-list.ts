import { MAX_SHARED_SESSIONS } from '../../protocol/remote/limits.ts'
import type { RemoteSessionInfo } from '../../protocol/remote/session-info.ts'

/** What decides how long a session stays on the live list (D03). */
export type ListedRow = {
  sessionId: string
  activity: RemoteSessionInfo['activity']
  /** When its row last changed. */
  touchedAtMs: number
  /** When it last spoke, to the same effect or another. */
  heardAtMs: number
  /** It has been asked whether its row still holds, and has not changed it since. */
  isAsked: boolean
}

/** A session that nothing happened to for so long is saved, and not live any more, whatever it waits for. */
const IDLE_TTL_MS = 7 * 24 * 3_600_000

/**
 * A turn that is served pushes its row every 30 s (D33). A session that was running and said nothing for four times as
 * long may have died before it could tell the end of its run, and is asked, once.
 */
const DOUBT_MS = 120_000

/** The sessions that have to be asked whether they still are what their rows say. */
export const inDoubt = (rows: readonly ListedRow[], nowMs: number): string[] =>
  rows.filter((row) => isDoubtable(row) && nowMs >= row.heardAtMs + DOUBT_MS).map((row) => row.sessionId)

const isDoubtable = ({ activity, isAsked }: ListedRow): boolean => activity === 'running' && !isAsked

/**
 * The sessions that leave the list, in the order in which they go: those that nothing has happened to for 7 days, then,
 * while more than 32 are left, the one untouched longest that is idle or was left in the middle of a run, then a waiting
 * one, and only then one at work.
 * @param spoke the session that has just been listed or changed: others make room for it
 */
export function toDelist(rows: readonly ListedRow[], nowMs: number, spoke?: string): string[] {
  const oldestFirst = rows.toSorted(
    (a, b) => a.touchedAtMs - b.touchedAtMs || byCodeUnit(a.sessionId, b.sessionId),
  )
  const expired = oldestFirst.filter((row) => nowMs >= row.touchedAtMs + IDLE_TTL_MS)
  const left = oldestFirst.slice(expired.length).toSorted((a, b) => importance(a) - importance(b))
  const surplus = Math.max(0, left.length - MAX_SHARED_SESSIONS)
  const mayLeave = left.filter((row) => row.sessionId !== spoke)
  return [...expired, ...mayLeave.slice(0, surplus)].map((row) => row.sessionId)
}

/** A run whose client has gone stands still: asked, its session has said the same again. */
function importance({ activity, isAsked }: ListedRow): number {
  if (activity === 'idle' || (activity === 'running' && isAsked)) return 0
  return activity === 'running' ? 2 : 1
}

/** When a session next leaves by its age or has to be asked; null for an empty list. */
export function nextLookMs(rows: readonly ListedRow[]): number | null {
  const times = rows.flatMap((row) => [
    row.touchedAtMs + IDLE_TTL_MS,
    ...(isDoubtable(row) ? [row.heardAtMs + DOUBT_MS] : []),
  ])
  return times.length === 0 ? null : Math.min(...times)
}

/** The order of the list: ascending by session id, compared by code units, so that every device sees one order. */
export function byId<T extends { session_id: string }>(rows: readonly T[]): T[] {
  return rows.toSorted((a, b) => byCodeUnit(a.session_id, b.session_id))
}

const byCodeUnit = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
