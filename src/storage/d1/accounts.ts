import { and, asc, desc, eq, isNull, sql } from 'drizzle-orm'
import type { Database } from './database.ts'
import { orFault } from './fault.ts'
import { insertGateway, newGatewayId } from './gateways.ts'
import {
  apiKeys,
  authTokens,
  createKeys,
  deviceRevocations,
  gateways,
  receipts,
  sessions,
  userMemory,
  users,
} from './schema.ts'

/** Creates a user with its first API key and its gateway, all or nothing. */
export async function createUser(
  db: Database,
  { userId, keyId, keyDigest, nowMs }: { userId: string; keyId: string; keyDigest: string; nowMs: number },
): Promise<void> {
  await orFault(
    db.batch([
      db.insert(users).values({ id: userId, createdAt: nowMs, updatedAt: nowMs }),
      db.insert(apiKeys).values({ id: keyId, userId, digest: keyDigest, createdAt: nowMs }),
      insertGateway(db, userId, newGatewayId(), nowMs),
    ]),
  )
}

/** Digests of a user's working keys; none for an unknown or disabled user. */
export async function workingKeys(db: Database, userId: string): Promise<{ id: string; digest: string }[]> {
  return orFault(
    db
      .select({ id: apiKeys.id, digest: apiKeys.digest })
      .from(apiKeys)
      .innerJoin(users, eq(users.id, apiKeys.userId))
      .where(and(eq(apiKeys.userId, userId), isNull(apiKeys.revokedAt), isNull(users.disabledAt))),
  )
}

export type NewToken = {
  id: string
  userId: string
  digest: string
  apiKeyId: string
  createdAt: number
  expiresAt: number
}

/**
 * Stores a token for the key that it was traded for. False when the key or the account has ended since the key was
 * checked: then there is no token.
 */
export async function createToken(db: Database, token: NewToken): Promise<boolean> {
  const { id, userId, digest, apiKeyId, createdAt, expiresAt } = token
  const [inserted] = await orFault(
    db.batch([
      db.insert(authTokens).select(
        db
          .select({
            id: sql<string>`${id}`.as('id'),
            userId: users.id,
            digest: sql<string>`${digest}`.as('digest'),
            createdAt: sql<number>`${createdAt}`.as('created_at'),
            expiresAt: sql<number>`${expiresAt}`.as('expires_at'),
            revokedAt: sql<number | null>`NULL`.as('revoked_at'),
            apiKeyId: apiKeys.id,
          })
          .from(apiKeys)
          .innerJoin(users, eq(users.id, apiKeys.userId))
          .where(
            and(
              eq(apiKeys.id, apiKeyId),
              eq(apiKeys.userId, userId),
              isNull(apiKeys.revokedAt),
              isNull(users.disabledAt),
            ),
          ),
      ),
      db
        .update(apiKeys)
        .set({ lastUsedAt: createdAt })
        .where(and(eq(apiKeys.id, apiKeyId), isNull(apiKeys.revokedAt))),
    ]),
  )
  return inserted.meta.changes === 1
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

/**
 * The account that was made first: the deployment's own keys and endpoints serve it alone (D14). Its row outlives its
 * deletion, or the next account would inherit them.
 */
export const selectFirstUser = (db: Database) =>
  db.select({ id: users.id }).from(users).orderBy(asc(users.createdAt), asc(users.id)).limit(1)

export type ListedKey = { id: string; createdAtMs: number; lastUsedAtMs: number | null; current: boolean }

/** A user's working keys, oldest first. `current` is the one that the token was traded for. */
export async function listKeys(db: Database, userId: string, tokenId: string): Promise<ListedKey[]> {
  const rows = await orFault(
    db
      .select({
        id: apiKeys.id,
        createdAtMs: apiKeys.createdAt,
        lastUsedAtMs: apiKeys.lastUsedAt,
        tokenId: authTokens.id,
      })
      .from(apiKeys)
      .leftJoin(authTokens, and(eq(authTokens.id, tokenId), eq(authTokens.apiKeyId, apiKeys.id)))
      .where(and(eq(apiKeys.userId, userId), isNull(apiKeys.revokedAt)))
      .orderBy(asc(apiKeys.createdAt), asc(apiKeys.id)),
  )
  return rows.map(({ tokenId: from, ...key }) => ({ ...key, current: from !== null }))
}

/** Stores another key; false when the user has `most` working keys already. */
export async function createKey(
  db: Database,
  { id, userId, digest, nowMs }: { id: string; userId: string; digest: string; nowMs: number },
  most: number,
): Promise<boolean> {
  // Counted in the statement that inserts, so that requests at the same time cannot pass the limit together.
  const inserted = await orFault(
    db.insert(apiKeys).select(
      db
        .select({
          id: sql<string>`${id}`.as('id'),
          userId: users.id,
          digest: sql<string>`${digest}`.as('digest'),
          createdAt: sql<number>`${nowMs}`.as('created_at'),
          revokedAt: sql<number | null>`NULL`.as('revoked_at'),
          lastUsedAt: sql<number | null>`NULL`.as('last_used_at'),
        })
        .from(users)
        .where(
          and(
            eq(users.id, userId),
            isNull(users.disabledAt),
            sql`(SELECT count(*) FROM api_keys WHERE user_id = ${userId} AND revoked_at IS NULL) < ${most}`,
          ),
        ),
    ),
  )
  return inserted.meta.changes === 1
}

export type Revocation = 'revoked' | 'last' | 'unknown'

/**
 * Revokes a working key and every token that it was traded for, in one transaction. `last` when no other key works:
 * that is part of the statement, so two revocations at once leave one key. Tokens of before keys were recorded came from
 * the first key, which alone is not younger than they are.
 */
export async function revokeKey(
  db: Database,
  { keyId, userId, nowMs }: { keyId: string; userId: string; nowMs: number },
): Promise<Revocation> {
  const [revoked, , still] = await orFault(
    db.batch([
      db
        .update(apiKeys)
        .set({ revokedAt: nowMs })
        .where(
          and(
            eq(apiKeys.id, keyId),
            eq(apiKeys.userId, userId),
            isNull(apiKeys.revokedAt),
            sql`EXISTS (
              SELECT 1 FROM api_keys AS other
              WHERE other.user_id = ${userId} AND other.id <> ${keyId} AND other.revoked_at IS NULL)`,
          ),
        ),
      db
        .update(authTokens)
        .set({ revokedAt: nowMs })
        .where(
          and(
            eq(authTokens.userId, userId),
            isNull(authTokens.revokedAt),
            sql`EXISTS (
              SELECT 1 FROM api_keys AS ended
              WHERE ended.id = ${keyId} AND ended.user_id = ${userId} AND ended.revoked_at IS NOT NULL
                AND (${authTokens.apiKeyId} = ended.id
                  OR (${authTokens.apiKeyId} IS NULL AND ${authTokens.createdAt} >= ended.created_at)))`,
          ),
        ),
      db
        .select({ id: apiKeys.id })
        .from(apiKeys)
        .where(and(eq(apiKeys.id, keyId), eq(apiKeys.userId, userId), isNull(apiKeys.revokedAt))),
    ]),
  )
  if (revoked.meta.changes === 1) return 'revoked'
  return still.length > 0 ? 'last' : 'unknown'
}

/** The token counts: it was neither revoked nor has it run out. */
export async function isLiveToken(db: Database, tokenId: string, nowMs: number): Promise<boolean> {
  const [stored] = await orFault(selectToken(db, tokenId))
  return stored !== undefined && stored.revokedAt === null && stored.expiresAt > nowMs
}

/** More are traded for one key in the life of a token by nobody who needs them. */
const MAX_TOKENS_OF_KEY = 1000

/** The tokens that a revoked key took with it, the newest first. One that has run out may have a socket all the same. */
export async function tokensOfKey(
  db: Database,
  { keyId, userId }: { keyId: string; userId: string },
): Promise<string[]> {
  const rows = await orFault(
    db
      .select({ id: authTokens.id })
      .from(authTokens)
      .innerJoin(apiKeys, and(eq(apiKeys.id, keyId), eq(apiKeys.userId, authTokens.userId)))
      .where(
        and(
          eq(authTokens.userId, userId),
          sql`${authTokens.revokedAt} IS NOT NULL`,
          sql`(${authTokens.apiKeyId} = ${apiKeys.id}
            OR (${authTokens.apiKeyId} IS NULL AND ${authTokens.createdAt} >= ${apiKeys.createdAt}))`,
        ),
      )
      .orderBy(desc(authTokens.createdAt))
      .limit(MAX_TOKENS_OF_KEY),
  )
  return rows.map(({ id }) => id)
}

/** What a user has in the shared tables beside sessions, whose objects have to go first. */
const deleteBelongings = (db: Database, userId: string) =>
  [
    db.delete(authTokens).where(eq(authTokens.userId, userId)),
    db.delete(apiKeys).where(eq(apiKeys.userId, userId)),
    db.delete(createKeys).where(eq(createKeys.userId, userId)),
    db.delete(userMemory).where(eq(userMemory.userId, userId)),
    db.delete(gateways).where(eq(gateways.userId, userId)),
    db.delete(deviceRevocations).where(eq(deviceRevocations.userId, userId)),
    db.delete(receipts).where(eq(receipts.userId, userId)),
    // The row of the first account stays: what it set is not to stay with it.
    db.update(users).set({ settings: null, defaultPolicy: null }).where(eq(users.id, userId)),
  ] as const

/** From here on no token and no key of the account works, and nobody can sign in to it. */
export async function markUserDeleted(db: Database, userId: string, nowMs: number): Promise<void> {
  await orFault(
    db.batch([
      db
        .update(users)
        .set({ disabledAt: nowMs, deletedAt: nowMs, updatedAt: nowMs })
        .where(eq(users.id, userId)),
      ...deleteBelongings(db, userId),
    ]),
  )
}

/**
 * Accounts that are being deleted, and the first account's tombstone: something may still be stored under it by a
 * request that was under way. Reads the users, who are few.
 */
export async function listDeletedUsers(db: Database): Promise<string[]> {
  const rows = await orFault(
    db.select({ id: users.id }).from(users).where(sql`${users.deletedAt} IS NOT NULL`).orderBy(asc(users.id)),
  )
  return rows.map(({ id }) => id)
}

/**
 * Takes the rest of a deleted account away once it has no session left. Of the first account the bare row stays, so
 * that what the deployment keeps for it passes to nobody (D14).
 */
export async function removeDeletedUser(db: Database, userId: string): Promise<void> {
  await orFault(
    db.batch([
      ...deleteBelongings(db, userId),
      db.delete(users).where(
        and(
          eq(users.id, userId),
          sql`${users.deletedAt} IS NOT NULL`,
          sql`NOT EXISTS (SELECT 1 FROM ${sessions} WHERE ${sessions.userId} = ${userId})`,
          sql`EXISTS (
            SELECT 1 FROM users AS earlier
            WHERE (earlier.created_at, earlier.id) < (${users.createdAt}, ${users.id}))`,
        ),
      ),
    ]),
  )
}
