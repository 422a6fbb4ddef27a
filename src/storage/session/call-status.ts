import { endingOf } from '../../core/run/supersede.ts'
import type { EndedOutcome } from '../../core/run/writes.ts'
import type { ApprovalDecision } from '../../protocol/execution/continue.ts'
import type { ToolCallStatus } from '../../protocol/execution/trace.ts'
import { optionalText, type Sql, textOf } from './sql.ts'

/** How a call stands: what ended the wait for it, and what the user decided about it, where that was so (U22). */
export type CallStanding = { status: ToolCallStatus; outcome?: EndedOutcome; decision?: ApprovalDecision }

/** How these calls stand, by id; one that the session never had is not among them. */
export function callStandings(sql: Sql, callIds: readonly string[]): Map<string, CallStanding> {
  const named = JSON.stringify(callIds)
  const decisions = new Map(
    sql
      .rows(
        `SELECT target_id, decision FROM approvals
         WHERE target_type = 'tool_call' AND target_id IN (SELECT value FROM json_each(?))`,
        named,
      )
      .map((row) => [textOf(row, 'target_id'), textOf(row, 'decision') as ApprovalDecision]),
  )
  const calls = sql.rows(
    `SELECT id, status, CASE WHEN is_error = 1 THEN result END AS error
     FROM tool_calls WHERE id IN (SELECT value FROM json_each(?))`,
    named,
  )
  return new Map(
    calls.map((row) => {
      const id = textOf(row, 'id')
      const outcome = endingOf(optionalText(row, 'error') ?? '')
      const decision = decisions.get(id)
      return [
        id,
        {
          status: textOf(row, 'status') as ToolCallStatus,
          ...(outcome === null ? {} : { outcome }),
          ...(decision === undefined ? {} : { decision }),
        },
      ]
    }),
  )
}
