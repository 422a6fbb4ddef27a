import { DatabaseSync } from 'node:sqlite'
import type { Sql, SqlRow } from '../../../src/storage/session/sql.ts'

/** A database in memory behind the interface of an object’s SQLite. */
export function makeNodeSql(): Sql {
  const database = new DatabaseSync(':memory:')
  return {
    rows: (query, ...values) => {
      const bound = values.map((value) => (value instanceof ArrayBuffer ? new Uint8Array(value) : value))
      return database.prepare(query).all(...bound) as SqlRow[]
    },
    transaction: (work) => {
      database.exec('BEGIN')
      try {
        const result = work()
        database.exec('COMMIT')
        return result
      } catch (error) {
        database.exec('ROLLBACK')
        throw error
      }
    },
  }
}
