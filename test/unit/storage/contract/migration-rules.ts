import { expect } from 'vitest'
import { migrateSession } from '../../../../src/storage/session/migrations.ts'
import { loadSession, saveSession } from '../../../../src/storage/session/session-row.ts'
import { makeSession } from './builders.ts'
import { count, type StorageRule } from './rules.ts'

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
