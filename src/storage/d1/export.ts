import { and, asc, eq, gt, isNull } from 'drizzle-orm'
import type { MemoryRecord } from '../../protocol/execution/memory.ts'
import { toWireTime } from '../../protocol/time.ts'
import type { Database } from './database.ts'
import { orFault } from './fault.ts'
import { sessions, userMemory, users } from './schema.ts'

/** Ids of a user's sessions after one of them, the oldest first; `''` stands before all. Reads that user's sessions only. */
export async function listSessionIds(
  db: Database,
  userId: string,
  after: string,
  limit: number,
): Promise<string[]> {
  const rows = await orFault(
    db
      .select({ id: sessions.id })
      .from(sessions)
      .where(and(eq(sessions.userId, userId), gt(sessions.id, after)))
      .orderBy(asc(sessions.id))
      .limit(limit),
  )
  return rows.map(({ id }) => id)
}

/** What is remembered about a user (EC 16), by id, after one of the facts; `''` stands before all. */
export async function listUserFacts(
  db: Database,
  userId: string,
  after: string,
  limit: number,
): Promise<MemoryRecord[]> {
  const rows = await orFault(
    db
      .select()
      .from(userMemory)
      .where(and(eq(userMemory.userId, userId), gt(userMemory.id, after), isNull(userMemory.forgottenAt)))
      .orderBy(asc(userMemory.id))
      .limit(limit),
  )
  return rows.map(({ id, key, content, localOnly, createdAt, updatedAt }) => ({
    id,
    scope: 'user',
    ...(key === null ? {} : { key }),
    content,
    ...(localOnly ? { local_only: true } : {}),
    created_at: toWireTime(createdAt),
    updated_at: toWireTime(updatedAt),
  }))
}

/** Whether the account is there and not being deleted. */
export async function accountLives(db: Database, userId: string): Promise<boolean> {
  const rows = await orFault(
    db
      .select({ id: users.id })
      .from(users)
      .where(and(eq(users.id, userId), isNull(users.deletedAt))),
  )
  return rows.length > 0
}
