import { migrate } from '../migrate.ts'
import type { Sql } from '../session/sql.ts'

/** What a user's gateway keeps (docs/storage.md). Migrations are only ever added; a shipped one never changes (D32). */
export const GATEWAY_MIGRATIONS: readonly (readonly string[])[] = [
  [
    `CREATE TABLE gateway (
       id INTEGER PRIMARY KEY CHECK (id = 1), user_id TEXT NOT NULL, gateway_id TEXT, instance_id TEXT NOT NULL,
       listen_until INTEGER
     )`,
    `CREATE TABLE devices (
       device_id TEXT PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, platform TEXT, host_digest TEXT,
       install_digest TEXT, paired_at INTEGER NOT NULL, last_seen_at INTEGER, token_digest TEXT, expires_at INTEGER,
       family TEXT, revoked_reason TEXT, ended_at INTEGER
     ) WITHOUT ROWID`,
    `CREATE TABLE retired_tokens (
       device_id TEXT NOT NULL, n INTEGER NOT NULL, fingerprint TEXT NOT NULL, PRIMARY KEY (device_id, n)
     ) WITHOUT ROWID`,
    `CREATE TABLE challenge (id INTEGER PRIMARY KEY CHECK (id = 1), body TEXT NOT NULL)`,
    `CREATE TABLE pairing_failures (id INTEGER PRIMARY KEY CHECK (id = 1), body TEXT NOT NULL)`,
    `CREATE TABLE connect_requests (request_id TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID`,
    `CREATE TABLE connect_denials (address TEXT PRIMARY KEY, until INTEGER NOT NULL) WITHOUT ROWID`,
    `CREATE TABLE live_rows (
       session_id TEXT PRIMARY KEY, epoch INTEGER NOT NULL, body TEXT NOT NULL, touched_at INTEGER NOT NULL,
       is_asked INTEGER NOT NULL
     ) WITHOUT ROWID`,
    `CREATE TABLE delistings (session_id TEXT PRIMARY KEY, epoch INTEGER NOT NULL) WITHOUT ROWID`,
  ],
  [
    `CREATE TABLE request_sessions (
       seq INTEGER PRIMARY KEY, device_id TEXT NOT NULL, request_id TEXT NOT NULL, session_id TEXT NOT NULL,
       epoch INTEGER NOT NULL, created_at INTEGER NOT NULL, UNIQUE (device_id, request_id)
     )`,
    `CREATE TABLE host_receipts (
       seq INTEGER PRIMARY KEY, device_id TEXT NOT NULL, request_id TEXT NOT NULL, digest TEXT NOT NULL,
       operation TEXT NOT NULL, receipt TEXT NOT NULL, result TEXT, created_at INTEGER NOT NULL,
       UNIQUE (device_id, request_id)
     )`,
  ],
]

/** Brings the tables of a gateway's object up to date. */
export const migrateGateway = (
  sql: Sql,
  migrations: readonly (readonly string[])[] = GATEWAY_MIGRATIONS,
): void => migrate(sql, migrations, 'gateway')
