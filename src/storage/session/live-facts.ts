import { numberOf, type Sql, textOf } from './sql.ts'
import { loadText } from './texts.ts'

/** The time of the newest message; null when there is none. */
export function newestMessageAtMs(sql: Sql): number | null {
  const row = sql.rows('SELECT created_at FROM messages ORDER BY seq DESC LIMIT 1')[0]
  return row ? numberOf(row, 'created_at') : null
}

/** The first thing that the user said after this place of the transcript; null when there is nothing yet. */
export function nextUserMessage(sql: Sql, afterSeq: number): { seq: number; text: string } | null {
  const row = sql.rows(
    `SELECT seq, content FROM messages WHERE seq > ? AND role = 'user' ORDER BY seq LIMIT 1`,
    afterSeq,
  )[0]
  return row ? { seq: numberOf(row, 'seq'), text: loadText(sql, textOf(row, 'content')) } : null
}
