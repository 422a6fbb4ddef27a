import type { ApprovalDecision } from '../../protocol/execution/continue.ts'
import type { PlanStatus } from '../../protocol/execution/export.ts'
import type { StoredFact } from './memories.ts'
import { numberOf, optionalText, type Sql, textOf } from './sql.ts'
import { loadText } from './texts.ts'

/** Rows that nothing but an export reads whole. Each list is walked by id, one page at a time. */

/** Approvals are short. */
const APPROVALS_PER_PAGE = 200

export type StoredApproval = {
  id: string
  targetType: string
  targetId: string
  decision: ApprovalDecision
  /** Null in rows of older releases. */
  outcome: string | null
  reason: string | null
  createdAtMs: number
}

/** Every decision, in the order in which they were made. */
export function* eachApproval(sql: Sql): Generator<StoredApproval> {
  for (let after = ''; ; ) {
    const rows = sql.rows(
      'SELECT * FROM approvals WHERE id > ? ORDER BY id LIMIT ?',
      after,
      APPROVALS_PER_PAGE,
    )
    for (const row of rows) {
      after = textOf(row, 'id')
      yield {
        id: after,
        targetType: textOf(row, 'target_type'),
        targetId: textOf(row, 'target_id'),
        decision: textOf(row, 'decision') as ApprovalDecision,
        outcome: optionalText(row, 'outcome'),
        reason: optionalText(row, 'reason'),
        createdAtMs: numberOf(row, 'created_at'),
      }
    }
    if (rows.length < APPROVALS_PER_PAGE) return
  }
}

export type StoredPlan = {
  id: string
  version: number
  status: PlanStatus
  content: string
  createdAtMs: number
  updatedAtMs: number
}

/** Every plan, the oldest first; a plan may be long, so one at a time. */
export function* eachPlan(sql: Sql): Generator<StoredPlan> {
  for (let after = ''; ; ) {
    const row = sql.rows('SELECT * FROM plans WHERE id > ? ORDER BY id LIMIT 1', after)[0]
    if (!row) return
    after = textOf(row, 'id')
    yield {
      id: after,
      version: numberOf(row, 'version'),
      status: textOf(row, 'status') as PlanStatus,
      content: loadText(sql, textOf(row, 'content')),
      createdAtMs: numberOf(row, 'created_at'),
      updatedAtMs: numberOf(row, 'updated_at'),
    }
  }
}

/** Every fact of the session; there are few, and each is a line or two (EC 16). */
export function* eachFact(sql: Sql): Generator<StoredFact> {
  for (const row of sql.rows('SELECT * FROM memories ORDER BY id')) {
    yield {
      id: textOf(row, 'id'),
      key: optionalText(row, 'key'),
      content: textOf(row, 'content'),
      localOnly: numberOf(row, 'local_only') === 1,
      createdAtMs: numberOf(row, 'created_at'),
      updatedAtMs: numberOf(row, 'updated_at'),
    }
  }
}
