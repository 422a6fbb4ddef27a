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
}

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
  }
}

export function saveSession(sql: Sql, session: SessionRow): void {
  sql.rows(
    `INSERT INTO session
       (id, session_id, user_id, title, scope, key_id, created_at, updated_at, archived_at, deleted_at, rev)
     VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET title = excluded.title, scope = excluded.scope, updated_at = excluded.updated_at,
       archived_at = excluded.archived_at, deleted_at = excluded.deleted_at, rev = excluded.rev`,
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
  )
}

/** What lists and answers show (EC 4). `title` is always there, the other optional fields only when set. */
export function toSummary(session: Omit<SessionRow, 'deletedAtMs' | 'rev'>): SessionSummary {
  return {
    id: session.sessionId,
    title: session.title,
    ...(session.scope === null ? {} : { scope: session.scope }),
    encrypted: session.keyId !== null,
    ...(session.keyId === null ? {} : { key_id: session.keyId }),
    created_at: toWireTime(session.createdAtMs),
    updated_at: toWireTime(session.updatedAtMs),
    archived: session.archivedAtMs !== null,
  }
}
