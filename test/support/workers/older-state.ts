import { evictDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { migrateSession, SESSION_MIGRATIONS } from '../../../src/storage/session/migrations.ts'
import type { SqlValue } from '../../../src/storage/session/sql.ts'
import of_0_1_0 from '../older-state/0.1.0.json'
import of_0_2_0 from '../older-state/0.2.0.json'
import of_0_3_0 from '../older-state/0.3.0.json'
import of_0_5_0 from '../older-state/0.5.0.json'
import type { Client } from './router.ts'
import { inside } from './session-object.ts'

/** Where a session stood when the older release stored it. */
export const STATES = [
  'idle',
  'awaiting_tool',
  'awaiting_decision',
  'awaiting_plan',
  'locked',
  'owed',
] as const
export type OlderState = (typeof STATES)[number]

type Row = Record<string, SqlValue>
type Stored = { session_id: string; user_id: string; tables: Record<string, Row[]> }

/**
 * Every row of session objects, as the release of that name stored them: written down by running it, never edited. A
 * release that changes what is stored adds a file of its own.
 */
export const RELEASES: Record<string, Record<OlderState, Stored>> = {
  '0.1.0': of_0_1_0,
  '0.2.0': of_0_2_0,
  '0.3.0': of_0_3_0,
  '0.5.0': of_0_5_0,
}

/** How long ago a restored session was last written to: nothing of it is old, and its leases still run. */
const AGE_MS = 60_000

/**
 * Every time in the rows, also inside their JSON, is in epoch milliseconds, and nothing else there has thirteen digits:
 * ids have hyphens before that.
 */
const TIME = /\b\d{13}\b/g

/** The rows with all their times moved by so much. */
function shifted(tables: Stored['tables'], byMs: number): Stored['tables'] {
  const moved: Stored['tables'] = JSON.parse(JSON.stringify(tables), (_key, value: unknown) => {
    if (typeof value === 'number') return /^\d{13}$/.test(String(value)) ? value + byMs : value
    return typeof value === 'string' ? value.replace(TIME, (time) => String(Number(time) + byMs)) : value
  })
  return moved
}

/**
 * Puts what the older release stored into an object, for this client, and lets this release start it. It is as if it had
 * been stored just now: with the times it was written down with, alarms would ring or not by the date of the test. Stop
 * the clock before, so that they ring only when the test rings them.
 */
export async function restore(client: Client, release: string, state: OlderState): Promise<string> {
  const { session_id: id, user_id: userId, tables: recorded } = storedBy(release, state)
  const tables = shifted(recorded, Date.now() - AGE_MS - Number(recorded.session?.[0]?.updated_at))
  const schema = tables.schema_migrations?.length ?? 0
  await inside(id, (sql, { storage }) =>
    storage.transactionSync(() => {
      migrateSession(sql, SESSION_MIGRATIONS.slice(0, schema))
      sql.rows('DELETE FROM schema_migrations')
      for (const [table, rows] of Object.entries(tables)) {
        for (const row of rows) {
          const mine = Object.values(row).map((value) => (value === userId ? client.userId : value))
          const places = mine.map(() => '?').join(', ')
          sql.rows(`INSERT INTO ${table} (${Object.keys(row).join(', ')}) VALUES (${places})`, ...mine)
        }
      }
    }),
  )
  const [session] = tables.session ?? []
  await env.DB.prepare(
    'INSERT INTO sessions (id, user_id, title, created_at, updated_at, rev) VALUES (?, ?, ?, ?, ?, 0)',
  )
    .bind(id, client.userId, session?.title, session?.created_at, session?.created_at)
    .run()
  await evictDurableObject(env.SESSION.getByName(id))
  return id
}

function storedBy(release: string, state: OlderState): Stored {
  const stored = RELEASES[release]?.[state]
  if (!stored) throw new Error(`nothing is written down of ${release}, ${state}`)
  return stored
}
