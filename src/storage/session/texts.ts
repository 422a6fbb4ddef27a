import { byteLength, CHUNK_UNITS, MAX_INLINE_BYTES } from '../limits.ts'
import { type Sql, textOf } from './sql.ts'

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
