import type { ToolCallStatus } from '../../protocol/execution/trace.ts'
import { type Sql, textOf } from './sql.ts'

/** How these calls stand, by id; one that the session never had is not among them. */
export const callStatus = (sql: Sql, callIds: readonly string[]): Map<string, ToolCallStatus> =>
  new Map(
    sql
      .rows(
        'SELECT id, status FROM tool_calls WHERE id IN (SELECT value FROM json_each(?))',
        JSON.stringify(callIds),
      )
      .map((row) => [textOf(row, 'id'), textOf(row, 'status') as ToolCallStatus]),
  )
