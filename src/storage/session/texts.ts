import { byteLength, CHUNK_UNITS, MAX_INLINE_BYTES } from '../limits.ts'
import { numberOf, type Sql, textOf } from './sql.ts'

/**
 * Long texts are kept in pieces beside their row (D27). A value that starts with the mark stands for its chunks;
 * a text that starts with the mark by itself is chunked whatever its length, so the two are never confused.
 */
const MARK = '\u0001chunks:'

/** Returns what to put in the column: the text, or a mark when it went into chunk rows under `ref`. */
export function storeText(sql: Sql, ref: string, text: string): string {
  const inline = text.length <= CHUNK_UNITS || byteLength(text) <= MAX_INLINE_BYTES
  if (inline && !text.startsWith(MARK)) {
    // Of a longer text that stood here before nothing may stay behind.
    sql.rows('DELETE FROM chunks WHERE ref = ?', ref)
    return text
  }
  let n = 0
  for (let start = 0; start < text.length; n++) {
    let end = Math.min(start + CHUNK_UNITS, text.length)
    const unit = text.charCodeAt(end - 1)
    // A chunk that ended inside a surrogate pair would be stored as two broken characters.
    if (end < text.length && unit >= 0xd800 && unit < 0xdc00) end--
    sql.rows('INSERT OR REPLACE INTO chunks (ref, n, body) VALUES (?, ?, ?)', ref, n, text.slice(start, end))
    start = end
  }
  sql.rows('DELETE FROM chunks WHERE ref = ? AND n >= ?', ref, n)
  return MARK + ref
}

/** The text behind a column value. */
export function loadText(sql: Sql, stored: string): string {
  if (!stored.startsWith(MARK)) return stored
  const rows = sql.rows('SELECT body FROM chunks WHERE ref = ? ORDER BY n', stored.slice(MARK.length))
  return rows.map((row) => textOf(row, 'body')).join('')
}

/** A column that holds a mark is shorter than this, so that no long text is read in search of one. */
const MAX_MARK_BYTES = 256

/** SQL for the UTF-8 bytes of the text behind a column; 0 for none. Reads no text: SQLite knows the size of a value. */
export const textBytesSql = (column: string): string =>
  `CASE WHEN octet_length(${column}) <= ${MAX_MARK_BYTES} AND substr(${column}, 1, ${MARK.length}) = '${MARK}'
     THEN (SELECT coalesce(sum(octet_length(body)), 0) FROM chunks WHERE ref = substr(${column}, ${MARK.length + 1}))
     ELSE coalesce(octet_length(${column}), 0) END`

/** SQL for what `chunkRefOf` takes: the column where it holds a mark, else null. Reads no text. */
export const markSql = (column: string): string =>
  `CASE WHEN octet_length(${column}) <= ${MAX_MARK_BYTES} AND substr(${column}, 1, ${MARK.length}) = '${MARK}'
     THEN ${column} END`

/** Under which reference the chunks of a column value stand; null for a text that stands in its column. */
export const chunkRefOf = (stored: string): string | null =>
  stored.startsWith(MARK) ? stored.slice(MARK.length) : null

/** The UTF-8 bytes of the text behind a column value, without reading its pieces. */
export function textBytes(sql: Sql, stored: string): number {
  if (!stored.startsWith(MARK)) return byteLength(stored)
  const ref = stored.slice(MARK.length)
  const row = sql.rows(
    'SELECT coalesce(sum(octet_length(body)), 0) AS bytes FROM chunks WHERE ref = ?',
    ref,
  )[0]
  return row ? numberOf(row, 'bytes') : 0
}
