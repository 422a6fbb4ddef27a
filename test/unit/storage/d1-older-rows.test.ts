import { readdirSync, readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'

/** D1's migrations, in their order. */
const MIGRATIONS = readdirSync('migrations')
  .filter((name) => name.endsWith('.sql'))
  .sort()
  .map((name) => ({
    name,
    statements: readFileSync(`migrations/${name}`, 'utf8').split('--> statement-breakpoint'),
  }))

function migrate(database: DatabaseSync, migrations: typeof MIGRATIONS): void {
  for (const { statements } of migrations) for (const statement of statements) database.exec(statement)
}

type Table = { name: string; columns: { name: string; type: string }[] }

const tablesOf = (database: DatabaseSync): Table[] =>
  database
    .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name")
    .all()
    .map(({ name }) => ({
      name: String(name),
      columns: database
        .prepare(`SELECT name, type FROM pragma_table_info('${name}')`)
        .all()
        .map((column) => ({ name: String(column.name), type: String(column.type).toLowerCase() })),
    }))

/** One row in each table, whose references all fit. */
function fill(database: DatabaseSync, tables: Table[], text: string): void {
  database.exec('PRAGMA foreign_keys = OFF')
  for (const { name, columns } of tables) {
    const names = columns.map((column) => `"${column.name}"`).join(', ')
    const values = columns.map(({ type }) => (type === 'text' ? text : 1))
    database
      .prepare(`INSERT INTO "${name}" (${names}) VALUES (${values.map(() => '?').join(', ')})`)
      .run(...values)
  }
}

const rowsOf = (database: DatabaseSync, { name, columns }: Table) =>
  database.prepare(`SELECT ${columns.map((column) => `"${column.name}"`).join(', ')} FROM "${name}"`).all()

describe.each(MIGRATIONS.slice(0, -1).map(({ name }, index) => ({ name, applied: index + 1 })))(
  'D1 as it was after $name',
  ({ applied }) => {
    it('[D32] keeps every row through the migrations that follow, each value as it was', () => {
      const database = new DatabaseSync(':memory:')
      migrate(database, MIGRATIONS.slice(0, applied))
      const tables = tablesOf(database)
      fill(database, tables, 'kept')
      const before = tables.map((table) => rowsOf(database, table))
      migrate(database, MIGRATIONS.slice(applied))
      expect(tables.map((table) => rowsOf(database, table))).toEqual(before)
      expect(before.every((rows) => rows.length === 1)).toBe(true)
      expect(database.prepare('PRAGMA foreign_key_check').all()).toEqual([])
    })

    it('[D32] is written by a Worker of that release after the migrations as before them', () => {
      const older = new DatabaseSync(':memory:')
      migrate(older, MIGRATIONS.slice(0, applied))
      const database = new DatabaseSync(':memory:')
      migrate(database, MIGRATIONS)
      const tables = tablesOf(older)
      fill(database, tables, 'late')
      expect(tables.map((table) => rowsOf(database, table).length)).toEqual(tables.map(() => 1))
    })
  },
)

it('[D42] users of before get a gateway of their own, and accounts that are being deleted none', () => {
  const database = new DatabaseSync(':memory:')
  const later = MIGRATIONS.findIndex(({ name }) => name.includes('gateway'))
  migrate(database, MIGRATIONS.slice(0, later))
  const insert = database.prepare(
    'INSERT INTO users (id, created_at, updated_at, deleted_at) VALUES (?, 7, 8, ?)',
  )
  insert.run('one', null)
  insert.run('two', null)
  insert.run('going', 9)
  migrate(database, MIGRATIONS.slice(later))
  const made = database.prepare('SELECT user_id, gateway_id, created_at FROM gateways ORDER BY user_id').all()
  const gateway_id = expect.stringMatching(/^[0-9a-f]{32}$/)
  expect(made).toEqual([
    { user_id: 'one', gateway_id, created_at: 7 },
    { user_id: 'two', gateway_id, created_at: 7 },
  ])
  expect(made[0]?.gateway_id).not.toBe(made[1]?.gateway_id)
})
