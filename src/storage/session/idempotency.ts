import type { TurnResponse } from '../../protocol/execution/turn.ts'
import { IDEMPOTENCY_TTL_MS } from '../limits.ts'
import { optionalText, type Sql, textOf } from './sql.ts'

/** What a key stands for: the turn that it started, an outcome that needed none, or one that may not be kept (D20). */
export type KeyedOutcome = { turnId: string } | { outcome: TurnResponse } | 'not_kept'

export type KeyRecord = { digest: string; result: KeyedOutcome }

export function loadKey(sql: Sql, key: string, nowMs: number): KeyRecord | null {
  const row = sql.rows(
    'SELECT digest, turn_id, outcome FROM idempotency WHERE key = ? AND created_at > ?',
    key,
    nowMs - IDEMPOTENCY_TTL_MS,
  )[0]
  if (!row) return null
  const turnId = optionalText(row, 'turn_id')
  const outcome = optionalText(row, 'outcome')
  return {
    digest: textOf(row, 'digest'),
    result: turnId !== null ? { turnId } : outcome === null ? 'not_kept' : { outcome: JSON.parse(outcome) },
  }
}

/** Remembers a key, and forgets those whose time is over. */
export function saveKey(sql: Sql, key: string, { digest, result }: KeyRecord, nowMs: number): void {
  sql.rows('DELETE FROM idempotency WHERE created_at <= ?', nowMs - IDEMPOTENCY_TTL_MS)
  sql.rows(
    'INSERT OR REPLACE INTO idempotency (key, digest, turn_id, outcome, created_at) VALUES (?, ?, ?, ?, ?)',
    key,
    digest,
    result !== 'not_kept' && 'turnId' in result ? result.turnId : null,
    result !== 'not_kept' && 'outcome' in result ? JSON.stringify(result.outcome) : null,
    nowMs,
  )
}
