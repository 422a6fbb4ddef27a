import { DatabaseSync, type SQLOutputValue } from 'node:sqlite'
import type { Sql, SqlRow } from '../../../src/storage/session/sql.ts'

/** As an object's SQLite gives it. */
const asStored = ([column, value]: [string, SQLOutputValue]) => [
  column,
  value instanceof Uint8Array ? value.slice().buffer : value,
]

/** A database in memory behind the interface of an object’s SQLite. */
export function makeNodeSql(): Sql {
  const database = new DatabaseSync(':memory:')
  return {
    rows: (query, ...values) => {
      const bound = values.map((value) => (value instanceof ArrayBuffer ? new Uint8Array(value) : value))
      const rows = database.prepare(query).all(...bound)
      return rows.map((row) => Object.fromEntries(Object.entries(row).map(asStored))) as SqlRow[]
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
