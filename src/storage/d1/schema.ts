import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/**
 * The queryable copy across sessions and users. Every row belongs to a user; every query names one. Times are epoch
 * milliseconds. Rows of a session carry `rev`: an older copy never overwrites a newer one (D26).
 */

export const users = sqliteTable('users', {
  id: text('id').primaryKey(),
  createdAt: integer('created_at').notNull(),
  updatedAt: integer('updated_at').notNull(),
  disabledAt: integer('disabled_at'),
})

const owner = () =>
  text('user_id')
    .notNull()
    .references(() => users.id, { onDelete: 'cascade' })

/** API keys by the SHA-256 digest of the whole key. */
export const apiKeys = sqliteTable(
  'api_keys',
  {
    id: text('id').primaryKey(),
    userId: owner(),
    digest: text('digest').notNull(),
    createdAt: integer('created_at').notNull(),
    revokedAt: integer('revoked_at'),
  },
  (table) => [index('api_keys_user').on(table.userId)],
)

/** Session tokens by the SHA-256 digest of the whole token. */
export const authTokens = sqliteTable('auth_tokens', {
  id: text('id').primaryKey(),
  userId: owner(),
  digest: text('digest').notNull(),
  createdAt: integer('created_at').notNull(),
  expiresAt: integer('expires_at').notNull(),
  revokedAt: integer('revoked_at'),
})

export const sessions = sqliteTable(
  'sessions',
  {
    id: text('id').primaryKey(),
    userId: owner(),
    title: text('title'),
    scope: text('scope'),
    keyId: text('key_id'),
    createdAt: integer('created_at').notNull(),
    updatedAt: integer('updated_at').notNull(),
    archivedAt: integer('archived_at'),
    rev: integer('rev').notNull(),
  },
  (table) => [index('sessions_user_updated').on(table.userId, table.updatedAt)],
)

/** Which session a create key made (D20, U16). */
export const createKeys = sqliteTable(
  'create_keys',
  {
    userId: owner(),
    key: text('key').notNull(),
    digest: text('digest').notNull(),
    sessionId: text('session_id').notNull(),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.userId, table.key] })],
)

const inSession = () =>
  text('session_id')
    .notNull()
    .references(() => sessions.id, { onDelete: 'cascade' })

/** The transcript: a message with the tool calls it made. */
export const messages = sqliteTable(
  'messages',
  {
    sessionId: inSession(),
    seq: integer('seq').notNull(),
    id: text('id').notNull(),
    runId: text('run_id').notNull(),
    role: text('role').notNull(),
    provider: text('provider'),
    model: text('model'),
    content: text('content').notNull(),
    /** JSON array. */
    calls: text('calls'),
    interrupted: integer('interrupted', { mode: 'boolean' }).notNull(),
    createdAt: integer('created_at').notNull(),
    rev: integer('rev').notNull(),
  },
  (table) => [primaryKey({ columns: [table.sessionId, table.seq] })],
)

/** One row per turn: its trace events and its upstream calls, both as JSON arrays. */
export const turns = sqliteTable(
  'turns',
  {
    sessionId: inSession(),
    seq: integer('seq').notNull(),
    id: text('id').notNull(),
    runId: text('run_id').notNull(),
    status: text('status').notNull(),
    trace: text('trace').notNull(),
    calls: text('calls').notNull(),
    startedAt: integer('started_at').notNull(),
    endedAt: integer('ended_at'),
    rev: integer('rev').notNull(),
  },
  (table) => [primaryKey({ columns: [table.sessionId, table.seq] })],
)
