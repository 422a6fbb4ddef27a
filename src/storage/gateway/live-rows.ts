import type { RemoteSessionInfo } from '../../protocol/remote/session-info.ts'
import { numberOf, type Sql, textOf } from '../session/sql.ts'

/**
 * A session on the live list. `touchedAtMs` is when its row last changed; `isAsked`: it was asked whether that still
 * holds.
 */
export type StoredRow = { row: RemoteSessionInfo; touchedAtMs: number; isAsked: boolean }

export const loadRows = (sql: Sql): StoredRow[] =>
  sql.rows('SELECT body, touched_at, is_asked FROM live_rows').map((row) => ({
    row: JSON.parse(textOf(row, 'body')),
    touchedAtMs: numberOf(row, 'touched_at'),
    isAsked: numberOf(row, 'is_asked') === 1,
  }))

export function saveRow(sql: Sql, { row, touchedAtMs, isAsked }: StoredRow): void {
  sql.rows(
    `INSERT INTO live_rows (session_id, epoch, body, touched_at, is_asked) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (session_id) DO UPDATE SET epoch = excluded.epoch, body = excluded.body,
       touched_at = excluded.touched_at, is_asked = excluded.is_asked`,
    row.session_id,
    row.registration_epoch,
    JSON.stringify(row),
    touchedAtMs,
    isAsked ? 1 : 0,
  )
}

export function dropRow(sql: Sql, sessionId: string): void {
  sql.rows('DELETE FROM live_rows WHERE session_id = ?', sessionId)
}

/**
 * Registrations that the gateway has ended and whose session has not heard of it yet. Until then a late row of one
 * must not come back (D03).
 */
export type Delisting = { sessionId: string; epoch: number }

export const loadDelistings = (sql: Sql): Delisting[] =>
  sql.rows('SELECT session_id, epoch FROM delistings').map((row) => ({
    sessionId: textOf(row, 'session_id'),
    epoch: numberOf(row, 'epoch'),
  }))

export function saveDelisting(sql: Sql, { sessionId, epoch }: Delisting): void {
  sql.rows(
    `INSERT INTO delistings (session_id, epoch) VALUES (?, ?)
     ON CONFLICT (session_id) DO UPDATE SET epoch = excluded.epoch`,
    sessionId,
    epoch,
  )
}

export function dropDelisting(sql: Sql, { sessionId, epoch }: Delisting): void {
  sql.rows('DELETE FROM delistings WHERE session_id = ? AND epoch <= ?', sessionId, epoch)
}
