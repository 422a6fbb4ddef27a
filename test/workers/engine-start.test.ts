import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import { RunEngine } from '../../src/session/engine.ts'
import { EMPTY_OUTBOX, loadCheckpoint, saveCheckpoint } from '../../src/storage/session/checkpoint.ts'
import { migrateSession } from '../../src/storage/session/migrations.ts'
import { inside } from '../support/workers/session-object.ts'

test.each([
  ['was about to be sent when it ended', null],
  ['was due when it ended', 1],
  ['is due later', Date.now() + 3_600_000],
])(
  '[D26][U06] an object that starts leaves its alarm where it is, when what it owes D1 %s',
  async (_what, retryAtMs) => {
    const alarms = await inside(crypto.randomUUID(), (sql) => {
      migrateSession(sql)
      const outbox = { ...EMPTY_OUTBOX, session: true, retryAtMs }
      saveCheckpoint(sql, { ...loadCheckpoint(sql), outbox })
      const set: (number | null)[] = []
      const engine = new RunEngine({
        sql,
        db: env.DB,
        gateway: () => ({ putRow: async () => true, removeRow: async () => {} }),
        events: () => ({ pushEvents: async () => ({ watched: false }) }),
        becameIdle: () => {},
        providers: new Map(),
        sealed: null,
        setAlarm: (atMs) => set.push(atMs),
        sync: async () => {},
        keepAlive: () => {},
      })
      engine.start()
      return set
    })
    // An object that is started by its alarm and moves it before it has rung is started for nothing, again and again.
    expect(alarms).toEqual([])
  },
)

test('[U06][D21] while something waits that nobody will ask for, an alarm is set: the object may die before it begins', async () => {
  const alarms = await inside(crypto.randomUUID(), (sql) => {
    migrateSession(sql)
    const set: (number | null)[] = []
    let waits = true
    const engine = new RunEngine({
      sql,
      db: env.DB,
      gateway: () => ({ putRow: async () => true, removeRow: async () => {} }),
      events: () => ({ pushEvents: async () => ({ watched: false }) }),
      becameIdle: () => {},
      hasSuccessor: () => waits,
      providers: new Map(),
      sealed: null,
      setAlarm: (atMs) => set.push(atMs),
      sync: async () => {},
      keepAlive: () => {},
    })
    engine.start()
    engine.change(() => {}, {})
    waits = false
    engine.change(() => {}, {})
    return set
  })
  expect(alarms).toEqual([expect.any(Number), null])
})
