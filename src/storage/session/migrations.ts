import { migrate } from '../migrate.ts'
import type { Sql } from './sql.ts'

/** What a session object keeps (docs/storage.md). Migrations are only ever added; a shipped one never changes (D32). */
export const SESSION_MIGRATIONS: readonly (readonly string[])[] = [
  [
    `CREATE TABLE session (
       id INTEGER PRIMARY KEY CHECK (id = 1), session_id TEXT NOT NULL, user_id TEXT NOT NULL, title TEXT, scope TEXT,
       key_id TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, archived_at INTEGER, deleted_at INTEGER,
       rev INTEGER NOT NULL
     )`,
    `CREATE TABLE checkpoint (
       id INTEGER PRIMARY KEY CHECK (id = 1), state TEXT, outbox TEXT NOT NULL, counters TEXT NOT NULL
     )`,
    `CREATE TABLE run_input (id INTEGER PRIMARY KEY CHECK (id = 1), body TEXT NOT NULL)`,
    `CREATE TABLE messages (
       seq INTEGER PRIMARY KEY, id TEXT NOT NULL, run_id TEXT NOT NULL, role TEXT NOT NULL, provider TEXT, model TEXT,
       content TEXT NOT NULL, interrupted INTEGER NOT NULL, local_only INTEGER NOT NULL, created_at INTEGER NOT NULL,
       rev INTEGER NOT NULL
     )`,
    `CREATE TABLE tool_calls (
       message_seq INTEGER NOT NULL, ordinal INTEGER NOT NULL, id TEXT NOT NULL, provider_call_id TEXT,
       name TEXT NOT NULL, arguments TEXT NOT NULL, opaque TEXT, status TEXT NOT NULL, result TEXT,
       is_error INTEGER NOT NULL, diff_status TEXT, created_at INTEGER NOT NULL, completed_at INTEGER,
       PRIMARY KEY (message_seq, ordinal)
     ) WITHOUT ROWID`,
    `CREATE UNIQUE INDEX tool_calls_id ON tool_calls (id)`,
    `CREATE TABLE approvals (
       id TEXT PRIMARY KEY, target_type TEXT NOT NULL, target_id TEXT NOT NULL, decision TEXT NOT NULL, reason TEXT,
       created_at INTEGER NOT NULL
     ) WITHOUT ROWID`,
    `CREATE TABLE plans (
       id TEXT PRIMARY KEY, content TEXT NOT NULL, status TEXT NOT NULL, created_at INTEGER NOT NULL,
       updated_at INTEGER NOT NULL
     ) WITHOUT ROWID`,
    `CREATE TABLE turns (
       seq INTEGER PRIMARY KEY, turn_id TEXT NOT NULL UNIQUE, run_id TEXT NOT NULL, turn INTEGER NOT NULL,
       status TEXT NOT NULL, trace TEXT NOT NULL, calls TEXT NOT NULL, outcome TEXT, started_at INTEGER NOT NULL,
       ended_at INTEGER, rev INTEGER NOT NULL
     )`,
    `CREATE TABLE idempotency (
       key TEXT PRIMARY KEY, digest TEXT NOT NULL, turn_id TEXT, outcome TEXT, created_at INTEGER NOT NULL
     ) WITHOUT ROWID`,
    `CREATE TABLE ring_segments (
       first_seq INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL, bytes INTEGER NOT NULL, body TEXT NOT NULL
     )`,
    `CREATE TABLE chunks (ref TEXT NOT NULL, n INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (ref, n)) WITHOUT ROWID`,
  ],
  [
    `ALTER TABLE plans ADD COLUMN version INTEGER NOT NULL DEFAULT 1`,
    `CREATE TABLE memories (
       id TEXT PRIMARY KEY, key TEXT UNIQUE, content TEXT NOT NULL, local_only INTEGER NOT NULL,
       created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
     ) WITHOUT ROWID`,
    `CREATE TABLE memory_ops (seq INTEGER PRIMARY KEY, body TEXT NOT NULL)`,
  ],
  [
    `ALTER TABLE messages ADD COLUMN seen TEXT`,
    `ALTER TABLE turns ADD COLUMN policy TEXT`,
    `ALTER TABLE approvals ADD COLUMN outcome TEXT`,
    `CREATE TABLE policies (digest TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID`,
  ],
  [
    `CREATE TABLE sealed_contents (ref TEXT PRIMARY KEY, envelope TEXT NOT NULL, weight INTEGER) WITHOUT ROWID`,
    `ALTER TABLE memories ADD COLUMN replaces TEXT`,
    `ALTER TABLE run_input ADD COLUMN stripped INTEGER NOT NULL DEFAULT 0`,
  ],
  [
    `ALTER TABLE session ADD COLUMN epoch INTEGER`,
    `ALTER TABLE session ADD COLUMN listed INTEGER NOT NULL DEFAULT 0`,
    `ALTER TABLE session ADD COLUMN sharing_off INTEGER NOT NULL DEFAULT 0`,
  ],
  [
    // Events were kept in another form before anybody could ask for them.
    `DELETE FROM ring_segments`,
    `ALTER TABLE messages ADD COLUMN clock TEXT`,
    `ALTER TABLE turns ADD COLUMN run_outcome TEXT`,
    `ALTER TABLE turns ADD COLUMN run_clock TEXT`,
    `ALTER TABLE session ADD COLUMN settings TEXT`,
    `CREATE TABLE receipts (
       seq INTEGER PRIMARY KEY, device_id TEXT NOT NULL, epoch INTEGER NOT NULL, request_id TEXT NOT NULL,
       digest TEXT NOT NULL, receipt TEXT NOT NULL, result TEXT NOT NULL, created_at INTEGER NOT NULL,
       UNIQUE (device_id, epoch, request_id)
     )`,
    `CREATE TABLE prompt_queue (
       seq INTEGER PRIMARY KEY, id TEXT NOT NULL, text TEXT NOT NULL, local_only INTEGER NOT NULL, actor TEXT NOT NULL,
       created_at INTEGER NOT NULL
     )`,
    `CREATE TABLE settled (id TEXT PRIMARY KEY, outcome TEXT NOT NULL) WITHOUT ROWID`,
    `CREATE TABLE uploads (
       device_id TEXT NOT NULL, attachment_id TEXT NOT NULL, mime_type TEXT NOT NULL, total_bytes INTEGER NOT NULL,
       stored_bytes INTEGER NOT NULL, complete INTEGER NOT NULL, handle TEXT NOT NULL, touched_at INTEGER NOT NULL,
       PRIMARY KEY (device_id, attachment_id)
     ) WITHOUT ROWID`,
    `CREATE TABLE upload_chunks (
       device_id TEXT NOT NULL, attachment_id TEXT NOT NULL, start INTEGER NOT NULL, body BLOB NOT NULL,
       PRIMARY KEY (device_id, attachment_id, start)
     ) WITHOUT ROWID`,
  ],
]

/** Brings the tables of a session's object up to date. */
export const migrateSession = (
  sql: Sql,
  migrations: readonly (readonly string[])[] = SESSION_MIGRATIONS,
): void => migrate(sql, migrations, 'session')
