import { migrateSession } from '../../../../src/storage/session/migrations.ts'
import type { Sql } from '../../../../src/storage/session/sql.ts'

/** One rule of the session’s storage, checked on an empty SQLite of whatever kind. */
export type StorageRule = { name: string; check: (sql: Sql) => void }

/** Adds rules about a database with the current tables. */
export const ruleInto = (rules: StorageRule[]) => (name: string, check: (sql: Sql) => void) =>
  rules.push({
    name,
    check: (sql) => {
      migrateSession(sql)
      check(sql)
    },
  })

export const NOW = 1_760_000_000_000

export const count = (sql: Sql, table: string) => sql.rows(`SELECT count(*) AS n FROM ${table}`)[0]?.n
