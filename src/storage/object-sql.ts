import type { Sql, SqlRow } from './session/sql.ts'

/** The object's own SQLite behind the interface that storage uses. */
export const makeSql = (storage: DurableObjectStorage): Sql => ({
  rows: (query, ...values) => storage.sql.exec<SqlRow>(query, ...values).toArray(),
  transaction: (work) => storage.transactionSync(work),
})
