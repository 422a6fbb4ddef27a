import { beforeEach, describe, expect, test, vi } from 'vitest'
import { applied, type HostOutcome, rejected } from '../../../src/gateway/host/outcome.ts'
import { HostReceipts } from '../../../src/gateway/host/receipts.ts'
import { refusal } from '../../../src/gateway/refusal.ts'
import type { RemoteOperation } from '../../../src/protocol/remote/operations.ts'
import { loadHostReceipt, MAX_HOST_RECEIPTS } from '../../../src/storage/gateway/host-receipts.ts'
import { migrateGateway } from '../../../src/storage/gateway/migrations.ts'
import type { Sql } from '../../../src/storage/session/sql.ts'
import { makeNodeSql } from '../../support/node/node-sql.ts'

const PIN: RemoteOperation = { type: 'pin_thread', session_id: 's1' }
const UNPIN: RemoteOperation = { type: 'unpin_thread', session_id: 's1' }
const PINNED = applied({ type: 'thread_pinned', session_id: 's1', pinned: true })
const UNDECIDED: HostOutcome = { receipt: 'undecided', result: refusal('owner_unavailable', 'silent') }

let sql: Sql
const work = vi.fn<(operation: RemoteOperation) => Promise<HostOutcome>>()
const kept: Promise<unknown>[] = []
/** The object as it is after a start: what was in memory is gone. */
const start = () =>
  new HostReceipts({ sql, work, keepAlive: (promise) => void kept.push(promise), now: () => 7 })
let receipts: HostReceipts
const request = (requestId: string, operation: RemoteOperation = PIN) => ({
  requestId,
  sessionId: null,
  registrationEpoch: null,
  operation,
})
const serve = (requestId: string, operation: RemoteOperation = PIN, device = 'd1') =>
  receipts.serve(device, request(requestId, operation))

beforeEach(() => {
  sql = makeNodeSql()
  migrateGateway(sql)
  work.mockReset().mockResolvedValue(PINNED)
  kept.length = 0
  receipts = start()
})

describe('a request that was decided', () => {
  test('[U14] is answered again with what it came to and done once, also by an object that started anew', async () => {
    const first = await serve('r1')
    expect(first).toEqual({ receipt: 'applied', result: PINNED.result })
    expect(await serve('r1')).toEqual(first)
    receipts = start()
    expect(await serve('r1')).toEqual(first)
    expect(receipts.status('d1', 'r1')).toEqual(first)
    expect(work).toHaveBeenCalledTimes(1)
  })

  test('[RF 28] stays refused when it was refused: "a new try needs a new ID"', async () => {
    work.mockResolvedValueOnce(rejected('invalid_request', 'there is no such session'))
    const first = await serve('r1')
    expect(first).toMatchObject({ receipt: 'rejected', result: { code: 'invalid_request' } })
    expect(await serve('r1')).toEqual(first)
    expect((await serve('r2')).receipt).toBe('applied')
  })

  test('[RF 28] with other content is request_conflict, and the first answer stays', async () => {
    await serve('r1')
    expect(await serve('r1', UNPIN)).toMatchObject({
      receipt: 'rejected',
      result: { code: 'request_conflict' },
    })
    expect(receipts.status('d1', 'r1')?.receipt).toBe('applied')
    expect(work).toHaveBeenCalledTimes(1)
  })

  test('[RF 28] of one device says nothing to another', async () => {
    await serve('r1')
    expect(receipts.status('d2', 'r1')).toBeNull()
    await serve('r1', UNPIN, 'd2')
    expect(work).toHaveBeenCalledTimes(2)
  })
})

describe('a request that is being decided', () => {
  test('[RF 28] is joined by its repeats, and the fifth of them all is rate_limited', async () => {
    const { promise, resolve } = Promise.withResolvers<HostOutcome>()
    work.mockReturnValueOnce(promise)
    const asked = Array.from({ length: 5 }, () => serve('r1'))
    expect(await Promise.race(asked)).toMatchObject({ receipt: 'rejected', result: { code: 'rate_limited' } })
    expect(receipts.status('d1', 'r1')).toEqual({ receipt: 'received' })
    resolve(PINNED)
    const answers = (await Promise.all(asked)).map(({ receipt }) => receipt)
    expect(answers.sort()).toEqual([...Array(4).fill('applied'), 'rejected'])
    expect(work).toHaveBeenCalledTimes(1)
  })

  test('[RF 24] is answered within 15 s as unknown, and has its result once that is known', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const { promise, resolve } = Promise.withResolvers<HostOutcome>()
      work.mockReturnValueOnce(promise)
      const answer = serve('r1')
      await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1))
      await vi.advanceTimersByTimeAsync(15_000)
      expect(await answer).toMatchObject({ receipt: 'unknown', result: { code: 'owner_unavailable' } })
      expect(receipts.status('d1', 'r1')).toEqual({ receipt: 'received' })
      resolve(PINNED)
      await Promise.all(kept)
      expect(await serve('r1')).toEqual({ receipt: 'applied', result: PINNED.result })
      expect(work).toHaveBeenCalledTimes(1)
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('a request that was left without an end', () => {
  test('[U15] by a fault is carried out when it is sent again', async () => {
    work.mockResolvedValueOnce(UNDECIDED)
    expect(await serve('r1')).toMatchObject({ receipt: 'unknown', result: { code: 'owner_unavailable' } })
    expect(await serve('r1')).toMatchObject({ receipt: 'applied' })
  })

  test('[U15] is carried out when its status is asked for, and the next answer tells', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    work.mockRejectedValueOnce(new Error('a fault of ours'))
    expect(await serve('r1')).toMatchObject({ receipt: 'unknown', result: { code: 'internal' } })
    receipts = start()
    expect(receipts.status('d1', 'r1')).toEqual({ receipt: 'received' })
    await Promise.all(kept)
    expect(receipts.status('d1', 'r1')).toEqual({ receipt: 'applied', result: PINNED.result })
    expect(work).toHaveBeenLastCalledWith(PIN)
  })

  test('is not carried out behind what was asked for later: it stays unknown', async () => {
    work.mockResolvedValueOnce(UNDECIDED)
    await serve('r1')
    await serve('r2', UNPIN)
    expect(receipts.status('d1', 'r1')).toBeNull()
    expect(work).toHaveBeenCalledTimes(2)
  })

  test('[U03] is stored before anything is done', async () => {
    work.mockImplementationOnce(async () => {
      expect(loadHostReceipt(sql, 'd1', 'r1')).toMatchObject({ receipt: 'received', operation: PIN })
      return PINNED
    })
    expect((await serve('r1')).receipt).toBe('applied')
  })
})

test('receipts are bounded by their number, and the oldest go', async () => {
  await serve('r1')
  sql.rows('UPDATE host_receipts SET seq = -?', MAX_HOST_RECEIPTS)
  sql.rows(
    `INSERT INTO host_receipts (seq, device_id, request_id, digest, operation, receipt, created_at)
     VALUES (1, 'd1', 'r2', '', '{}', 'received', 1)`,
  )
  await serve('r3')
  expect(receipts.status('d1', 'r1')).toBeNull()
  expect(receipts.status('d1', 'r3')?.receipt).toBe('applied')
  expect(loadHostReceipt(sql, 'd1', 'r2')).not.toBeNull()
})
