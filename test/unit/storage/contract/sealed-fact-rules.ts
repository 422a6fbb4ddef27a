import { expect } from 'vitest'
import type { MemoryChange } from '../../../../src/core/memory.ts'
import { factRef } from '../../../../src/protocol/execution/content-refs.ts'
import type { EncryptedPayload } from '../../../../src/protocol/execution/sealed.ts'
import {
  applyMemory,
  deleteFact,
  factSealed,
  loadOwed,
  loadSealedFacts,
} from '../../../../src/storage/session/memories.ts'
import { dropUnsealed, isSealed, saveSealed } from '../../../../src/storage/session/sealed-contents.ts'
import type { Sql } from '../../../../src/storage/session/sql.ts'
import { NOW, ruleInto, type StorageRule } from './rules.ts'

export const SEALED_FACT_RULES: StorageRule[] = []

const rule = ruleInto(SEALED_FACT_RULES)

const envelopeOf = (id: string): EncryptedPayload => ({
  version: 1,
  algorithm: 'xchacha20poly1305',
  key_id: 'kf_k',
  nonce: 'n',
  ciphertext: `fact ${id}`,
})

const record = (sql: Sql, id: string, atMs: number, more: { replaces?: string; localOnly?: boolean } = {}) =>
  applyMemory(
    sql,
    {
      w: 'memory',
      id,
      op: { op: 'record', scope: 'session', key: '', content: '', localOnly: false, sealed: true, ...more },
    },
    atMs,
  )
const forget = (sql: Sql, factId: string, atMs: number) =>
  applyMemory(
    sql,
    { w: 'memory', id: 'unused', op: { op: 'forget', scope: 'session', key: '', sealed: true, factId } },
    atMs,
  )
/** What a client does with a fact that is handed to it. */
function seal(sql: Sql, id: string, atMs: number): void {
  saveSealed(sql, factRef(id), envelopeOf(id))
  factSealed(sql, id, atMs)
}
const factIds = (sql: Sql) => loadSealedFacts(sql).map(({ id }) => id)
const owed = (sql: Sql): MemoryChange[] => loadOwed(sql).map(({ change }) => change)
const told = (sql: Sql) =>
  owed(sql).map((change) => [change.op, 'id' in change ? change.id : change.key, change.atMs])

rule('[EC 17] a fact of a sealed session is owed to D1 as its envelope, once it has one', (sql) => {
  record(sql, 'f1', NOW, { localOnly: true })
  expect(loadSealedFacts(sql)).toEqual([{ id: 'f1', localOnly: true, updatedAtMs: NOW, replaces: null }])
  expect(sql.rows('SELECT key, content FROM memories')).toEqual([{ key: null, content: '' }])
  expect(owed(sql)).toEqual([])
  seal(sql, 'f1', NOW + 1)
  expect(owed(sql)).toEqual([
    {
      op: 'record',
      scope: 'session',
      id: 'f1',
      key: null,
      content: JSON.stringify(envelopeOf('f1')),
      localOnly: true,
      createdAtMs: NOW,
      atMs: NOW + 1,
    },
  ])
  expect(loadSealedFacts(sql)).toMatchObject([{ id: 'f1', updatedAtMs: NOW + 1 }])
})

rule('[EC 17] a fact goes when the one that replaces it has its envelope, and not before', (sql) => {
  record(sql, 'f1', NOW)
  seal(sql, 'f1', NOW + 1)
  record(sql, 'f2', NOW + 2, { replaces: 'f1' })
  expect(loadSealedFacts(sql).map(({ id, replaces }) => [id, replaces])).toEqual([
    ['f1', null],
    ['f2', 'f1'],
  ])
  seal(sql, 'f2', NOW + 3)
  expect(loadSealedFacts(sql)).toEqual([{ id: 'f2', localOnly: false, updatedAtMs: NOW + 3, replaces: null }])
  expect([isSealed(sql, factRef('f1')), isSealed(sql, factRef('f2'))]).toEqual([false, true])
  expect(told(sql).slice(1)).toEqual([
    ['forget', 'f1', NOW + 3],
    ['record', 'f2', NOW + 3],
  ])
  // It is as old as what it replaced.
  expect(sql.rows('SELECT created_at FROM memories')).toEqual([{ created_at: NOW }])
})

for (const order of [
  ['f2', 'f3'],
  ['f3', 'f2'],
]) {
  rule(
    `[EC 17] of a fact that was recorded three times the last stays, sealed in the order ${order}`,
    (sql) => {
      record(sql, 'f1', NOW)
      seal(sql, 'f1', NOW + 1)
      record(sql, 'f2', NOW + 2, { replaces: 'f1' })
      record(sql, 'f3', NOW + 3, { replaces: 'f2' })
      for (const [n, id] of order.entries()) seal(sql, id, NOW + 4 + n)
      expect(factIds(sql)).toEqual(['f3'])
      expect(sql.rows('SELECT ref FROM sealed_contents')).toEqual([{ ref: factRef('f3') }])
      const last = new Map(told(sql).map(([op, id]) => [id, op]))
      expect(Object.fromEntries(last)).toEqual({ f1: 'forget', f2: 'forget', f3: 'record' })
    },
  )
}

rule('[EC 17] a fact that is lost leaves the one in place that it was to replace', (sql) => {
  record(sql, 'f1', NOW)
  seal(sql, 'f1', NOW + 1)
  record(sql, 'f2', NOW + 2, { replaces: 'f1' })
  record(sql, 'f3', NOW + 3, { replaces: 'f2' })
  dropUnsealed(sql, [factRef('f2'), factRef('f1')])
  expect(loadSealedFacts(sql).map(({ id, replaces }) => [id, replaces])).toEqual([
    ['f1', null],
    ['f3', 'f1'],
  ])
  seal(sql, 'f3', NOW + 4)
  expect(factIds(sql)).toEqual(['f3'])
})

for (const [who, drop] of Object.entries({
  'the model': forget,
  'the user': deleteFact,
})) {
  rule(
    `[EC 16] a fact that ${who} has forgotten is gone with its envelope and all that stands for it`,
    (sql) => {
      record(sql, 'f1', NOW)
      seal(sql, 'f1', NOW + 1)
      record(sql, 'f2', NOW + 2, { replaces: 'f1' })
      record(sql, 'f3', NOW + 3, { replaces: 'f2' })
      record(sql, 'other', NOW + 4)
      drop(sql, 'f2', NOW + 5)
      expect(factIds(sql)).toEqual(['other'])
      expect(isSealed(sql, factRef('f1'))).toBe(false)
      expect(told(sql).slice(1).sort()).toEqual(['f1', 'f2', 'f3'].map((id) => ['forget', id, NOW + 5]))
      // What was handed out to be sealed comes in all the same.
      seal(sql, 'f3', NOW + 6)
      expect(factIds(sql)).toEqual(['other'])
      expect(isSealed(sql, factRef('f3'))).toBe(false)
      expect(told(sql)).toHaveLength(4)
    },
  )
}

rule('[EC 17] a fact about the user is kept as in any session', (sql) => {
  const op = { op: 'record', scope: 'user', key: 'k', content: 'a', localOnly: false } as const
  applyMemory(sql, { w: 'memory', id: 'u1', op }, NOW)
  expect(factIds(sql)).toEqual([])
  expect(owed(sql)).toMatchObject([{ scope: 'user', key: 'k', content: 'a' }])
})
