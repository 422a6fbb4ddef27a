import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'

/**
 * The queryable copy across sessions and users. Every row belongs to a user; every query names one. Times are epoch
 * milliseconds. Rows of a session carry `rev`: an older copy never overwrites a newer one (D26).
 */

export const users = sqliteTable(
  'users',
  {
    id: text('id').primaryKey(),
    createdAt: integer('created_at').notNull(),
    updatedAt: integer('updated_at').notNull(),
    disabledAt: integer('disabled_at'),
    /** The account is being deleted: its sessions go one by one, then the row. */
    deletedAt: integer('deleted_at'),
    /** What new sessions start with, as one JSON object; null: nothing was set. */
    settings: text('settings'),
    /** What sessions that never ran use when a device prompts them (D07), as JSON; null: nothing was published. */
    defaultPolicy: text('default_policy'),
  },
  // Who was first is asked with every request, also by those who have not shown who they are.
  (table) => [index('users_created').on(table.createdAt, table.id)],
)

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
    lastUsedAt: integer('last_used_at'),
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
  /** The key that the token was traded for: revoking it ends the token. Null for tokens from before. */
  apiKeyId: text('api_key_id'),
})

/** The gateway of each user, by the id that its devices know it by. It is made with the user and never changes. */
export const gateways = sqliteTable(
  'gateways',
  {
    userId: text('user_id')
      .primaryKey()
      .references(() => users.id, { onDelete: 'cascade' }),
    /** 32 hex digits. */
    gatewayId: text('gateway_id').notNull(),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [uniqueIndex('gateways_gateway').on(table.gatewayId)],
)

/** Revocations of devices that the gateway's own storage did not take: they hold until it has them. */
export const deviceRevocations = sqliteTable(
  'device_revocations',
  {
    userId: owner(),
    deviceId: text('device_id').notNull(),
    /** `revoked` or `token_replayed`. */
    reason: text('reason').notNull(),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.userId, table.deviceId] })],
)

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
    /** Trace events before this time are gone (D31). */
    tracesFrom: integer('traces_from').notNull().default(0),
    /** Listed live on the user's devices (D03). */
    shared: integer('shared', { mode: 'boolean' }).notNull().default(false),
    /** The root of the latest run's workspace; null: not known. */
    workspace: text('workspace'),
    /** What the user's first words make of a title (RF 11); null where there is none to be made. */
    derivedTitle: text('derived_title'),
    /** Messages of the transcript. */
    messageCount: integer('message_count').notNull().default(0),
    /** Marks of the user, which devices set. No outbox writes them. */
    pinnedAt: integer('pinned_at'),
    settledAt: integer('settled_at'),
  },
  (table) => [
    index('sessions_user_updated').on(table.userId, table.updatedAt),
    // Both columns never change: a session costs one row here, and its turns none.
    index('sessions_user_created').on(table.userId, table.createdAt),
  ],
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

/**
 * Copies of the receipts of devices' requests: which came to what, and no words (D26, D29). They hang on the user, since
 * they are for sessions that are gone.
 */
export const receipts = sqliteTable(
  'receipts',
  {
    userId: owner(),
    deviceId: text('device_id').notNull(),
    requestId: text('request_id').notNull(),
    sessionId: text('session_id').notNull(),
    epoch: integer('epoch').notNull(),
    /** `applied` or `rejected`. */
    receipt: text('receipt').notNull(),
    /** The type of the result; of an error its code. */
    code: text('code').notNull(),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.userId, table.deviceId, table.requestId, table.sessionId, table.epoch] }),
  ],
)

const inSession = () =>
  text('session_id')
    .notNull()
    .references(() => sessions.id, { onDelete: 'cascade' })

/** Facts about a user (EC 16). A forgotten one stays for a while without its content, so that nothing late brings it back. */
export const userMemory = sqliteTable(
  'user_memory',
  {
    id: text('id').primaryKey(),
    userId: owner(),
    key: text('key'),
    content: text('content').notNull(),
    localOnly: integer('local_only', { mode: 'boolean' }).notNull(),
    createdAt: integer('created_at').notNull(),
    updatedAt: integer('updated_at').notNull(),
    forgottenAt: integer('forgotten_at'),
  },
  (table) => [uniqueIndex('user_memory_key').on(table.userId, table.key)],
)

/** The copy of the facts of a session, which its object owns (EC 16). */
export const contextMemory = sqliteTable(
  'context_memory',
  {
    id: text('id').primaryKey(),
    sessionId: inSession(),
    key: text('key'),
    content: text('content').notNull(),
    localOnly: integer('local_only', { mode: 'boolean' }).notNull(),
    createdAt: integer('created_at').notNull(),
    updatedAt: integer('updated_at').notNull(),
    forgottenAt: integer('forgotten_at'),
  },
  (table) => [uniqueIndex('context_memory_key').on(table.sessionId, table.key)],
)

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
