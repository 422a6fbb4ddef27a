import type { OutrightResult } from '../../protocol/remote/results.ts'
import { numberOf, type Sql, type SqlRow, textOf } from './sql.ts'

/** Whose request it is: receipts of one device say nothing to another (RF 28). */
export type ReceiptKey = { deviceId: string; epoch: number; requestId: string }

/** What became of a mutation of a device (D29). It is kept for the life of the session. */
export type StoredReceipt = ReceiptKey & {
  /** SHA-256 of the request's content: tells a repeat from another request. */
  digest: string
  receipt: 'applied' | 'rejected'
  result: OutrightResult
}

export function loadReceipt(sql: Sql, { deviceId, epoch, requestId }: ReceiptKey): StoredReceipt | null {
  const row = sql.rows(
    'SELECT * FROM receipts WHERE device_id = ? AND epoch = ? AND request_id = ?',
    deviceId,
    epoch,
    requestId,
  )[0]
  return row ? toReceipt(row) : null
}

/** Of all registrations the newest one that knows the request; null when none does. */
export function findReceipt(sql: Sql, deviceId: string, requestId: string): StoredReceipt | null {
  const row = sql.rows(
    'SELECT * FROM receipts WHERE device_id = ? AND request_id = ? ORDER BY epoch DESC LIMIT 1',
    deviceId,
    requestId,
  )[0]
  return row ? toReceipt(row) : null
}

/** Notes what became of a request: in the transaction of the change, or of nothing (D29). */
export function saveReceipt(sql: Sql, receipt: StoredReceipt, nowMs: number): void {
  sql.rows(
    `INSERT INTO receipts (device_id, epoch, request_id, digest, receipt, result, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
    receipt.deviceId,
    receipt.epoch,
    receipt.requestId,
    receipt.digest,
    receipt.receipt,
    JSON.stringify(receipt.result),
    nowMs,
  )
}

const toReceipt = (row: SqlRow): StoredReceipt => ({
  deviceId: textOf(row, 'device_id'),
  epoch: numberOf(row, 'epoch'),
  requestId: textOf(row, 'request_id'),
  digest: textOf(row, 'digest'),
  receipt: textOf(row, 'receipt') === 'applied' ? 'applied' : 'rejected',
  result: JSON.parse(textOf(row, 'result')),
})

/** How far back it is looked for what became of something. */
const MAX_SEARCHED = 1000

/** Some device was told exactly this, and not long ago: it is what became of what the result names (U21). */
export const findApplied = (sql: Sql, result: OutrightResult): boolean =>
  sql.rows(
    `SELECT 1 FROM (SELECT receipt, result FROM receipts ORDER BY seq DESC LIMIT ${MAX_SEARCHED})
     WHERE receipt = 'applied' AND result = ? LIMIT 1`,
    JSON.stringify(result),
  ).length > 0
