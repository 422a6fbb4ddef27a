import { type Sql, textOf } from './sql.ts'

/** Whether the newest turns, so many in a row, were all of this run, and all of them cut off by a crash. */
export function wereInterrupted(sql: Sql, runId: string, count: number): boolean {
  const rows = sql.rows('SELECT run_id, status FROM turns ORDER BY seq DESC LIMIT ?', count)
  return (
    rows.length === count &&
    rows.every((row) => textOf(row, 'run_id') === runId && textOf(row, 'status') === 'interrupted')
  )
}
