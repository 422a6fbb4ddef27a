import { expect, test } from 'vitest'
import type { NewCall, Write } from '../../../src/core/run/writes.ts'
import { TranscriptWindow } from '../../../src/session/transcript-window.ts'
import { EMPTY_OUTBOX, loadCheckpoint } from '../../../src/storage/session/checkpoint.ts'
import { commitStep } from '../../../src/storage/session/commit.ts'
import { loadMessages } from '../../../src/storage/session/messages.ts'
import { migrateSession } from '../../../src/storage/session/migrations.ts'
import { makeNodeSql } from '../../support/node/node-sql.ts'
import { seededRandom } from '../../support/node/seeded.ts'

/** A session whose steps are stored as the engine stores them, and a count of the rows of messages that were read. */
function makeStored() {
  const plain = makeNodeSql()
  migrateSession(plain)
  const read = { rows: 0 }
  const sql: typeof plain = {
    ...plain,
    rows: (query, ...values) => {
      const rows = plain.rows(query, ...values)
      if (query.includes('FROM messages')) read.rows += rows.length
      return rows
    },
  }
  const window = new TranscriptWindow(sql)
  let checkpoint = loadCheckpoint(sql)
  let ids = 0
  return {
    window,
    read,
    stored: (fromSeq: number, limit: number) => loadMessages(plain, fromSeq, limit),
    newId: () => `id-${++ids}`,
    total: () => checkpoint.counters.message,
    commit: (...writes: Write[]) => {
      const step = { state: null as never, writes, events: [], effects: [] }
      checkpoint = commitStep(sql, checkpoint, step, { nowMs: 0, runInput: null })
      window.changed(checkpoint.outbox.messagesFrom)
    },
    /** D1 has everything. */
    drained: () => {
      checkpoint = { ...checkpoint, outbox: EMPTY_OUTBOX }
    },
  }
}

const said = (id: string, text: string): Write => ({ w: 'user_message', id, runId: 'run', text })
const answered = (id: string, calls: NewCall[]): Write => ({
  w: 'assistant_message',
  id,
  runId: 'run',
  text: `text of ${id}`,
  provider: 'ollama',
  model: 'small',
  interrupted: false,
  calls,
})

test('whatever is stored in whatever order, the kept window reads like the stored rows', () => {
  const seed = 20_261_129
  const random = seededRandom(seed)
  const session = makeStored()
  const pending: string[] = []
  for (let step = 0; step < 1_500; step++) {
    const kind = random()
    if (kind < 0.35) session.commit(said(session.newId(), `prompt ${step}`))
    else if (kind < 0.7) {
      const id = session.newId()
      pending.push(id)
      session.commit(
        answered(session.newId(), [{ id, name: 'read_file', arguments: { step }, recordsDiff: false }]),
      )
    } else if (kind < 0.85) {
      // Also a second result for the same call, which replaces the first.
      const callId = pending[Math.floor(random() * pending.length)]
      if (callId !== undefined)
        session.commit({ w: 'settle_call', callId, isError: random() < 0.5, content: `result ${step}` })
    } else session.drained()
    if (random() < 0.5) continue
    const limit = 1 + Math.floor(random() * 60)
    const from = Math.max(1, session.total() - limit + 1)
    expect([seed, step, session.window.read(from, limit)]).toEqual([seed, step, session.stored(from, limit)])
  }
})

test('a turn reads the rows that are new since the turn before, and no others', () => {
  const session = makeStored()
  for (let n = 0; n < 300; n++) session.commit(said(session.newId(), `${n}`))
  session.drained()
  session.window.read(101, 200)
  expect(session.read.rows).toBe(200)
  session.commit(said(session.newId(), 'next'))
  expect(
    session.window
      .read(102, 200)
      .map(({ text }) => text)
      .slice(-2),
  ).toEqual(['299', 'next'])
  expect(session.read.rows).toBe(201)
})

test('a transcript with very long texts is not kept in memory', () => {
  const session = makeStored()
  session.commit(said(session.newId(), 'x'.repeat(3 * 1024 * 1024)))
  session.window.read(1, 10)
  session.window.read(1, 10)
  expect(session.read.rows).toBe(2)
})
