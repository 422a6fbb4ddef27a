import { and, eq, isNull, sql } from 'drizzle-orm'
import type { LocalPreferences } from '../../protocol/execution/execute.ts'
import type { ExecutePolicy } from '../../protocol/execution/policy.ts'
import type { Database } from './database.ts'
import { orFault } from './fault.ts'
import { users } from './schema.ts'

/** What new sessions of a user start with; what nobody set is absent. */
export type HostSettings = { harness?: string; model?: string; effort?: string }

/** Null takes a setting away; what is absent stays. */
export type HostSettingsPatch = { harness?: string | null; model?: string | null; effort?: string | null }

/** Of an account that is gone: null. */
export async function loadSettings(db: Database, userId: string): Promise<HostSettings | null> {
  const rows = await orFault(
    db
      .select({ settings: users.settings })
      .from(users)
      .where(and(eq(users.id, userId), isNull(users.deletedAt))),
  )
  return toSettings(rows)
}

/** Changes settings in one statement, so that two devices at once lose nothing of each other. The settings as they are then. */
export async function patchSettings(
  db: Database,
  userId: string,
  patch: HostSettingsPatch,
): Promise<HostSettings | null> {
  const rows = await orFault(
    db
      .update(users)
      .set({ settings: sql`json_patch(coalesce(${users.settings}, '{}'), ${JSON.stringify(patch)})` })
      .where(and(eq(users.id, userId), isNull(users.deletedAt)))
      .returning({ settings: users.settings }),
  )
  return toSettings(rows)
}

function toSettings([row]: readonly { settings: string | null }[]): HostSettings | null {
  if (row === undefined) return null
  return row.settings === null ? {} : JSON.parse(row.settings)
}

/** What a session that never ran uses when a device prompts it (D07). */
export type DefaultPolicy = {
  policy: ExecutePolicy
  localPreferences: LocalPreferences
  updatedAtMs: number
}

/** Null: the user has published none. It was checked when it was stored. */
export async function loadDefaultPolicy(db: Database, userId: string): Promise<DefaultPolicy | null> {
  const rows = await orFault(
    db
      .select({ stored: users.defaultPolicy })
      .from(users)
      .where(and(eq(users.id, userId), isNull(users.deletedAt))),
  )
  const stored = rows[0]?.stored ?? null
  return stored === null ? null : JSON.parse(stored)
}

/** Stores it in place of the one before; false when the account is gone. */
export async function saveDefaultPolicy(
  db: Database,
  userId: string,
  policy: DefaultPolicy,
): Promise<boolean> {
  const written = await orFault(
    db
      .update(users)
      .set({ defaultPolicy: JSON.stringify(policy) })
      .where(and(eq(users.id, userId), isNull(users.deletedAt))),
  )
  return written.meta.changes > 0
}
