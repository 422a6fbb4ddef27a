import { and, desc, eq, lt, or, sql } from 'drizzle-orm'
import type { SessionRow } from '../session/session-row.ts'
import type { Database } from './database.ts'
import { orFault } from './fault.ts'
import { authTokens, createKeys, sessions } from './schema.ts'

/** What D1 knows of a session. */
export type ListedSession = Omit<SessionRow, 'deletedAtMs' | 'rev'>

/** Lists hold at most this many sessions (D52). */
export const MAX_LISTED_SESSIONS = 1000

const toListed = (row: typeof sessions.$inferSelect): ListedSession => ({
  sessionId: row.id,
  userId: row.userId,
  title: row.title,
  scope: row.scope,
  keyId: row.keyId,
  createdAtMs: row.createdAt,
  updatedAtMs: row.updatedAt,
  archivedAtMs: row.archivedAt,
})

/** The session, if it belongs to the user whose token this is: one statement for the batch that checks a request. */
export const selectOwnedSession = (db: Database, sessionId: string, tokenId: string) =>
  db
    .select({ id: sessions.id })
    .from(sessions)
    .innerJoin(authTokens, eq(authTokens.userId, sessions.userId))
    .where(and(eq(sessions.id, sessionId), eq(authTokens.id, tokenId)))

export type CreateKey = { key: string; digest: string }

/** Stores a new session, and under which key it was made. */
export async function insertSession(
  db: Database,
  row: SessionRow,
  createKey: CreateKey | null,
): Promise<void> {
  const insert = db.insert(sessions).values({
    id: row.sessionId,
    userId: row.userId,
    title: row.title,
    scope: row.scope,
    keyId: row.keyId,
    createdAt: row.createdAtMs,
    updatedAt: row.updatedAtMs,
    archivedAt: row.archivedAtMs,
    rev: row.rev,
  })
  if (createKey === null) {
    await orFault(insert)
    return
  }
  const { userId, sessionId, createdAtMs: createdAt } = row
  await orFault(
    db.batch([insert, db.insert(createKeys).values({ userId, sessionId, createdAt, ...createKey })]),
  )
}

/** What was made under a create key. The session may have been changed or deleted since. */
export async function findCreated(
  db: Database,
  userId: string,
  key: string,
): Promise<{ digest: string; sessionId: string; createdAtMs: number } | null> {
  const rows = await orFault(
    db
      .select({
        digest: createKeys.digest,
        sessionId: createKeys.sessionId,
        createdAtMs: createKeys.createdAt,
      })
      .from(createKeys)
      .where(and(eq(createKeys.userId, userId), eq(createKeys.key, key))),
  )
  return rows[0] ?? null
}

export type ListFilter = { scope?: string; title?: string; limit: number; after?: string }

/** A user's sessions, archived ones included, most recently updated first (EC 2.7, D52). */
export async function listSessions(
  db: Database,
  userId: string,
  filter: ListFilter,
): Promise<ListedSession[]> {
  const conditions = [eq(sessions.userId, userId)]
  if (filter.scope !== undefined) conditions.push(eq(sessions.scope, filter.scope))
  if (filter.title !== undefined) {
    // LIKE patterns are short on this platform and have wildcards of their own (D27).
    conditions.push(sql`instr(lower(${sessions.title}), lower(${filter.title})) > 0`)
  }
  if (filter.after !== undefined) {
    const last = await orFault(
      db
        .select({ updatedAt: sessions.updatedAt })
        .from(sessions)
        .where(and(eq(sessions.id, filter.after), eq(sessions.userId, userId))),
    )
    const updatedAt = last[0]?.updatedAt
    if (updatedAt === undefined) return []
    const older = or(
      lt(sessions.updatedAt, updatedAt),
      and(eq(sessions.updatedAt, updatedAt), lt(sessions.id, filter.after)),
    )
    if (older) conditions.push(older)
  }
  const rows = await orFault(
    db
      .select()
      .from(sessions)
      .where(and(...conditions))
      .orderBy(desc(sessions.updatedAt), desc(sessions.id))
      .limit(filter.limit),
  )
  return rows.map(toListed)
}

/** Deletes a session; its messages and turns go with it. */
export async function deleteSession(db: Database, userId: string, sessionId: string): Promise<void> {
  await db.delete(sessions).where(and(eq(sessions.id, sessionId), eq(sessions.userId, userId)))
}

export async function sessionExists(db: Database, sessionId: string): Promise<boolean> {
  const rows = await db.select({ id: sessions.id }).from(sessions).where(eq(sessions.id, sessionId))
  return rows.length > 0
}
