/** A value that SQLite keeps. */
export type SqlValue = string | number | null | ArrayBuffer

export type SqlRow = Record<string, SqlValue>

/** The SQLite of one object: what a Durable Object offers, and what any SQLite can. */
export interface Sql {
  rows(query: string, ...values: SqlValue[]): SqlRow[]
  /** Runs all of `work` or nothing of it; `work` must not wait for anything. */
  transaction<T>(work: () => T): T
}

/** The text in a column that is never null. */
export function textOf(row: SqlRow, column: string): string {
  const value = row[column]
  if (typeof value !== 'string') throw new Error(`invariant broken: column ${column} holds no text`)
  return value
}

export function numberOf(row: SqlRow, column: string): number {
  const value = row[column]
  if (typeof value !== 'number') throw new Error(`invariant broken: column ${column} holds no number`)
  return value
}

/** The bytes in a column of blobs that is never null. */
export function bytesOf(row: SqlRow, column: string): Uint8Array {
  const value = row[column]
  if (!(value instanceof ArrayBuffer)) throw new Error(`invariant broken: column ${column} holds no bytes`)
  return new Uint8Array(value)
}

export const optionalText = (row: SqlRow, column: string): string | null =>
  row[column] === null || row[column] === undefined ? null : textOf(row, column)

export const optionalNumber = (row: SqlRow, column: string): number | null =>
  row[column] === null || row[column] === undefined ? null : numberOf(row, column)
