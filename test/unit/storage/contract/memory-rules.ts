import { expect } from 'vitest'
import { MAX_FACTS_PER_SCOPE, type MemoryOp } from '../../../../src/core/memory.ts'
import { type Checkpoint, EMPTY_OUTBOX, loadCheckpoint } from '../../../../src/storage/session/checkpoint.ts'
import { commitStep } from '../../../../src/storage/session/commit.ts'
import {
  deleteFact,
  loadFacts,
  loadOwed,
  putFact,
  settleOwed,
} from '../../../../src/storage/session/memories.ts'
import { saveSession } from '../../../../src/storage/session/session-row.ts'
import type { Sql } from '../../../../src/storage/session/sql.ts'
import { makeSession, makeState } from './builders.ts'
import { NOW, ruleInto, type StorageRule } from './rules.ts'

export const MEMORY_RULES: StorageRule[] = []

const rule = ruleInto(MEMORY_RULES)

const record = (scope: 'user' | 'session', key: string, content: string, localOnly = false): MemoryOp => ({
  op: 'record',
  scope,
  key,
  content,
  localOnly,
})
const commit = (sql: Sql, before: Checkpoint, ops: MemoryOp[], nowMs = NOW): Checkpoint => {
  const writes = ops.map((op, n) => ({ w: 'memory' as const, id: `id-${nowMs}-${n}`, op }))
  const result = { state: makeState(), writes, events: [], effects: [] }
  return sql.transaction(() => commitStep(sql, before, result, { nowMs, runInput: null, sealedId: null }))
}

rule('[EC 16] a fact of the session has one row per key, and keeps its id and its age', (sql) => {
  saveSession(sql, makeSession())
  const first = commit(sql, loadCheckpoint(sql), [
    record('session', 'k', 'a'),
    record('session', 'l', 'b', true),
  ])
  expect(first.outbox).toEqual({ ...EMPTY_OUTBOX, memory: true })
  commit(sql, first, [record('session', 'k', 'c'), { op: 'forget', scope: 'session', key: 'l' }], NOW + 9)
  expect(loadFacts(sql)).toEqual([
    { scope: 'session', id: `id-${NOW}-0`, key: 'k', content: 'c', updatedAtMs: NOW + 9 },
  ])
  expect(sql.rows('SELECT created_at FROM memories')).toEqual([{ created_at: NOW }])
})

rule('[D25] a fact about the user is kept only until D1 has it', (sql) => {
  const after = commit(sql, loadCheckpoint(sql), [
    record('user', 'k', 'a'),
    { op: 'forget', scope: 'user', key: 'l' },
  ])
  expect(loadFacts(sql)).toEqual([])
  const owed = loadOwed(sql)
  expect(owed.map(({ change }) => change)).toEqual([
    {
      op: 'record',
      scope: 'user',
      id: `id-${NOW}-0`,
      key: 'k',
      content: 'a',
      localOnly: false,
      createdAtMs: NOW,
      atMs: NOW,
    },
    { op: 'forget', scope: 'user', key: 'l', atMs: NOW + 1 },
  ])
  expect(loadOwed(sql, 1)).toEqual(owed.slice(0, 1))
  expect(settleOwed(sql, owed.slice(0, 1))).toBe(true)
  commit(sql, after, [record('user', 'm', 'b')])
  expect(settleOwed(sql, owed)).toBe(true)
  expect(loadOwed(sql).map(({ change }) => change)).toMatchObject([{ key: 'm' }])
  expect(settleOwed(sql, loadOwed(sql))).toBe(false)
})

rule('[D26] each change of a fact is later than the one before, also where the clock goes back', (sql) => {
  const first = commit(sql, loadCheckpoint(sql), [record('user', 'a', '1'), record('user', 'a', '2')])
  settleOwed(sql, loadOwed(sql))
  commit(sql, first, [record('user', 'a', '3'), record('session', 'a', '4')], NOW - 5_000)
  expect(loadOwed(sql).map(({ change }) => change.atMs)).toEqual([NOW + 2, NOW + 3])
})

rule(
  '[D50] a client puts a fact under an id: new, changed, with another key, and private until it says otherwise',
  (sql) => {
    const fact = { id: 'f', key: 'k', content: 'a', localOnly: true }
    expect(putFact(sql, fact, NOW)).toEqual({ ...fact, createdAtMs: NOW, updatedAtMs: NOW })
    expect(putFact(sql, { id: 'f', key: null, content: 'b', localOnly: null }, NOW + 1)).toEqual({
      id: 'f',
      key: null,
      content: 'b',
      localOnly: true,
      createdAtMs: NOW,
      updatedAtMs: NOW + 1,
    })
    expect(putFact(sql, { ...fact, localOnly: false }, NOW + 2)).toMatchObject({ key: 'k', localOnly: false })
    expect(putFact(sql, { ...fact, id: 'g' }, NOW + 3)).toEqual({ kind: 'key_taken', memoryId: 'f' })
    expect(deleteFact(sql, 'f', NOW + 4)).toBe(true)
    expect(deleteFact(sql, 'f', NOW + 5)).toBe(false)
    expect(putFact(sql, { ...fact, id: 'g' }, NOW + 6)).toMatchObject({ id: 'g', createdAtMs: NOW + 6 })
  },
)

rule('[D27] a session takes no more facts than it can show to have, and changes the ones it has', (sql) => {
  for (let n = 0; n < MAX_FACTS_PER_SCOPE; n++)
    putFact(sql, { id: `f${n}`, key: null, content: 'x', localOnly: null }, NOW + n)
  const more = { id: 'more', key: null, content: 'x', localOnly: null }
  expect(putFact(sql, more, NOW + 900)).toEqual({ kind: 'full' })
  expect(putFact(sql, { ...more, id: 'f7' }, NOW + 901)).toMatchObject({ id: 'f7' })
})

rule('[D27] of a long fact a turn reads the beginning, whole characters of it', (sql) => {
  putFact(sql, { id: 'f', key: 'k', content: '🚂'.repeat(600), localOnly: null }, NOW)
  expect(loadFacts(sql)[0]?.content).toBe('🚂'.repeat(501))
})

rule('[D32] a checkpoint from before there was memory, or a live list, owes them nothing', (sql) => {
  const { memory: _, listing: __, ...outbox } = EMPTY_OUTBOX
  const counters = { message: 1, turn: 1, rev: 1, ringReserved: 0 }
  sql.rows(
    'INSERT INTO checkpoint (id, state, outbox, counters) VALUES (1, NULL, ?, ?)',
    JSON.stringify({ ...outbox, session: true }),
    JSON.stringify(counters),
  )
  expect(loadCheckpoint(sql)).toEqual({ state: null, outbox: { ...EMPTY_OUTBOX, session: true }, counters })
})
