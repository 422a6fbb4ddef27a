import type { QuestionOutcome } from '../../core/run/events.ts'
import type { SettledOutcome, Write } from '../../core/run/writes.ts'
import { optionalText, type Sql, textOf } from './sql.ts'

/** Keeps a decision, or what ended the wait for one. */
export function insertApproval(
  sql: Sql,
  { id, targetType, targetId, decision, outcome, reason }: Extract<Write, { w: 'approval' }>,
  nowMs: number,
): void {
  sql.rows(
    `INSERT INTO approvals (id, target_type, target_id, decision, reason, created_at, outcome)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
    id,
    targetType,
    targetId,
    decision,
    reason ?? null,
    nowMs,
    outcome,
  )
}

/**
 * What became of these approvals (U21), by id; one that is pending or unknown is not among them. A gate that an older
 * release settled stands under another id and without an outcome: it was always a decision then.
 */
export function settledApprovals(sql: Sql, approvalIds: readonly string[]): Map<string, SettledOutcome> {
  const named = JSON.stringify(approvalIds)
  const rows = sql.rows(
    `SELECT id, decision, outcome FROM approvals
     WHERE id IN (SELECT value FROM json_each(?)) AND target_type <> 'tool_call'
     UNION ALL
     SELECT target_id, decision, outcome FROM approvals
     WHERE outcome IS NULL AND target_type = 'gate' AND target_id IN (SELECT value FROM json_each(?))`,
    named,
    named,
  )
  return new Map(
    rows.map((row) => [
      textOf(row, 'id'),
      (optionalText(row, 'outcome') ?? textOf(row, 'decision')) as SettledOutcome,
    ]),
  )
}

/** Keeps what became of a batch of calls or of a question that no device decided (U21). */
export function insertSettled(sql: Sql, id: string, outcome: SettledOutcome | QuestionOutcome): void {
  sql.rows('INSERT OR IGNORE INTO settled (id, outcome) VALUES (?, ?)', id, outcome)
}

/** What became of it; null for what still waits, and for what a device decided: its receipt says that. */
export function settledOutcome(sql: Sql, id: string): SettledOutcome | QuestionOutcome | null {
  const row = sql.rows('SELECT outcome FROM settled WHERE id = ?', id)[0]
  return row ? (textOf(row, 'outcome') as SettledOutcome | QuestionOutcome) : null
}
