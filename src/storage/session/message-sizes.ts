import type { TranscriptMessage } from '../../core/transcript.ts'
import { callsRef, messageRef, resultRef } from '../../protocol/execution/content-refs.ts'
import { sealedWeightSql } from './sealed-contents.ts'
import { numberOf, type Sql, type SqlRow, textOf } from './sql.ts'
import { textBytesSql } from './texts.ts'

/**
 * What a message weighs, in UTF-8 bytes: known before any of its texts is read. In a sealed session that is what its texts
 * take in a request; what was not sealed yet weighs nothing.
 */
export type MessageSize = {
  seq: number
  runId: string
  role: TranscriptMessage['role']
  textBytes: number
  /** Its calls: arguments, results and opaque fields; sealed, also what its prompt held. */
  callBytes: number
}

const CLEAR_SIZES = `SELECT seq, run_id, role, ${textBytesSql('content')} AS text_bytes,
    (SELECT coalesce(sum(${['arguments', 'opaque', 'result'].map(textBytesSql).join(' + ')}), 0)
       FROM tool_calls WHERE message_seq = messages.seq) AS call_bytes
  FROM messages`

const sealedSql = (ref: string, bytesSql: string = sealedWeightSql): string =>
  `coalesce((SELECT ${bytesSql} FROM sealed_contents WHERE ref = ${ref}), 0)`

const sealedSizesSql = (
  bytesSql: string,
): string => `SELECT seq, run_id, role, ${sealedSql(`'${messageRef('')}' || messages.id`, bytesSql)} AS text_bytes,
    ${sealedSql(`'${callsRef('')}' || messages.id`, bytesSql)} +
    (SELECT coalesce(sum(${sealedSql(`'${resultRef('')}' || tool_calls.id`, bytesSql)}), 0)
       FROM tool_calls WHERE message_seq = messages.seq) AS call_bytes
  FROM messages`

/** What was sealed weighs what it takes to be opened again. */
const SEALED_SIZES = sealedSizesSql(sealedWeightSql)

/** As envelopes: an empty text has one as well. */
const ENVELOPE_SIZES = sealedSizesSql(textBytesSql('envelope'))

const sizesSql = (sealed: boolean): string => (sealed ? SEALED_SIZES : CLEAR_SIZES)

export const messageBytes = ({ textBytes, callBytes }: MessageSize): number => textBytes + callBytes

/**
 * At most `limit` messages from `fromSeq` on, oldest first, as their rows weigh where they are copied to: those of a sealed
 * session are envelopes there.
 */
export const sizesFrom = (sql: Sql, fromSeq: number, limit: number, sealed = false): MessageSize[] =>
  sql
    .rows(`${sealed ? ENVELOPE_SIZES : CLEAR_SIZES} WHERE seq >= ? ORDER BY seq LIMIT ?`, fromSeq, limit)
    .map(toSize)

/** At most `limit` messages up to `toSeq`, newest first. */
export const sizesBackFrom = (sql: Sql, toSeq: number, limit: number, sealed = false): MessageSize[] =>
  sql.rows(`${sizesSql(sealed)} WHERE seq <= ? ORDER BY seq DESC LIMIT ?`, toSeq, limit).map(toSize)

/** What the user said from `fromSeq` on and before `beforeSeq`, oldest first. */
export const wordSizes = (sql: Sql, fromSeq: number, beforeSeq: number, sealed = false): MessageSize[] =>
  sql
    .rows(`${sizesSql(sealed)} WHERE seq >= ? AND seq < ? AND role = 'user' ORDER BY seq`, fromSeq, beforeSeq)
    .map(toSize)

/** Where the run begins whose message stands before `beforeSeq`: the messages of a run stand together. */
export function runStart(sql: Sql, runId: string, beforeSeq: number): number {
  const row = sql.rows(
    'SELECT coalesce(max(seq), 0) AS seq FROM messages WHERE seq < ? AND run_id <> ?',
    beforeSeq,
    runId,
  )[0]
  return (row ? numberOf(row, 'seq') : 0) + 1
}

/**
 * Of a sealed session: how many answers stand from `fromSeq` on and before `beforeSeq`, and what the calls in them take to
 * be opened, in bytes.
 */
export function sealedAnswers(
  sql: Sql,
  fromSeq: number,
  beforeSeq: number,
): { count: number; bytes: number } {
  const row = sql.rows(
    `SELECT count(*) AS n, coalesce(sum(${sealedSql(`'${callsRef('')}' || messages.id`)}), 0) AS bytes
     FROM messages WHERE seq >= ? AND seq < ? AND role = 'assistant'`,
    fromSeq,
    beforeSeq,
  )[0]
  return row ? { count: numberOf(row, 'n'), bytes: numberOf(row, 'bytes') } : { count: 0, bytes: 0 }
}

const toSize = (row: SqlRow): MessageSize => ({
  seq: numberOf(row, 'seq'),
  runId: textOf(row, 'run_id'),
  role: textOf(row, 'role') === 'assistant' ? 'assistant' : 'user',
  textBytes: numberOf(row, 'text_bytes'),
  callBytes: numberOf(row, 'call_bytes'),
})
