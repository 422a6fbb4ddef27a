import { expect } from 'vitest'
import { ExecuteRequest } from '../../../../src/protocol/execution/execute.ts'
import { IDEMPOTENCY_TTL_MS } from '../../../../src/storage/limits.ts'
import {
  type Checkpoint,
  EMPTY_OUTBOX,
  loadCheckpoint,
  saveCheckpoint,
} from '../../../../src/storage/session/checkpoint.ts'
import { loadKey, saveKey } from '../../../../src/storage/session/idempotency.ts'
import { loadRunInput, saveRunInput } from '../../../../src/storage/session/run-input.ts'
import { loadSession, saveSession } from '../../../../src/storage/session/session-row.ts'
import { executeRequest } from '../../../support/node/run-request.ts'
import { makeSession, makeState } from './builders.ts'
import { count, NOW, ruleInto, type StorageRule } from './rules.ts'

export const ROW_RULES: StorageRule[] = []

const rule = ruleInto(ROW_RULES)

rule('[EC 5.1] a session that never had a run has no state, and owes nothing', (sql) => {
  const fresh = loadCheckpoint(sql)
  expect(fresh).toEqual({
    state: null,
    outbox: EMPTY_OUTBOX,
    counters: { message: 0, turn: 0, rev: 0, ringReserved: 0 },
  })
  fresh.counters.message = 7
  expect(loadCheckpoint(sql).counters.message).toBe(0)
})

rule('[EC 5.1] the newest checkpoint stands alone', (sql) => {
  const checkpoint = (rev: number): Checkpoint => ({
    state: makeState({ turn: rev }),
    outbox: { ...EMPTY_OUTBOX, session: true, failures: 2, retryAtMs: NOW },
    counters: { message: 1, turn: 2, rev, ringReserved: 1024 },
  })
  saveCheckpoint(sql, checkpoint(1))
  saveCheckpoint(sql, checkpoint(2))
  expect(loadCheckpoint(sql)).toEqual(checkpoint(2))
  expect(count(sql, 'checkpoint')).toBe(1)
})

rule('[D32] a run state of another version is refused, not guessed at', (sql) => {
  saveCheckpoint(sql, { ...loadCheckpoint(sql), state: { ...makeState(), v: 2 as 1 } })
  expect(() => loadCheckpoint(sql)).toThrow(/version 2/)
})

rule('[EC 22] a session’s owner, key and birth never change, the rest does', (sql) => {
  expect(loadSession(sql)).toBeNull()
  saveSession(sql, makeSession())
  const changed = { title: null, scope: '/p', updatedAtMs: NOW + 1, archivedAtMs: NOW + 1, rev: 4 }
  saveSession(sql, makeSession({ ...changed, userId: 'another', keyId: 'kf', createdAtMs: 0 }))
  expect(loadSession(sql)).toEqual(makeSession(changed))
})

rule('[EC 5.1] a run’s input is the newest, whole and parsed', (sql) => {
  expect(() => loadRunInput(sql)).toThrow(/without its input/)
  saveRunInput(sql, executeRequest('first'))
  const large = ExecuteRequest.parse({
    ...executeRequest('second'),
    attachments: {
      files: [{ path: 'a', content: '🚂'.repeat(100_000), content_hash: 'sha256:0', required: true }],
      instructions: [],
    },
  })
  saveRunInput(sql, large)
  expect(loadRunInput(sql)).toEqual(large)
})

rule('[D20] a key is known for 24 hours, then it is free again', (sql) => {
  saveKey(sql, 'k', { digest: 'd', result: { turnId: 't1' } }, NOW)
  const known = { digest: 'd', result: { turnId: 't1' } }
  expect(loadKey(sql, 'k', NOW + IDEMPOTENCY_TTL_MS - 1)).toEqual(known)
  expect(loadKey(sql, 'k', NOW + IDEMPOTENCY_TTL_MS)).toBeNull()
  expect(loadKey(sql, 'other', NOW)).toBeNull()
})

rule('[D20] a key may stand for an outcome that needed no turn', (sql) => {
  const outcome = { status: 'idle', data: { trace_id: 'trace:x' } } as const
  saveKey(sql, 'k', { digest: 'd', result: { outcome } }, NOW)
  expect(loadKey(sql, 'k', NOW)).toEqual({ digest: 'd', result: { outcome } })
})

rule('[D20] keys whose time is over are forgotten when another is stored', (sql) => {
  saveKey(sql, 'old', { digest: 'd', result: { turnId: 't1' } }, NOW)
  saveKey(sql, 'young', { digest: 'd', result: { turnId: 't2' } }, NOW + 1)
  saveKey(sql, 'new', { digest: 'd', result: { turnId: 't3' } }, NOW + IDEMPOTENCY_TTL_MS)
  expect(sql.rows('SELECT key FROM idempotency ORDER BY created_at')).toEqual([
    { key: 'young' },
    { key: 'new' },
  ])
})
