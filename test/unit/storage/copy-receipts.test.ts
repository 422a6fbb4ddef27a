import { expect, test } from 'vitest'
import { newestReceiptSeq, receiptsToCopy } from '../../../src/storage/session/copy-receipts.ts'
import { migrateSession } from '../../../src/storage/session/migrations.ts'
import { type StoredReceipt, saveReceipt } from '../../../src/storage/session/receipts.ts'
import { makeNodeSql } from '../../support/node/node-sql.ts'

const receipt = (requestId: string, fields: Partial<StoredReceipt> = {}): StoredReceipt => ({
  deviceId: 'd1',
  epoch: 3,
  requestId,
  digest: 'x',
  receipt: 'applied',
  result: { type: 'turn_cancelled', turn_id: 'turn:1' },
  ...fields,
})

test('[D26] of a receipt D1 gets ids and a code: the type of its result, or the code of its error, and no words', () => {
  const sql = makeNodeSql()
  migrateSession(sql)
  expect(newestReceiptSeq(sql)).toBe(0)
  saveReceipt(sql, receipt('r1'), 7)
  const result = { type: 'error', code: 'busy', message: 'words' } as const
  saveReceipt(sql, receipt('r2', { receipt: 'rejected', result }), 8)
  const copied = receiptsToCopy(sql, 1, 10)
  expect(copied).toEqual([
    {
      seq: 1,
      deviceId: 'd1',
      requestId: 'r1',
      epoch: 3,
      receipt: 'applied',
      code: 'turn_cancelled',
      createdAtMs: 7,
    },
    { seq: 2, deviceId: 'd1', requestId: 'r2', epoch: 3, receipt: 'rejected', code: 'busy', createdAtMs: 8 },
  ])
  expect(newestReceiptSeq(sql)).toBe(2)
  expect(receiptsToCopy(sql, 1, 1)).toEqual(copied.slice(0, 1))
  expect(receiptsToCopy(sql, 2, 10)).toEqual(copied.slice(1))
})
