import {
  FACT_HEAD_CHARS,
  type FactRefusal,
  MAX_FACTS_PER_SCOPE,
  type MemoryChange,
  type MemoryFact,
} from '../../core/memory.ts'
import type { Write } from '../../core/run/writes.ts'
import { factRef } from '../../protocol/execution/content-refs.ts'
import type { MemoryRecord } from '../../protocol/execution/memory.ts'
import { toWireTime } from '../../protocol/time.ts'
import { dropSealed, loadSealed } from './sealed-contents.ts'
import { numberOf, optionalText, type Sql, type SqlRow, textOf } from './sql.ts'

/** A fact of the session, whole. The object is its authority (EC 16). */
export type StoredFact = {
  id: string
  key: string | null
  content: string
  localOnly: boolean
  createdAtMs: number
  updatedAtMs: number
}

/** What a client wants a fact to be; `localOnly: null` leaves that as it is. */
export type FactPatch = { id: string; key: string | null; content: string; localOnly: boolean | null }

/** The wire form of a fact of a session (D50). */
export const toRecord = (
  sessionId: string,
  { id, key, content, localOnly, createdAtMs, updatedAtMs }: StoredFact,
): MemoryRecord => ({
  id,
  scope: 'session',
  session_id: sessionId,
  ...(key === null ? {} : { key }),
  content,
  ...(localOnly ? { local_only: true } : {}),
  created_at: toWireTime(createdAtMs),
  updated_at: toWireTime(updatedAtMs),
})

const toFact = (row: SqlRow): StoredFact => ({
  id: textOf(row, 'id'),
  key: optionalText(row, 'key'),
  content: textOf(row, 'content'),
  localOnly: numberOf(row, 'local_only') === 1,
  createdAtMs: numberOf(row, 'created_at'),
  updatedAtMs: numberOf(row, 'updated_at'),
})

/** The session's facts as a turn sees them, in any order. */
export function loadFacts(sql: Sql): MemoryFact[] {
  const rows = sql.rows(
    'SELECT id, key, substr(content, 1, ?) AS content, local_only, created_at, updated_at FROM memories',
    FACT_HEAD_CHARS,
  )
  return rows.map(toFact).map(({ id, key, content, localOnly, updatedAtMs }) => ({
    scope: 'session',
    id,
    ...(key === null ? {} : { key }),
    content,
    ...(localOnly ? { localOnly: true as const } : {}),
    updatedAtMs,
  }))
}

const factById = (sql: Sql, id: string): StoredFact | null =>
  sql.rows('SELECT * FROM memories WHERE id = ?', id).map(toFact)[0] ?? null

const factByKey = (sql: Sql, key: string): StoredFact | null =>
  sql.rows('SELECT * FROM memories WHERE key = ?', key).map(toFact)[0] ?? null

function saveFact(sql: Sql, fact: StoredFact): void {
  sql.rows(
    `INSERT INTO memories (id, key, content, local_only, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET key = excluded.key, content = excluded.content,
       local_only = excluded.local_only, updated_at = excluded.updated_at`,
    fact.id,
    fact.key,
    fact.content,
    fact.localOnly ? 1 : 0,
    fact.createdAtMs,
    fact.updatedAtMs,
  )
  const { updatedAtMs: atMs, ...told } = fact
  owe(sql, { op: 'record', scope: 'session', ...told, atMs })
}

/** Forgets a fact; in a sealed session also what it replaces, and what would replace it. */
function dropFact(sql: Sql, id: string, atMs: number): void {
  const replacing = sql.rows(
    `WITH RECURSIVE later (id) AS (
       SELECT id FROM memories WHERE replaces = ? UNION SELECT m.id FROM memories m JOIN later ON m.replaces = later.id
     ) SELECT id FROM later`,
    id,
  )
  const earlier = replacedBy(sql, id)
  for (const gone of [...replacing.map((row) => textOf(row, 'id')), id, ...earlier])
    removeFact(sql, gone, atMs)
}

function removeFact(sql: Sql, id: string, atMs: number): void {
  sql.rows('DELETE FROM memories WHERE id = ?', id)
  dropSealed(sql, [factRef(id)])
  owe(sql, { op: 'forget', scope: 'session', id, atMs })
}

/** The facts in whose place this one was recorded; more than one where it was recorded again before it was sealed. */
const replacedBy = (sql: Sql, id: string): string[] =>
  sql
    .rows(
      `WITH RECURSIVE earlier (id) AS (
         SELECT replaces FROM memories WHERE id = ? AND replaces IS NOT NULL
         UNION SELECT m.replaces FROM memories m JOIN earlier ON m.id = earlier.id WHERE m.replaces IS NOT NULL
       ) SELECT id FROM earlier`,
      id,
    )
    .map((row) => textOf(row, 'id'))

/** Stores what a model asked for, and owes it to D1. `atMs` is later than that of every change before. */
export function applyMemory(sql: Sql, { id, op }: Extract<Write, { w: 'memory' }>, atMs: number): void {
  if (op.scope === 'user') {
    const { key } = op
    if (op.op === 'forget') owe(sql, { op: 'forget', scope: 'user', key, atMs })
    else {
      const { content, localOnly } = op
      owe(sql, { op: 'record', scope: 'user', id, key, content, localOnly, createdAtMs: atMs, atMs })
    }
    return
  }
  if (op.sealed) {
    if (op.op === 'record')
      insertUnsealed(sql, { id, localOnly: op.localOnly, replaces: op.replaces ?? null }, atMs)
    else if (op.factId !== undefined) dropFact(sql, op.factId, atMs)
    return
  }
  const known = factByKey(sql, op.key)
  if (op.op === 'forget') {
    if (known) dropFact(sql, known.id, atMs)
    return
  }
  saveFact(sql, {
    id: known?.id ?? id,
    key: op.key,
    content: op.content,
    localOnly: op.localOnly,
    createdAtMs: known?.createdAtMs ?? atMs,
    updatedAtMs: atMs,
  })
}

/** A fact of a sealed session: its key and content are in its envelope alone. */
export type SealedFact = {
  id: string
  localOnly: boolean
  updatedAtMs: number
  /** The fact that goes once this one has its envelope. */
  replaces: string | null
}

/** The facts of a sealed session, in any order, with those that wait for their envelope. */
export const loadSealedFacts = (sql: Sql): SealedFact[] =>
  sql.rows('SELECT id, local_only, updated_at, replaces FROM memories').map((row) => ({
    id: textOf(row, 'id'),
    localOnly: numberOf(row, 'local_only') === 1,
    updatedAtMs: numberOf(row, 'updated_at'),
    replaces: optionalText(row, 'replaces'),
  }))

/** A row without key and content, as old as the fact that it replaces. D1 hears of it when it has its envelope. */
function insertUnsealed(
  sql: Sql,
  { id, localOnly, replaces }: Omit<SealedFact, 'updatedAtMs'>,
  atMs: number,
): void {
  sql.rows(
    `INSERT INTO memories (id, key, content, local_only, created_at, updated_at, replaces)
     VALUES (?, NULL, '', ?, coalesce((SELECT created_at FROM memories WHERE id = ?), ?), ?, ?)`,
    id,
    localOnly ? 1 : 0,
    replaces,
    atMs,
    atMs,
    replaces,
  )
}

/**
 * A fact has its envelope: the one that it replaces goes, and D1 is owed both. One that was forgotten meanwhile stays
 * forgotten. `atMs` is later than that of every change before.
 */
export function factSealed(sql: Sql, id: string, atMs: number): void {
  const fact = factById(sql, id)
  if (fact === null) {
    dropSealed(sql, [factRef(id)])
    return
  }
  const envelope = loadSealed(sql, [factRef(id)])[factRef(id)]
  if (envelope === undefined) throw new Error(`invariant broken: fact ${id} has no envelope`)
  for (const gone of replacedBy(sql, id)) removeFact(sql, gone, atMs)
  sql.rows('UPDATE memories SET replaces = NULL, updated_at = ? WHERE id = ?', atMs, id)
  const { localOnly, createdAtMs } = fact
  const content = JSON.stringify(envelope)
  owe(sql, { op: 'record', scope: 'session', id, key: null, content, localOnly, createdAtMs, atMs })
}

/** Stores what a client asked for. Must run inside a transaction. */
export function putFact(sql: Sql, patch: FactPatch, atMs: number): StoredFact | FactRefusal {
  const known = factById(sql, patch.id)
  const holder = patch.key === null ? null : factByKey(sql, patch.key)
  if (holder && holder.id !== patch.id) return { kind: 'key_taken', memoryId: holder.id }
  const count = sql.rows('SELECT count(*) AS n FROM memories')[0]
  if (!known && count && numberOf(count, 'n') >= MAX_FACTS_PER_SCOPE) return { kind: 'full' }
  const fact: StoredFact = {
    id: patch.id,
    key: patch.key,
    content: patch.content,
    localOnly: patch.localOnly ?? known?.localOnly ?? false,
    createdAtMs: known?.createdAtMs ?? atMs,
    updatedAtMs: atMs,
  }
  saveFact(sql, fact)
  return fact
}

/** Forgets a fact; false when there is none of that id. */
export function deleteFact(sql: Sql, id: string, atMs: number): boolean {
  if (factById(sql, id) === null) return false
  dropFact(sql, id, atMs)
  return true
}

/** A change with its place in the log. */
export type OwedChange = { seq: number; change: MemoryChange }

const owe = (sql: Sql, change: MemoryChange): void => {
  sql.rows('INSERT INTO memory_ops (body) VALUES (?)', JSON.stringify(change))
}

/** The oldest changes that D1 has not got, in order. */
export function loadOwed(sql: Sql, limit = Number.MAX_SAFE_INTEGER): OwedChange[] {
  return sql.rows('SELECT seq, body FROM memory_ops ORDER BY seq LIMIT ?', limit).map((row) => ({
    seq: numberOf(row, 'seq'),
    change: JSON.parse(textOf(row, 'body')),
  }))
}

/** D1 has these. Returns whether more are owed. */
export function settleOwed(sql: Sql, settled: readonly OwedChange[]): boolean {
  for (const { seq } of settled) sql.rows('DELETE FROM memory_ops WHERE seq = ?', seq)
  return sql.rows('SELECT 1 FROM memory_ops LIMIT 1').length > 0
}
