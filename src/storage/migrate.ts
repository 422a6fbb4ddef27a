import { numberOf, type Sql, textOf } from './session/sql.ts'

/**
 * Brings the object's tables up to date, in one transaction. An object that was written by a newer release, or by one
 * whose migrations read differently, is refused rather than guessed at.
 */
export function migrate(sql: Sql, migrations: readonly (readonly string[])[], what: string): void {
  sql.transaction(() => {
    sql.rows(
      'CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, digest TEXT NOT NULL)',
    )
    const applied = sql.rows('SELECT version, digest FROM schema_migrations ORDER BY version')
    for (const row of applied) {
      const version = numberOf(row, 'version')
      const known = migrations[version - 1]
      if (known === undefined)
        throw new Error(`this ${what} was stored by a newer release (schema ${version})`)
      if (digestOf(known) !== textOf(row, 'digest'))
        throw new Error(`migration ${version} has changed after it shipped`)
    }
    for (const [index, statements] of migrations.entries()) {
      if (index < applied.length) continue
      for (const statement of statements) sql.rows(statement)
      sql.rows(
        'INSERT INTO schema_migrations (version, digest) VALUES (?, ?)',
        index + 1,
        digestOf(statements),
      )
    }
  })
}

/** FNV-1a over the statements without their layout: tells an edit, needs no secrecy. */
function digestOf(statements: readonly string[]): string {
  let hash = 0x811c9dc5
  for (const char of statements.join(';').replace(/\s+/g, ' ')) {
    hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193) >>> 0
  }
  return hash.toString(16)
}
