import type { RunInput } from '../../core/turn-view.ts'
import { ExecuteRequest } from '../../protocol/execution/execute.ts'
import { type Sql, textOf } from './sql.ts'
import { loadText, storeText } from './texts.ts'

/** The input of the session's latest run, overwritten by each `execute` (EC 5.1). */
export function saveRunInput(sql: Sql, input: RunInput): void {
  const body = storeText(sql, 'run_input', JSON.stringify(input))
  sql.rows(
    'INSERT INTO run_input (id, body) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body',
    body,
  )
}

export function loadRunInput(sql: Sql): RunInput {
  const row = sql.rows('SELECT body FROM run_input')[0]
  if (!row) throw new Error('invariant broken: a run without its input')
  return ExecuteRequest.parse(JSON.parse(loadText(sql, textOf(row, 'body'))))
}
