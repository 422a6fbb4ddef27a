import { numberOf, type Sql, textOf } from './sql.ts'

/** A prompt of a device that waits until the run before it is over. */
export type QueuedPrompt = {
  id: string
  text: string
  /** Who queued it, and what the run may use (D14). */
  actor: { id: string; deploymentProviders: boolean }
}

export function enqueuePrompt(sql: Sql, { id, text, actor }: QueuedPrompt, nowMs: number): void {
  sql.rows(
    'INSERT INTO prompt_queue (id, text, actor, created_at) VALUES (?, ?, ?, ?)',
    id,
    text,
    JSON.stringify(actor),
    nowMs,
  )
}

/** The one that runs next; null when none waits. */
export function firstQueued(sql: Sql): QueuedPrompt | null {
  const row = sql.rows('SELECT id, text, actor FROM prompt_queue ORDER BY seq LIMIT 1')[0]
  return row
    ? { id: textOf(row, 'id'), text: textOf(row, 'text'), actor: JSON.parse(textOf(row, 'actor')) }
    : null
}

export const countQueued = (sql: Sql): number => {
  const row = sql.rows('SELECT count(*) AS n FROM prompt_queue')[0]
  return row ? numberOf(row, 'n') : 0
}

/** The texts of all that wait, in the order in which they run. */
export const queuedTexts = (sql: Sql): string[] =>
  sql.rows('SELECT text FROM prompt_queue ORDER BY seq').map((row) => textOf(row, 'text'))

export function dropQueued(sql: Sql, id: string): void {
  sql.rows('DELETE FROM prompt_queue WHERE id = ?', id)
}
