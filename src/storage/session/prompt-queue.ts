import { numberOf, type Sql, textOf } from './sql.ts'

/** A prompt of a device that waits until the run before it is over. */
export type QueuedPrompt = {
  id: string
  text: string
  /** It was said where no remote model was to hear it (U37). */
  localOnly: boolean
  /** Who queued it, and what the run may use (D14). */
  actor: { id: string; deploymentProviders: boolean }
}

export function enqueuePrompt(sql: Sql, { id, text, localOnly, actor }: QueuedPrompt, nowMs: number): void {
  sql.rows(
    'INSERT INTO prompt_queue (id, text, local_only, actor, created_at) VALUES (?, ?, ?, ?, ?)',
    id,
    text,
    localOnly ? 1 : 0,
    JSON.stringify(actor),
    nowMs,
  )
}

/** The one that runs next; null when none waits. */
export function firstQueued(sql: Sql): QueuedPrompt | null {
  const row = sql.rows('SELECT id, text, local_only, actor FROM prompt_queue ORDER BY seq LIMIT 1')[0]
  return row
    ? {
        id: textOf(row, 'id'),
        text: textOf(row, 'text'),
        localOnly: numberOf(row, 'local_only') === 1,
        actor: JSON.parse(textOf(row, 'actor')),
      }
    : null
}

export const countQueued = (sql: Sql): number => {
  const row = sql.rows('SELECT count(*) AS n FROM prompt_queue')[0]
  return row ? numberOf(row, 'n') : 0
}

/** Characters of a prompt in the queue that are read to show it. */
const HEAD_CHARS = 600

/** How a prompt begins, and how many UTF-8 bytes it has. */
export type QueuedHead = { head: string; totalBytes: number }

/** The first that wait, in the order in which they run; their texts are not read whole. */
export const queuedHeads = (sql: Sql, limit: number): QueuedHead[] =>
  sql
    .rows(
      `SELECT substr(text, 1, ?) AS head, length(CAST(text AS BLOB)) AS bytes FROM prompt_queue ORDER BY seq LIMIT ?`,
      HEAD_CHARS,
      limit,
    )
    .map((row) => ({ head: textOf(row, 'head'), totalBytes: numberOf(row, 'bytes') }))

export function dropQueued(sql: Sql, id: string): void {
  sql.rows('DELETE FROM prompt_queue WHERE id = ?', id)
}
