import { expect } from 'vitest'
import { eachApproval } from '../../../../src/storage/session/export-rows.ts'
import { loadMessages } from '../../../../src/storage/session/messages.ts'
import { migrateSession, SESSION_MIGRATIONS } from '../../../../src/storage/session/migrations.ts'
import { loadRunInput } from '../../../../src/storage/session/run-input.ts'
import { loadSession, saveSession } from '../../../../src/storage/session/session-row.ts'
import type { Sql } from '../../../../src/storage/session/sql.ts'
import { loadTurns } from '../../../../src/storage/session/turns.ts'
import { executeRequest } from '../../../support/node/run-request.ts'
import { makeSession, makeTurn } from './builders.ts'
import { count, NOW, type StorageRule } from './rules.ts'

const OLD = ['CREATE TABLE a (x INTEGER)']
const NEW = ['ALTER TABLE a ADD COLUMN y TEXT', "UPDATE a SET y = 'from ' || x"]

export const MIGRATION_RULES: StorageRule[] = [
  {
    name: '[D32] migrations run once, and again they find nothing to do',
    check: (sql) => {
      migrateSession(sql)
      const tables = () => sql.rows('SELECT name, sql FROM sqlite_master ORDER BY name')
      const before = tables()
      saveSession(sql, makeSession())
      migrateSession(sql)
      expect(tables()).toEqual(before)
      expect(loadSession(sql)).toEqual(makeSession())
    },
  },
  {
    name: '[D32] an older database with rows is brought up to date, rows and all',
    check: (sql) => {
      migrateSession(sql, [OLD])
      sql.rows('INSERT INTO a (x) VALUES (1), (2)')
      migrateSession(sql, [OLD, NEW])
      expect(sql.rows('SELECT * FROM a')).toEqual([
        { x: 1, y: 'from 1' },
        { x: 2, y: 'from 2' },
      ])
      expect(sql.rows('SELECT version FROM schema_migrations')).toEqual([{ version: 1 }, { version: 2 }])
    },
  },
  ...SESSION_MIGRATIONS.slice(0, -1).map((_, index) => ({
    name: `[D32] what schema ${index + 1} of a session kept is read by this release`,
    check: (sql: Sql) => {
      migrateSession(sql, SESSION_MIGRATIONS.slice(0, index + 1))
      sql.rows(
        `INSERT INTO session (id, session_id, user_id, title, created_at, updated_at, rev)
         VALUES (1, 's', 'u', 't', ${NOW}, ${NOW}, 0)`,
      )
      sql.rows(
        `INSERT INTO messages (seq, id, run_id, role, content, interrupted, local_only, created_at, rev)
         VALUES (1, 'm1', 'run', 'assistant', 'kept', 0, 1, ${NOW}, 1)`,
      )
      sql.rows(
        `INSERT INTO turns (seq, turn_id, run_id, turn, status, trace, calls, started_at, rev)
         VALUES (1, 't1', 'run', 1, 'running', '[]', '[]', ${NOW}, 1)`,
      )
      sql.rows(
        `INSERT INTO approvals (id, target_type, target_id, decision, created_at)
         VALUES ('a1', 'gate', 'g1', 'approved', ${NOW})`,
      )
      sql.rows('INSERT INTO run_input (id, body) VALUES (1, ?)', JSON.stringify(executeRequest('kept')))
      migrateSession(sql)
      expect(loadSession(sql)).toEqual(makeSession())
      expect(loadRunInput(sql).input).toEqual({ text: 'kept' })
      expect(loadMessages(sql, 1, 9)).toEqual([
        expect.objectContaining({ id: 'm1', text: 'kept', localOnly: true, calls: [] }),
      ])
      expect(loadTurns(sql, 1, 9)).toEqual([makeTurn(1)])
      expect([...eachApproval(sql)].map(({ id, decision }) => [id, decision])).toEqual([['a1', 'approved']])
    },
  })),
  {
    name: '[D32] a migration that fails leaves the database at its old version',
    check: (sql) => {
      migrateSession(sql, [OLD])
      expect(() => migrateSession(sql, [OLD, [...NEW, 'CREATE TABLE a (again INTEGER)']])).toThrow()
      expect(sql.rows('SELECT version FROM schema_migrations')).toEqual([{ version: 1 }])
      expect(sql.rows("SELECT name FROM pragma_table_info('a')")).toEqual([{ name: 'x' }])
    },
  },
  {
    name: '[D32] a changed history and a newer release are refused',
    check: (sql) => {
      migrateSession(sql, [OLD, NEW])
      expect(() => migrateSession(sql, [['CREATE TABLE a (x TEXT)'], NEW])).toThrow(/migration 1 has changed/)
      expect(() => migrateSession(sql, [OLD])).toThrow(/newer release \(schema 2\)/)
    },
  },
  {
    name: '[D32] another layout of the same statements is no change',
    check: (sql) => {
      migrateSession(sql, [OLD])
      migrateSession(sql, [['CREATE TABLE a\n   (x INTEGER)']])
      expect(count(sql, 'a')).toBe(0)
    },
  },
]
