import type { RemoteOperation } from '../../protocol/remote/operations.ts'
import type { OutrightResult } from '../../protocol/remote/results.ts'
import { numberOf, optionalText, type Sql, textOf } from '../session/sql.ts'

/** A host-wide mutation of a device. Requests of one device say nothing to another (RF 28). */
export type HostRequest = {
  deviceId: string
  requestId: string
  /** SHA-256 of what is asked: tells a repeat from another request. */
  digest: string
  operation: RemoteOperation
}

/** What became of it. `received`: it was begun, and nothing is known of its end. */
export type HostReceipt = HostRequest &
  ({ receipt: 'applied' | 'rejected'; result: OutrightResult } | { receipt: 'received' }) & {
    /** Later requests of any device have a greater one. */
    seq: number
  }

/** Far more than devices repeat or ask for; the oldest go. */
export const MAX_HOST_RECEIPTS = 16_384

export function loadHostReceipt(sql: Sql, deviceId: string, requestId: string): HostReceipt | null {
  const row = sql.rows(
    'SELECT * FROM host_receipts WHERE device_id = ? AND request_id = ?',
    deviceId,
    requestId,
  )[0]
  if (!row) return null
  const request = {
    deviceId,
    requestId,
    digest: textOf(row, 'digest'),
    operation: JSON.parse(textOf(row, 'operation')),
    seq: numberOf(row, 'seq'),
  }
  const result = optionalText(row, 'result')
  if (result === null) return { ...request, receipt: 'received' }
  const receipt = textOf(row, 'receipt') === 'applied' ? 'applied' : 'rejected'
  return { ...request, receipt, result: JSON.parse(result) }
}

/** Notes that a request is there, before anything is done about it. */
export function saveReceived(sql: Sql, request: HostRequest, nowMs: number): void {
  sql.transaction(() => {
    sql.rows(
      `INSERT INTO host_receipts (device_id, request_id, digest, operation, receipt, created_at)
       VALUES (?, ?, ?, ?, 'received', ?)`,
      request.deviceId,
      request.requestId,
      request.digest,
      JSON.stringify(request.operation),
      nowMs,
    )
    sql.rows(
      'DELETE FROM host_receipts WHERE seq <= (SELECT max(seq) FROM host_receipts) - ?',
      MAX_HOST_RECEIPTS,
    )
  })
}

/** Notes what became of a request that was received. */
export function settleHostReceipt(
  sql: Sql,
  { deviceId, requestId }: Pick<HostRequest, 'deviceId' | 'requestId'>,
  outcome: { receipt: 'applied' | 'rejected'; result: OutrightResult },
): void {
  sql.rows(
    'UPDATE host_receipts SET receipt = ?, result = ? WHERE device_id = ? AND request_id = ?',
    outcome.receipt,
    JSON.stringify(outcome.result),
    deviceId,
    requestId,
  )
}

/** Forgets a request, as if it had not come. */
export function dropHostReceipt(
  sql: Sql,
  { deviceId, requestId }: Pick<HostRequest, 'deviceId' | 'requestId'>,
): void {
  sql.rows('DELETE FROM host_receipts WHERE device_id = ? AND request_id = ?', deviceId, requestId)
}

/** Whether another mutation came after this one. */
export const hasNewerReceipt = (sql: Sql, seq: number): boolean =>
  sql.rows('SELECT 1 FROM host_receipts WHERE seq > ? LIMIT 1', seq).length > 0
