import type { SessionSummary } from '../../protocol/execution/session.ts'
import { toWireTime } from '../../protocol/time.ts'
import { numberOf, optionalNumber, optionalText, type Sql, textOf } from './sql.ts'

/** The session itself. Its object is the authority; D1 has a copy. Times are epoch milliseconds. */
export type SessionRow = {
  sessionId: string
  userId: string
  title: string | null
  scope: string | null
  /** Present in an encrypted session, for life. */
  keyId: string | null
  createdAtMs: number
  updatedAtMs: number
  archivedAtMs: number | null
  /** A session that is being deleted answers nothing any more. */
  deletedAtMs: number | null
  rev: number
  /** The newest registration in the live list: a time, each later than the one before it (D03). Null: never listed. */
  epoch: number | null
  /** Listed live, under `epoch`. */
  listed: boolean
  /** The owner took it off the list: runs do not list it again. */
  sharingOff: boolean
  /** What devices have set for the runs that they start (D09); null: nothing. */
  settings: SessionSettings | null
}

/** `model` is the id of a profile, `auto` for none; `effort` is null for the default. */
export type SessionSettings = { model: string; effort: string | null }

/** Of a session that was never listed. */
export const NOT_LISTED = { epoch: null, listed: false, sharingOff: false, settings: null } as const

/** The session, listed under a new registration: devices hold nothing of it that still counts (D03). */
export const listedAnew = (session: SessionRow, nowMs: number): SessionRow => ({
  ...session,
  epoch: Math.max(nowMs, (session.epoch ?? 0) + 1),
  listed: true,
})

/** The session as a run leaves it: each lists it, unless it may not be on the list. */
export const listedByRun = (session: SessionRow, nowMs: number): SessionRow =>
  session.listed || session.sharingOff || session.archivedAtMs !== null ? session : listedAnew(session, nowMs)

export function loadSession(sql: Sql): SessionRow | null {
  const row = sql.rows('SELECT * FROM session')[0]
  if (!row) return null
  return {
    sessionId: textOf(row, 'session_id'),
    userId: textOf(row, 'user_id'),
    title: optionalText(row, 'title'),
    scope: optionalText(row, 'scope'),
    keyId: optionalText(row, 'key_id'),
    createdAtMs: numberOf(row, 'created_at'),
    updatedAtMs: numberOf(row, 'updated_at'),
    archivedAtMs: optionalNumber(row, 'archived_at'),
    deletedAtMs: optionalNumber(row, 'deleted_at'),
    rev: numberOf(row, 'rev'),
    epoch: optionalNumber(row, 'epoch'),
    listed: numberOf(row, 'listed') === 1,
    sharingOff: numberOf(row, 'sharing_off') === 1,
    settings: settingsOf(optionalText(row, 'settings')),
  }
}

export function saveSession(sql: Sql, session: SessionRow): void {
  sql.rows(
    `INSERT INTO session
       (id, session_id, user_id, title, scope, key_id, created_at, updated_at, archived_at, deleted_at, rev,
        epoch, listed, sharing_off, settings)
     VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET title = excluded.title, scope = excluded.scope, updated_at = excluded.updated_at,
       archived_at = excluded.archived_at, deleted_at = excluded.deleted_at, rev = excluded.rev, epoch = excluded.epoch,
       listed = excluded.listed, sharing_off = excluded.sharing_off,
       settings = excluded.settings`,
    session.sessionId,
    session.userId,
    session.title,
    session.scope,
    session.keyId,
    session.createdAtMs,
    session.updatedAtMs,
    session.archivedAtMs,
    session.deletedAtMs,
    session.rev,
    session.epoch,
    session.listed ? 1 : 0,
    session.sharingOff ? 1 : 0,
    session.settings === null ? null : JSON.stringify(session.settings),
  )
}

const settingsOf = (stored: string | null): SessionSettings | null =>
  stored === null ? null : JSON.parse(stored)

/** What lists and answers show (EC 4). `title` is always there, the other optional fields only when set. */
export function toSummary(
  session: Omit<SessionRow, 'deletedAtMs' | 'rev' | 'epoch' | 'sharingOff' | 'settings'>,
): SessionSummary {
  return {
    id: session.sessionId,
    title: session.title,
    ...(session.scope === null ? {} : { scope: session.scope }),
    encrypted: session.keyId !== null,
    ...(session.keyId === null ? {} : { key_id: session.keyId }),
    created_at: toWireTime(session.createdAtMs),
    updated_at: toWireTime(session.updatedAtMs),
    archived: session.archivedAtMs !== null,
    shared: session.listed,
  }
}
