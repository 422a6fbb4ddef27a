import {
  type ClearInput,
  clearInput,
  isBundle,
  joinInput,
  withoutAttachments,
} from '../../core/run/contents.ts'
import type { RunInput } from '../../core/turn-view.ts'
import { inputRef } from '../../protocol/execution/content-refs.ts'
import { ExecuteRequest } from '../../protocol/execution/execute.ts'
import { dropSealed } from './sealed-contents.ts'
import { numberOf, type Sql, textOf } from './sql.ts'
import { loadText, storeText } from './texts.ts'

/** The input of the session's latest run, overwritten by each `execute` (EC 5.1). */
export function saveRunInput(sql: Sql, input: RunInput): void {
  saveBody(sql, JSON.stringify(input))
}

function saveBody(sql: Sql, text: string): void {
  const body = storeText(sql, 'run_input', text)
  sql.rows(
    `INSERT INTO run_input (id, body) VALUES (1, ?)
     ON CONFLICT (id) DO UPDATE SET body = excluded.body, stripped = 0`,
    body,
  )
}

export function loadRunInput(sql: Sql): RunInput {
  return ExecuteRequest.parse(JSON.parse(loadText(sql, textOf(inputRow(sql), 'body'))))
}

/** Of a sealed session what is clear; the bundle of the run before it goes with its envelope. */
export function saveClearInput(sql: Sql, sessionId: string, input: RunInput): void {
  dropSealed(sql, [inputRef(sessionId)])
  saveBody(sql, JSON.stringify(clearInput(input)))
}

/** From now on nothing of the bundle counts but the tools that the client declared. */
export function stripBundle(sql: Sql): void {
  sql.rows('UPDATE run_input SET stripped = 1')
}

export const loadClearInput = (sql: Sql): ClearInput =>
  JSON.parse(loadText(sql, textOf(inputRow(sql), 'body')))

/** The input of a sealed session with its bundle; null where nobody sealed that and nobody holds it. */
export function openRunInput(sql: Sql, bundle: string | null): RunInput {
  const input = ExecuteRequest.parse(joinInput(loadClearInput(sql), bundle))
  return numberOf(inputRow(sql), 'stripped') === 1 ? withoutAttachments(input) : input
}

/** The text is the bundle of an input, as far as its form tells. */
export const isRunInput = (sql: Sql, bundle: string): boolean =>
  isBundle(bundle) && ExecuteRequest.safeParse(joinInput(loadClearInput(sql), bundle)).success

function inputRow(sql: Sql) {
  const row = sql.rows('SELECT body, stripped FROM run_input')[0]
  if (!row) throw new Error('invariant broken: a run without its input')
  return row
}
