import { type Checkpoint, loadCheckpoint } from './checkpoint.ts'
import { numberOf, type Sql, textOf } from './sql.ts'

/** A receipt for D1: ids and a code, none of its words (D26). */
export type CopiedReceipt = {
  seq: number
  deviceId: string
  requestId: string
  epoch: number
  receipt: 'applied' | 'rejected'
  /** The type of the result; of an error its code. */
  code: string
  createdAtMs: number
}

/** At most `limit` receipts from a sequence on, oldest first. */
export const receiptsToCopy = (sql: Sql, fromSeq: number, limit: number): CopiedReceipt[] =>
  sql
    .rows(
      `SELECT seq, device_id, request_id, epoch, receipt, created_at,
         coalesce(json_extract(result, '$.code'), json_extract(result, '$.type')) AS code
       FROM receipts WHERE seq >= ? ORDER BY seq LIMIT ?`,
      fromSeq,
      limit,
    )
    .map((row) => ({
      seq: numberOf(row, 'seq'),
      deviceId: textOf(row, 'device_id'),
      requestId: textOf(row, 'request_id'),
      epoch: numberOf(row, 'epoch'),
      receipt: textOf(row, 'receipt') === 'applied' ? 'applied' : 'rejected',
      code: textOf(row, 'code'),
      createdAtMs: numberOf(row, 'created_at'),
    }))

/** The sequence of the newest receipt; 0 before the first. */
export function newestReceiptSeq(sql: Sql): number {
  const row = sql.rows('SELECT coalesce(max(seq), 0) AS seq FROM receipts')[0]
  return row ? numberOf(row, 'seq') : 0
}

/** The checkpoint that owes D1 the receipt which is stored next, in the same transaction. */
export const owingReceipt = (sql: Sql, checkpoint: Checkpoint): Checkpoint => ({
  ...checkpoint,
  outbox: {
    ...checkpoint.outbox,
    receiptsFrom: checkpoint.outbox.receiptsFrom ?? newestReceiptSeq(sql) + 1,
  },
})

/** More than devices ask for while D1 is down for a day. */
const MAX_OWED = 1000

/** What D1 has not got, of a session that sends nothing else any more. */
export function owedReceipts(sql: Sql): CopiedReceipt[] {
  const { receiptsFrom } = loadCheckpoint(sql).outbox
  return receiptsFrom === null ? [] : receiptsToCopy(sql, receiptsFrom, MAX_OWED)
}
