import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { mock } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Feed } from '../src/session/feed.ts'
import { migrateSession } from '../src/storage/session/migrations.ts'
import { RING_BYTES, storedRing } from '../src/storage/session/ring-segments.ts'
import type { Sql, SqlRow } from '../src/storage/session/sql.ts'
import { type Bench, figure } from './lib/bench.ts'

const SECONDS = 3_600
const TOKENS_PER_SECOND = 100
const TOKEN = ' word'
/** A segment of the ring and the checkpoint with it, once a second, and what it takes to begin and drop segments. */
const ROWS_PER_SECOND = 2.1

export const streamHour: Bench = {
  name: 'stream-hour',
  what: `an hour of ${TOKENS_PER_SECOND} tokens a second through the events of a session, on a clock that is set`,
  run: async (print) => {
    for (const watched of [false, true]) {
      const { rows, written, held, pushes, pushed, heap } = await anHour(watched)
      const label = watched ? 'followed' : 'followed by nobody'
      const perSecond = (count: number) => `${(count / SECONDS).toFixed(2)} / s`
      print(figure(`${label}: rows written`, perSecond(rows), `${ROWS_PER_SECOND} / s`))
      print(figure(`${label}: calls to the gateway`, perSecond(pushes), '13.4 / s'))
      print(figure(`${label}: bytes of events kept`, kib(held), kib(RING_BYTES)))
      print(figure(`${label}: heap that the hour leaves`, kib(heap)))
      print(`    ${kib(written)} handed to storage, ${kib(pushed)} of events told`)
    }
  },
}

/** What an hour of talk writes, tells and keeps. */
async function anHour(watched: boolean) {
  const database = new DatabaseSync(':memory:')
  let written = 0
  const sql: Sql = {
    rows: (query, ...values) => {
      const bound = values.map((value): SQLInputValue => {
        if (typeof value === 'string' && !query.startsWith('SELECT')) written += value.length
        return value instanceof ArrayBuffer ? new Uint8Array(value) : value
      })
      return database.prepare(query).all(...bound) as SqlRow[]
    },
    transaction: (work) => {
      database.exec('BEGIN')
      const result = work()
      database.exec('COMMIT')
      return result
    },
  }
  migrateSession(sql)
  sql.rows("INSERT INTO checkpoint (id, state, outbox, counters) VALUES (1, NULL, '{}', '{}')")
  mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  try {
    let pushes = 0
    let pushed = 0
    let reserved = 0
    const startedAtMs = Date.now()
    const feed: Feed = new Feed(
      {
        store: storedRing(sql),
        gateway: () => ({
          pushEvents: async (_, { events }) => {
            pushes++
            for (const event of events) pushed += event.length
            return { watched: true }
          },
        }),
        registration: () => ({ userId: 'u', sessionId: 's', epoch: 1 }),
        snapshot: ({ id, sequence }) => ({ id, sequence, body: '{}' }),
        clock: () => ({
          timing: { turn_id: 'turn:bench', elapsed_work_ms: Date.now() - startedAtMs },
          thoughts: null,
        }),
        save: (store) =>
          sql.transaction(() => {
            store()
            reserved = feed.record.ringReserved
            sql.rows('UPDATE checkpoint SET counters = ?', JSON.stringify(feed.record))
          }),
        reserved: () => reserved,
        newId: () => 'bench',
        failed: () => {},
        keepAlive: () => {},
      },
      { next: 1, reserved: 0, lost: 0, cut: { sequence: 0, id: 'bench' }, watched },
    )
    const changesBefore = totalChanges(database)
    const heapBefore = heapUsed()
    for (let second = 0; second < SECONDS; second++) {
      for (let token = 0; token < TOKENS_PER_SECOND; token++) {
        feed.text(TOKEN)
        mock.timers.tick(1000 / TOKENS_PER_SECOND)
        // The gateway answers.
        for (let turn = 0; turn < 4; turn++) await null
      }
    }
    const heap = heapUsed() - heapBefore
    const rows = totalChanges(database) - changesBefore
    const [kept] = sql.rows('SELECT sum(bytes) AS bytes FROM ring_segments')
    feed.close()
    return { rows, written, held: Number(kept?.bytes), pushes, pushed, heap }
  } finally {
    mock.timers.reset()
    database.close()
  }
}

const kib = (bytes: number): string => `${(bytes / 1024).toFixed(0)} KiB`

const totalChanges = (database: DatabaseSync): number =>
  Number(database.prepare('SELECT total_changes() AS count').get()?.count)

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

function heapUsed(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}
