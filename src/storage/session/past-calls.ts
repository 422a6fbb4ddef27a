import { parsePathArguments, type TranscriptCall } from '../../core/transcript.ts'
import { numberOf, optionalText, type Sql, type SqlRow, textOf } from './sql.ts'
import { loadText } from './texts.ts'

/** Rows in memory at once: the arguments of one may take up to 256 KiB in place. */
const CALLS_PER_READ = 16

/**
 * The calls of the messages from `fromSeq` on and before `beforeSeq`, in order, for the paths that they name: an empty
 * result stands for whatever they gave, and long contents are not among the arguments.
 */
export function* eachPastCall(sql: Sql, fromSeq: number, beforeSeq: number): Generator<TranscriptCall, void> {
  let after = { seq: fromSeq, ordinal: -1 }
  for (;;) {
    const rows = sql.rows(
      `SELECT message_seq, ordinal, id, name, arguments, is_error, diff_status, status FROM tool_calls
       WHERE (message_seq, ordinal) > (?, ?) AND message_seq < ? ORDER BY message_seq, ordinal LIMIT ?`,
      after.seq,
      after.ordinal,
      beforeSeq,
      CALLS_PER_READ,
    )
    for (const row of rows) yield toPastCall(sql, row)
    const last = rows.at(-1)
    if (last === undefined || rows.length < CALLS_PER_READ) return
    after = { seq: numberOf(last, 'message_seq'), ordinal: numberOf(last, 'ordinal') }
  }
}

const toPastCall = (sql: Sql, row: SqlRow): TranscriptCall => ({
  id: textOf(row, 'id'),
  name: textOf(row, 'name'),
  arguments: parsePathArguments(loadText(sql, textOf(row, 'arguments'))),
  ...(textOf(row, 'status') === 'pending' ? {} : { result: '' }),
  isError: numberOf(row, 'is_error') === 1,
  changesFiles: optionalText(row, 'diff_status') !== null,
})
