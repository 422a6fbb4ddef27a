import { callsRef, diffRef, refParts, resultRef } from '../../protocol/execution/content-refs.ts'
import type { ContentKind, ContentRef } from '../../protocol/execution/ids.ts'
import type { EncryptedPayload, SealedMap } from '../../protocol/execution/sealed.ts'
import { numberOf, type Sql, textOf } from './sql.ts'
import { loadText, storeText, textBytesSql } from './texts.ts'

/**
 * What the contents of a sealed session were sealed to, by reference (EC 17.2). The rows that they belong to have their
 * roles, times and states in clear and empty texts; a row without its envelope waits for it.
 */

/** Names the chunks of a long envelope. */
const CHUNKS = 'sealed:'

/** Keeps an envelope; one that stood there before is replaced. `weight`: what its text takes in a request, in bytes. */
export function saveSealed(sql: Sql, ref: ContentRef, payload: EncryptedPayload, weight?: number): void {
  sql.rows(
    `INSERT INTO sealed_contents (ref, envelope, weight) VALUES (?, ?, ?)
     ON CONFLICT (ref) DO UPDATE SET envelope = excluded.envelope, weight = excluded.weight`,
    ref,
    storeText(sql, CHUNKS + ref, JSON.stringify(payload)),
    weight ?? null,
  )
}

export const isSealed = (sql: Sql, ref: ContentRef): boolean =>
  sql.rows('SELECT 1 FROM sealed_contents WHERE ref = ?', ref).length > 0

/** Those of these references that have an envelope; reads none. */
export const sealedAmong = (sql: Sql, refs: readonly ContentRef[]): Set<ContentRef> =>
  refs.length === 0
    ? new Set()
    : new Set(
        sql
          .rows(
            'SELECT ref FROM sealed_contents WHERE ref IN (SELECT value FROM json_each(?))',
            JSON.stringify(refs),
          )
          .map((row) => textOf(row, 'ref')),
      )

/** The envelopes of these references, in their order; one that has none is not among them. */
export function loadSealed(sql: Sql, refs: Iterable<ContentRef>): SealedMap {
  const asked = [...new Set(refs)]
  if (asked.length === 0) return {}
  const rows = sql.rows(
    'SELECT ref, envelope FROM sealed_contents WHERE ref IN (SELECT value FROM json_each(?))',
    JSON.stringify(asked),
  )
  const found = new Map(rows.map((row) => [textOf(row, 'ref'), textOf(row, 'envelope')]))
  const sealed: SealedMap = {}
  for (const ref of asked) {
    const stored = found.get(ref)
    if (stored !== undefined) sealed[ref] = JSON.parse(loadText(sql, stored))
  }
  return sealed
}

/** SQL for what a content weighs: its text in a request, or where that is not known its envelope. Reads neither. */
export const sealedWeightSql = `coalesce(weight, ${textBytesSql('envelope')})`

/** What a content weighs, in bytes (`sealedWeightSql`); null where there is none. */
export function sealedBytes(sql: Sql, ref: ContentRef): number | null {
  const row = sql.rows(`SELECT ${sealedWeightSql} AS bytes FROM sealed_contents WHERE ref = ?`, ref)[0]
  return row ? numberOf(row, 'bytes') : null
}

/** Removes the envelopes of these references, long ones with their pieces. */
export function dropSealed(sql: Sql, refs: Iterable<ContentRef>): void {
  const named = JSON.stringify([...refs])
  sql.rows('DELETE FROM sealed_contents WHERE ref IN (SELECT value FROM json_each(?))', named)
  sql.rows(`DELETE FROM chunks WHERE ref IN (SELECT '${CHUNKS}' || value FROM json_each(?))`, named)
}

/**
 * The texts of these references are lost for ever: removes the rows that waited for them. A row that has its envelope
 * stays, and so does what stands in no row of its own.
 */
export function dropUnsealed(sql: Sql, refs: Iterable<ContentRef>): void {
  for (const ref of refs) {
    const { kind, id } = refParts(ref)
    const drop = DROPS[kind]
    if (drop !== undefined && !isSealed(sql, ref)) drop(sql, id)
  }
}

/** How the row of a content goes, by the kind of its reference. */
const DROPS: Partial<Record<ContentKind, (sql: Sql, id: string) => void>> = {
  message: dropMessage,
  plan: (sql, id) => sql.rows('DELETE FROM plans WHERE id = ?', id),
  memory: dropFactRow,
}

/** A fact that was to replace this one replaces in its stead what this one was to replace. */
function dropFactRow(sql: Sql, id: string): void {
  sql.rows(
    'UPDATE memories SET replaces = (SELECT replaces FROM memories WHERE id = ?) WHERE replaces = ?',
    id,
    id,
  )
  sql.rows('DELETE FROM memories WHERE id = ?', id)
}

/** Messages whose texts are lost are the newest ones, so that no gap is left. */
function dropMessage(sql: Sql, messageId: string): void {
  const seq = messageSeq(sql, messageId)
  if (seq === null) return
  const calls = sql
    .rows('SELECT id FROM tool_calls WHERE message_seq = ?', seq)
    .map((row) => textOf(row, 'id'))
  dropSealed(sql, [callsRef(messageId), ...calls.flatMap((id) => [resultRef(id), diffRef(id)])])
  sql.rows('DELETE FROM tool_calls WHERE message_seq = ?', seq)
  sql.rows('DELETE FROM messages WHERE seq = ?', seq)
}

/** The sequence of the newest message; 0 when there is none. */
export function newestMessageSeq(sql: Sql): number {
  const row = sql.rows('SELECT coalesce(max(seq), 0) AS seq FROM messages')[0]
  return row ? numberOf(row, 'seq') : 0
}

/**
 * The sequence of the message that a content is part of: its text, what its calls were given, or what one of them gave.
 * Null for content of another kind, and of a message that is not there.
 */
export function messageOfContent(sql: Sql, ref: ContentRef): number | null {
  const { kind, id } = refParts(ref)
  if (kind === 'message') return messageSeq(sql, id)
  if (kind !== 'tool_call') return null
  const call = sql.rows('SELECT message_seq FROM tool_calls WHERE id = ?', id)[0]
  return call ? numberOf(call, 'message_seq') : messageSeq(sql, id)
}

/** Looks from the newest message back: what is asked for was said just now. */
function messageSeq(sql: Sql, messageId: string): number | null {
  const row = sql.rows('SELECT seq FROM messages WHERE id = ? ORDER BY seq DESC LIMIT 1', messageId)[0]
  return row ? numberOf(row, 'seq') : null
}
