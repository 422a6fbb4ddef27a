import { and, asc, eq, gt, lt, lte, ne, or, sql } from 'drizzle-orm'
import type { Database } from './database.ts'
import { orFault } from './fault.ts'
import { authTokens, contextMemory, createKeys, receipts, sessions, turns, userMemory } from './schema.ts'
import type { SessionCutoffs } from './session-cutoffs.ts'

/**
 * What clean-up reads and deletes in D1 (D31). Ids of sessions and tokens begin with the time they were made (D22), so a
 * bound on the id keeps each scan to rows that are old enough, by the primary key and without an index that every turn
 * would have to write.
 */

/** Ids are made a moment before their row's time is taken, and clocks are corrected now and then. */
const ID_SLACK_MS = 24 * 60 * 60 * 1000

/** Above every UUIDv7 of rows that were created before this time. */
const idBound = (beforeMs: number): string => {
  const hex = Math.max(0, beforeMs + ID_SLACK_MS)
    .toString(16)
    .padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}`
}

export type OwnedSession = { id: string; userId: string }

/**
 * Sessions that look expired, oldest first, after one of them (`''` stands before all). Their objects decide. Reads the
 * sessions that are old enough for the shorter of the two times.
 */
export async function listExpiredSessions(
  db: Database,
  { archivedBeforeMs, idleBeforeMs }: SessionCutoffs,
  after: string,
  limit: number,
): Promise<OwnedSession[]> {
  // Nothing is older than the beginning of time.
  const archived = archivedBeforeMs ?? 0
  const idle = idleBeforeMs ?? 0
  return orFault(
    db
      .select({ id: sessions.id, userId: sessions.userId })
      .from(sessions)
      .where(
        and(
          gt(sessions.id, after),
          lt(sessions.id, idBound(Math.max(archived, idle))),
          or(
            lt(sessions.archivedAt, archived),
            and(sql`${sessions.archivedAt} IS NULL`, lt(sessions.updatedAt, idle)),
          ),
        ),
      )
      .orderBy(asc(sessions.id))
      .limit(limit),
  )
}

/**
 * Sessions that may hold trace events from before this time, oldest first, after one of them. Reads the sessions that
 * were made before it; one whose traces start later is passed over by its own row.
 */
export async function listOldTraces(
  db: Database,
  beforeMs: number,
  after: string,
  limit: number,
): Promise<OwnedSession[]> {
  return orFault(
    db
      .select({ id: sessions.id, userId: sessions.userId })
      .from(sessions)
      .where(
        and(
          gt(sessions.id, after),
          lt(sessions.id, idBound(beforeMs)),
          lt(sessions.createdAt, beforeMs),
          lt(sessions.tracesFrom, beforeMs),
        ),
      )
      .orderBy(asc(sessions.id))
      .limit(limit),
  )
}

/**
 * Empties the copies of traces of turns that ended before this time, and notes from when on there are any. `rev` is of
 * after the change in the object, so no copy that is still on its way brings a trace back (D26).
 */
export async function expireTraceCopies(
  db: Database,
  {
    sessionId,
    beforeMs,
    tracesFromMs,
    rev,
  }: { sessionId: string; beforeMs: number; tracesFromMs: number; rev: number },
): Promise<void> {
  await orFault(
    db.batch([
      db
        .update(turns)
        .set({ trace: '[]', rev })
        .where(
          and(
            eq(turns.sessionId, sessionId),
            lt(turns.endedAt, beforeMs),
            ne(turns.trace, '[]'),
            lte(turns.rev, rev),
          ),
        ),
      db.update(sessions).set({ tracesFrom: tracesFromMs }).where(eq(sessions.id, sessionId)),
    ]),
  )
}

/** When rows that nobody reads any more may go. */
export type RowCutoffs = {
  tokensBeforeMs: number
  createKeysBeforeMs: number
  forgottenBeforeMs: number
  receiptsBeforeMs: number
}

/** Rows of one kind that go in one run, so that no statement takes long; the rest goes in the next. */
const MAX_ROWS = 1000

/**
 * Deletes tokens that ended, keys of creations, forgotten facts and receipts from before these times; returns how many
 * rows. Tokens are found by their id, receipts among the oldest rows of their table; the other tables are read whole: a
 * week of keys, and facts, which are few.
 */
export async function deleteOldRows(
  db: Database,
  { tokensBeforeMs, createKeysBeforeMs, forgottenBeforeMs, receiptsBeforeMs }: RowCutoffs,
): Promise<number> {
  const results = await orFault(
    db.batch([
      db.delete(authTokens).where(
        sql`${authTokens.id} IN (
          SELECT id FROM auth_tokens
          WHERE id < ${idBound(tokensBeforeMs)}
            AND (expires_at < ${tokensBeforeMs} OR revoked_at < ${tokensBeforeMs})
          ORDER BY id LIMIT ${MAX_ROWS})`,
      ),
      db.delete(createKeys).where(
        sql`rowid IN (
          SELECT rowid FROM create_keys WHERE created_at < ${createKeysBeforeMs} LIMIT ${MAX_ROWS})`,
      ),
      db.delete(userMemory).where(
        sql`${userMemory.id} IN (
          SELECT id FROM user_memory WHERE forgotten_at < ${forgottenBeforeMs} LIMIT ${MAX_ROWS})`,
      ),
      db.delete(contextMemory).where(
        sql`${contextMemory.id} IN (
          SELECT id FROM context_memory WHERE forgotten_at < ${forgottenBeforeMs} LIMIT ${MAX_ROWS})`,
      ),
      // Rows come in the order of their time, more or less: the first ones are the oldest.
      db.delete(receipts).where(
        sql`rowid IN (
          SELECT rowid FROM receipts
          WHERE rowid < (SELECT min(rowid) FROM receipts) + ${MAX_ROWS} AND created_at < ${receiptsBeforeMs})`,
      ),
    ]),
  )
  return results.reduce((sum, { meta }) => sum + meta.changes, 0)
}
