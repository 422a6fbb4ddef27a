import { workingKeys } from '../storage/d1/accounts.ts'
import type { Database } from '../storage/d1/database.ts'
import { digestOf } from '../storage/digest.ts'
import { keyUserId, sameDigest } from './secrets.ts'

/** Whose key this is; null for a malformed, unknown or revoked one and for one of a disabled user: all look alike (EC 2.3). */
export async function checkApiKey(
  db: Database,
  key: string,
): Promise<{ userId: string; keyId: string } | null> {
  const userId = keyUserId(key)
  // Computed for a malformed key too: its answer takes no shorter way.
  const digest = await digestOf(key)
  const known = userId === null ? [] : await workingKeys(db, userId)
  const match = known.find((stored) => sameDigest(stored.digest, digest))
  return userId === null || match === undefined ? null : { userId, keyId: match.id }
}
