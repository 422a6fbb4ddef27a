import { and, asc, eq, isNull } from 'drizzle-orm'
import type { Database } from './database.ts'
import { orFault } from './fault.ts'
import { apiKeys, authTokens, users } from './schema.ts'

/** Creates a user with its first API key, both or neither. */
export async function createUser(
  db: Database,
  { userId, keyId, keyDigest, nowMs }: { userId: string; keyId: string; keyDigest: string; nowMs: number },
): Promise<void> {
  await orFault(
    db.batch([
      db.insert(users).values({ id: userId, createdAt: nowMs, updatedAt: nowMs }),
      db.insert(apiKeys).values({ id: keyId, userId, digest: keyDigest, createdAt: nowMs }),
    ]),
  )
}

/** Digests of a user's working keys; none for an unknown or disabled user. */
export async function activeKeyDigests(db: Database, userId: string): Promise<string[]> {
  const rows = await orFault(
    db
      .select({ digest: apiKeys.digest })
      .from(apiKeys)
      .innerJoin(users, eq(users.id, apiKeys.userId))
      .where(and(eq(apiKeys.userId, userId), isNull(apiKeys.revokedAt), isNull(users.disabledAt))),
  )
  return rows.map(({ digest }) => digest)
}

export async function createToken(
  db: Database,
  token: { id: string; userId: string; digest: string; createdAt: number; expiresAt: number },
): Promise<void> {
  await orFault(db.insert(authTokens).values(token))
}

export async function revokeToken(
  db: Database,
  { tokenId, userId, nowMs }: { tokenId: string; userId: string; nowMs: number },
): Promise<void> {
  await orFault(
    db
      .update(authTokens)
      .set({ revokedAt: nowMs })
      .where(and(eq(authTokens.id, tokenId), eq(authTokens.userId, userId), isNull(authTokens.revokedAt))),
  )
}

/** The stored side of a presented token; null for an unknown one or a disabled user. */
export const selectToken = (db: Database, tokenId: string) =>
  db
    .select({
      userId: authTokens.userId,
      digest: authTokens.digest,
      expiresAt: authTokens.expiresAt,
      revokedAt: authTokens.revokedAt,
    })
    .from(authTokens)
    .innerJoin(users, and(eq(users.id, authTokens.userId), isNull(users.disabledAt)))
    .where(eq(authTokens.id, tokenId))

/** The account that was made first: the deployment's own keys and endpoints serve it alone (D14). */
export const selectFirstUser = (db: Database) =>
  db.select({ id: users.id }).from(users).orderBy(asc(users.createdAt), asc(users.id)).limit(1)
