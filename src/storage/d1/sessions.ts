import { and, desc, eq, lt, or, sql } from 'drizzle-orm'
import type { SessionRow } from '../session/session-row.ts'
import type { Database } from './database.ts'
import { orFault } from './fault.ts'
import { authTokens, createKeys, sessions, users } from './schema.ts'

/** What D1 knows of a session. */
export type ListedSession = Omit<SessionRow, 'deletedAtMs' | 'rev' | 'epoch' | 'sharingOff' | 'settings'> & {
  pinned: boolean
  settled: boolean
}

const toListed = (row: typeof sessions.$inferSelect): ListedSession => ({
  sessionId: row.id,
  userId: row.userId,
  title: row.title,
  scope: row.scope,
  keyId: row.keyId,
  createdAtMs: row.createdAt,
  updatedAtMs: row.updatedAt,
  archivedAtMs: row.archivedAt,
  listed: row.shared,
  pinned: row.pinnedAt !== null,
  settled: row.settledAt !== null,
})

/** The session, if it belongs to the user whose token this is: one statement for the batch that checks a request. */
export const selectOwnedSession = (db: Database, sessionId: string, tokenId: string) =>
  db
    .select({ id: sessions.id })
    .from(sessions)
    .innerJoin(authTokens, eq(authTokens.userId, sessions.userId))
    .where(and(eq(sessions.id, sessionId), eq(authTokens.id, tokenId)))

export type CreateKey = { key: string; digest: string }

/**
 * Stores a new session, and under which key it was made; false when the user has `most` sessions already that are not
 * archived.
 */
export async function insertSession(
  db: Database,
  row: SessionRow,
  createKey: CreateKey | null,
  most: number,
): Promise<boolean> {
  const { userId, sessionId, createdAtMs: createdAt } = row
  // Counted in the statement that inserts, so that requests at the same time cannot pass the limit together.
  const insert = db.insert(sessions).select(
    db
      .select({
        id: sql<string>`${sessionId}`.as('id'),
        userId: users.id,
        title: sql<string | null>`${row.title}`.as('title'),
        scope: sql<string | null>`${row.scope}`.as('scope'),
        keyId: sql<string | null>`${row.keyId}`.as('key_id'),
        createdAt: sql<number>`${createdAt}`.as('created_at'),
        updatedAt: sql<number>`${row.updatedAtMs}`.as('updated_at'),
        archivedAt: sql<number | null>`${row.archivedAtMs}`.as('archived_at'),
        rev: sql<number>`${row.rev}`.as('rev'),
        tracesFrom: sql<number>`0`.as('traces_from'),
        shared: sql<boolean>`0`.as('shared'),
        workspace: sql<string | null>`NULL`.as('workspace'),
        derivedTitle: sql<string | null>`NULL`.as('derived_title'),
        messageCount: sql<number>`0`.as('message_count'),
        pinnedAt: sql<number | null>`NULL`.as('pinned_at'),
        settledAt: sql<number | null>`NULL`.as('settled_at'),
      })
      .from(users)
      .where(
        and(
          eq(users.id, userId),
          sql`(SELECT count(*) FROM sessions WHERE user_id = ${userId} AND archived_at IS NULL) < ${most}`,
        ),
      ),
  )
  if (createKey === null) return (await orFault(insert)).meta.changes > 0
  const [inserted] = await orFault(
    db.batch([
      insert,
      db.insert(createKeys).select(
        db
          .select({
            userId: sessions.userId,
            key: sql<string>`${createKey.key}`.as('key'),
            digest: sql<string>`${createKey.digest}`.as('digest'),
            sessionId: sessions.id,
            createdAt: sql<number>`${createdAt}`.as('created_at'),
          })
          .from(sessions)
          .where(eq(sessions.id, sessionId)),
      ),
    ]),
  )
  return inserted.meta.changes > 0
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

/**
 * Deletes a session; its messages and turns go with it. Not so the key that made it, which tells of it on (U14): only
 * `withKey`, for a session that nobody was told of.
 */
export async function deleteSession(
  db: Database,
  userId: string,
  sessionId: string,
  { withKey = false }: { withKey?: boolean } = {},
): Promise<void> {
  const deletion = db.delete(sessions).where(and(eq(sessions.id, sessionId), eq(sessions.userId, userId)))
  if (!withKey) {
    await deletion
    return
  }
  const ofSession = and(eq(createKeys.sessionId, sessionId), eq(createKeys.userId, userId))
  await db.batch([deletion, db.delete(createKeys).where(ofSession)])
}

export async function sessionExists(db: Database, sessionId: string): Promise<boolean> {
  const rows = await db.select({ id: sessions.id }).from(sessions).where(eq(sessions.id, sessionId))
  return rows.length > 0
}
