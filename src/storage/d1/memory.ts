import { and, desc, eq, isNotNull, isNull, lte, ne, type SQL, sql } from 'drizzle-orm'
import {
  FACT_HEAD_CHARS,
  type FactRefusal,
  MAX_FACTS_PER_SCOPE,
  type MemoryChange,
  type MemoryFact,
} from '../../core/memory.ts'
import type { MemoryRecord, MemoryScope } from '../../protocol/execution/memory.ts'
import { err, ok, type Result } from '../../protocol/result.ts'
import { toWireTime } from '../../protocol/time.ts'
import { MAX_BATCH_STATEMENTS } from '../limits.ts'
import type { Database } from './database.ts'
import { orFault } from './fault.ts'
import { authTokens, contextMemory, sessions, userMemory, users } from './schema.ts'

/**
 * What is remembered, in D1: the authority on the facts about a user, a copy of those of sessions (EC 16). A forgotten
 * fact leaves a row without content behind, so that no late change brings it back.
 */

/** Lists hold at most this many facts (D50). */
export const MAX_LISTED_FACTS = 1000

/** The facts about the user of a token, the newest first, each no longer than it is shown: for the batch that checks a request (D25). */
export const selectFacts = (db: Database, tokenId: string, limit: number) =>
  db
    .select({
      id: userMemory.id,
      key: userMemory.key,
      content: sql<string>`substr(${userMemory.content}, 1, ${FACT_HEAD_CHARS})`,
      localOnly: userMemory.localOnly,
      updatedAtMs: userMemory.updatedAt,
    })
    .from(userMemory)
    .innerJoin(authTokens, eq(authTokens.userId, userMemory.userId))
    .where(and(eq(authTokens.id, tokenId), isNull(userMemory.forgottenAt)))
    .orderBy(desc(userMemory.updatedAt), desc(userMemory.id))
    .limit(limit)

/** The same of a user whose token did not come along: for a run that a device starts (D07). */
export const loadUserFacts = async (db: Database, userId: string, limit: number): Promise<MemoryFact[]> => {
  const rows = await orFault(
    db
      .select({
        id: userMemory.id,
        key: userMemory.key,
        content: sql<string>`substr(${userMemory.content}, 1, ${FACT_HEAD_CHARS})`,
        localOnly: userMemory.localOnly,
        updatedAtMs: userMemory.updatedAt,
      })
      .from(userMemory)
      .where(and(eq(userMemory.userId, userId), isNull(userMemory.forgottenAt)))
      .orderBy(desc(userMemory.updatedAt), desc(userMemory.id))
      .limit(limit),
  )
  return rows.map(toUserFact)
}

type FactRow = Awaited<ReturnType<typeof selectFacts>>[number]

export const toUserFact = ({ id, key, content, localOnly, updatedAtMs }: FactRow): MemoryFact => ({
  scope: 'user',
  id,
  ...(key === null ? {} : { key }),
  content,
  ...(localOnly ? { localOnly: true as const } : {}),
  updatedAtMs,
})

/**
 * One change as one statement. It passes only where nothing later is known, so that it may come twice or late (D26), and
 * does nothing once its user or its session is gone.
 */
export function writeChange(
  db: Database,
  { userId, sessionId }: { userId: string; sessionId: string },
  change: MemoryChange,
) {
  const { atMs } = change
  if (change.op === 'forget') {
    const forgotten = { forgottenAt: atMs, content: '', updatedAt: atMs }
    return change.scope === 'session'
      ? db
          .update(contextMemory)
          .set({ ...forgotten, key: null })
          .where(
            and(
              eq(contextMemory.id, change.id),
              eq(contextMemory.sessionId, sessionId),
              lte(contextMemory.updatedAt, atMs),
            ),
          )
      : db
          .update(userMemory)
          .set(forgotten)
          .where(
            and(
              eq(userMemory.userId, userId),
              eq(userMemory.key, change.key),
              lte(userMemory.updatedAt, atMs),
            ),
          )
  }
  const { id, key, content, createdAtMs } = change
  const localOnly = change.localOnly ? 1 : 0
  // The columns of both tables, in their order; the owner is looked up, so that nothing is made of one who is gone.
  const row = (owner: SQL) =>
    sql`${id}, ${owner}, ${key}, ${content}, ${localOnly}, ${createdAtMs}, ${atMs}, NULL`
  const told = {
    content: sql`excluded.content`,
    localOnly: sql`excluded.local_only`,
    updatedAt: sql`excluded.updated_at`,
    forgottenAt: null,
  }
  if (change.scope === 'session') {
    return db
      .insert(contextMemory)
      .select(sql`SELECT ${row(sql`${sessions.id}`)} FROM ${sessions} WHERE ${sessions.id} = ${sessionId}`)
      .onConflictDoUpdate({
        target: contextMemory.id,
        set: { ...told, key: sql`excluded.key` },
        setWhere: sql`${contextMemory.sessionId} = excluded.session_id AND ${contextMemory.updatedAt} <= excluded.updated_at`,
      })
      .onConflictDoNothing()
  }
  return db
    .insert(userMemory)
    .select(sql`SELECT ${row(sql`${users.id}`)} FROM ${users} WHERE ${users.id} = ${userId}`)
    .onConflictDoUpdate({
      target: [userMemory.userId, userMemory.key],
      set: { ...told, createdAt: createdOnce },
      setWhere: sql`${userMemory.updatedAt} <= excluded.updated_at`,
    })
    .onConflictDoNothing()
}

/** A fact that comes back after it was forgotten is a new one. */
const createdOnce = sql`CASE WHEN ${userMemory.forgottenAt} IS NULL THEN ${userMemory.createdAt} ELSE excluded.created_at END`

/** Changes alone, without rows of their session; none takes no trip. */
export async function writeChanges(
  db: Database,
  owner: { userId: string; sessionId: string },
  changes: readonly { change: MemoryChange }[],
): Promise<void> {
  for (let from = 0; from < changes.length; from += MAX_BATCH_STATEMENTS) {
    const [first, ...rest] = changes
      .slice(from, from + MAX_BATCH_STATEMENTS)
      .map(({ change }) => writeChange(db, owner, change))
    if (first) await db.batch([first, ...rest])
  }
}

type MemoryRow = typeof userMemory.$inferSelect | typeof contextMemory.$inferSelect

/** `sealed`: the row is of a session that is encrypted, and what it holds is an envelope. */
function toRecord(row: MemoryRow, sealed = false): MemoryRecord {
  const inSession = 'sessionId' in row
  return {
    id: row.id,
    scope: inSession ? 'session' : 'user',
    ...(inSession ? { session_id: row.sessionId } : {}),
    ...(row.key === null ? {} : { key: row.key }),
    ...(sealed ? { content: '', encrypted: JSON.parse(row.content) } : { content: row.content }),
    ...(row.localOnly ? { local_only: true } : {}),
    created_at: toWireTime(row.createdAt),
    updated_at: toWireTime(row.updatedAt),
  }
}

/** What is remembered of a user and in the user's sessions, the newest first (D50). */
export async function listMemory(db: Database, userId: string, scope?: MemoryScope): Promise<MemoryRecord[]> {
  const wantsUser = scope !== 'session'
  const wantsSession = scope !== 'user'
  const [ofUser, ofSessions] = await orFault(
    db.batch([
      db
        .select()
        .from(userMemory)
        .where(and(eq(userMemory.userId, userId), isNull(userMemory.forgottenAt)))
        .orderBy(desc(userMemory.updatedAt), desc(userMemory.id))
        .limit(wantsUser ? MAX_LISTED_FACTS : 0),
      db
        .select({ fact: contextMemory, keyId: sessions.keyId })
        .from(contextMemory)
        .innerJoin(sessions, eq(sessions.id, contextMemory.sessionId))
        .where(and(eq(sessions.userId, userId), isNull(contextMemory.forgottenAt)))
        .orderBy(desc(contextMemory.updatedAt), desc(contextMemory.id))
        .limit(wantsSession ? MAX_LISTED_FACTS : 0),
    ]),
  )
  return [...ofUser.map((fact) => ({ fact, keyId: null })), ...ofSessions]
    .sort((a, b) => b.fact.updatedAt - a.fact.updatedAt || (a.fact.id < b.fact.id ? 1 : -1))
    .slice(0, MAX_LISTED_FACTS)
    .map(({ fact, keyId }) => toRecord(fact, keyId !== null))
}

/** What D1 knows of an id that a client names. */
export type Place = {
  /** Where the fact of that id is or was; null when nobody has it. */
  at:
    | null
    | { scope: 'user'; own: boolean; forgotten: boolean }
    | { scope: 'session'; own: boolean; forgotten: boolean; sessionId: string }
  ownsSession: boolean
}

/** Reads, in one trip, where a fact belongs that is to be stored or forgotten. */
export async function findPlace(
  db: Database,
  userId: string,
  { id, sessionId }: { id: string; sessionId: string | null },
): Promise<Place> {
  const [[ofUser], [ofSession], owned] = await orFault(
    db.batch([
      db
        .select({ userId: userMemory.userId, forgottenAt: userMemory.forgottenAt })
        .from(userMemory)
        .where(eq(userMemory.id, id)),
      db
        .select({
          userId: sessions.userId,
          sessionId: sessions.id,
          forgottenAt: contextMemory.forgottenAt,
        })
        .from(contextMemory)
        .innerJoin(sessions, eq(sessions.id, contextMemory.sessionId))
        .where(eq(contextMemory.id, id)),
      db
        .select({ id: sessions.id })
        .from(sessions)
        .where(and(eq(sessions.id, sessionId ?? ''), eq(sessions.userId, userId))),
    ]),
  )
  const at = ofUser
    ? { scope: 'user' as const, own: ofUser.userId === userId, forgotten: ofUser.forgottenAt !== null }
    : ofSession
      ? {
          scope: 'session' as const,
          own: ofSession.userId === userId,
          forgotten: ofSession.forgottenAt !== null,
          sessionId: ofSession.sessionId,
        }
      : null
  return { at, ownsSession: owned.length > 0 }
}

/**
 * Makes or replaces a fact about a user. `localOnly: null` leaves that as it is. Whether the key is free and a new fact
 * has room is part of the statement, so that requests at the same time cannot pass together. Null: the id is another
 * user's.
 */
export async function putUserFact(
  db: Database,
  userId: string,
  fact: { id: string; key: string | null; content: string; localOnly: boolean | null; nowMs: number },
): Promise<Result<MemoryRecord, FactRefusal> | null> {
  const { id, key, content, localOnly, nowMs } = fact
  const kept: SQL = localOnly === null ? sql`${userMemory.localOnly}` : sql`excluded.local_only`
  const living = and(eq(userMemory.userId, userId), isNull(userMemory.forgottenAt))
  const holdsKey = and(living, eq(userMemory.key, key ?? ''), ne(userMemory.id, id))
  const [, rows, [holder], [owner]] = await orFault(
    db.batch([
      // The key of a forgotten fact is free; what kept late changes out, the new row does as well.
      db
        .delete(userMemory)
        .where(
          and(
            eq(userMemory.userId, userId),
            eq(userMemory.key, key ?? ''),
            ne(userMemory.id, id),
            isNotNull(userMemory.forgottenAt),
          ),
        ),
      db
        .insert(userMemory)
        .select(
          sql`SELECT ${id}, ${userId}, ${key}, ${content}, ${localOnly ? 1 : 0}, ${nowMs}, ${nowMs}, NULL
            WHERE NOT EXISTS (SELECT 1 FROM ${userMemory} WHERE ${holdsKey})
              AND (EXISTS (SELECT 1 FROM ${userMemory} WHERE ${and(living, eq(userMemory.id, id))})
                OR (SELECT count(*) FROM ${userMemory} WHERE ${living}) < ${MAX_FACTS_PER_SCOPE})`,
        )
        .onConflictDoUpdate({
          target: userMemory.id,
          set: {
            key,
            content,
            localOnly: sql`CASE WHEN ${userMemory.forgottenAt} IS NULL THEN ${kept} ELSE excluded.local_only END`,
            createdAt: createdOnce,
            updatedAt: sql`max(${userMemory.updatedAt}, excluded.updated_at)`,
            forgottenAt: null,
          },
          setWhere: eq(userMemory.userId, userId),
        })
        .returning(),
      db.select({ id: userMemory.id }).from(userMemory).where(holdsKey),
      db.select({ userId: userMemory.userId }).from(userMemory).where(eq(userMemory.id, id)),
    ]),
  )
  const [row] = rows
  if (row) return ok(toRecord(row))
  if (owner && owner.userId !== userId) return null
  return err(holder ? { kind: 'key_taken', memoryId: holder.id } : { kind: 'full' })
}

/** Forgets a fact about a user; false when there is none of that id. */
export async function forgetUserFact(
  db: Database,
  userId: string,
  id: string,
  nowMs: number,
): Promise<boolean> {
  const rows = await orFault(
    db
      .update(userMemory)
      .set({ content: '', forgottenAt: nowMs, updatedAt: sql`max(${userMemory.updatedAt}, ${nowMs})` })
      .where(and(eq(userMemory.id, id), eq(userMemory.userId, userId), isNull(userMemory.forgottenAt)))
      .returning({ id: userMemory.id }),
  )
  return rows.length > 0
}
