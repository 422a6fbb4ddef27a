import { describe, expect, test } from 'vitest'
import type { NewCall, Write } from '../../../src/core/run/writes.ts'
import { type History, TranscriptWindow } from '../../../src/session/transcript-window.ts'
import { byteLength } from '../../../src/storage/limits.ts'
import { EMPTY_OUTBOX, loadCheckpoint } from '../../../src/storage/session/checkpoint.ts'
import { commitStep } from '../../../src/storage/session/commit.ts'
import { loadMessages, type StoredMessage } from '../../../src/storage/session/messages.ts'
import { migrateSession } from '../../../src/storage/session/migrations.ts'
import { makeNodeSql } from '../../support/node/node-sql.ts'
import { seededRandom } from '../../support/node/seeded.ts'
import { makeState } from '../storage/contract/builders.ts'

/** A session whose steps are stored as the engine stores them, and a count of the rows of messages that were read. */
function makeStored(limits: { messages?: number; bytes?: number } = {}) {
  const plain = makeNodeSql()
  migrateSession(plain)
  const read = { rows: 0, sizes: 0, texts: 0 }
  const sql: typeof plain = {
    ...plain,
    rows: (query, ...values) => {
      const rows = plain.rows(query, ...values)
      if (query.startsWith('SELECT * FROM messages')) read.rows += rows.length
      if (query.startsWith('SELECT seq, run_id, role')) read.sizes += rows.length
      if (query.startsWith('SELECT * FROM')) read.texts += byteLength(JSON.stringify(rows))
      return rows
    },
  }
  const window = new TranscriptWindow(sql, limits)
  let checkpoint = loadCheckpoint(sql)
  let ids = 0
  let run = 'run 1'
  const commit = (...writes: Write[]) => {
    const step = { state: makeState(), writes, events: [], effects: [] }
    checkpoint = commitStep(sql, checkpoint, step, { nowMs: 0, runInput: null, sealedId: null })
    window.changed(checkpoint.outbox.messagesFrom)
  }
  const newId = () => `id-${++ids}`
  return {
    window,
    read,
    newId,
    commit,
    stored: () => loadMessages(plain, 1, Number.MAX_SAFE_INTEGER),
    history: (runId: string | null = run): History => window.read(checkpoint.counters.message, runId),
    startRun: (name: string) => {
      run = name
    },
    says: (text: string) => commit({ w: 'user_message', id: newId(), runId: run, text }),
    /** A message of a model with calls, each with its result. */
    answers: (text: string, calls: NewCall[] = []) =>
      commit({
        w: 'assistant_message',
        id: newId(),
        runId: run,
        text,
        provider: 'ollama',
        model: 'small',
        interrupted: false,
        calls,
      }),
    settles: (callId: string, content: string, isError = false) =>
      commit({ w: 'settle_call', callId, isError, content }),
    /** D1 has everything. */
    drained: () => {
      checkpoint = { ...checkpoint, outbox: EMPTY_OUTBOX }
    },
    run: () => run,
  }
}

const call = (id: string, args: Record<string, unknown> = {}): NewCall => ({
  id,
  name: 'read_file',
  arguments: args,
  recordsDiff: false,
})

const bytesOf = ({ text, calls }: StoredMessage): number =>
  [text, ...calls.flatMap(({ arguments: args, result = '' }) => [JSON.stringify(args), result])].reduce(
    (sum, part) => sum + byteLength(part),
    0,
  )

/** What the history should be, told from all rows: the longest of the ones that start anywhere and fit. */
function expected(
  all: StoredMessage[],
  runId: string,
  limits: { messages: number; bytes: number },
): number[] {
  const isWord = (message: StoredMessage) => message.runId === runId && message.role === 'user'
  const bytesFrom = (messages: StoredMessage[]) =>
    messages.reduce((sum, message) => sum + bytesOf(message), 0)
  for (let left = Math.max(0, all.length - limits.messages); left < all.length; left++) {
    const recent = all.slice(left)
    const words = recent[0]?.runId === runId ? all.slice(0, left).filter(isWord) : []
    const shown = [...words, ...recent]
    if (recent.length === 1 || bytesFrom(shown) <= limits.bytes) return shown.map(({ seq }) => seq)
  }
  return []
}

const seqs = ({ transcript }: History) => transcript.map(({ seq }) => seq)
const textsOf = ({ transcript }: History) => transcript.map(({ text }) => text)

test.each([
  { messages: 60, bytes: 1_000_000 },
  { messages: 60, bytes: 900 },
  { messages: 7, bytes: 400 },
])(
  '[D28] whatever is stored in whatever order, the kept window reads like the stored rows (%j)',
  (limits) => {
    const seed = 20_261_129
    const random = seededRandom(seed)
    const session = makeStored(limits)
    const pending: string[] = []
    let gaps = 0
    for (let step = 0; step < 320; step++) {
      const kind = random()
      const length = Math.floor(random() ** 4 * 200)
      if (kind < 0.04) session.startRun(`run ${step}`)
      else if (kind < 0.2) session.says(`${step}${'€'.repeat(length)}`)
      else if (kind < 0.6) {
        const id = session.newId()
        pending.push(id)
        session.answers(`${step}`, [call(id, { step, path: 'x'.repeat(length) })])
      } else if (kind < 0.85) {
        // Also a second result for the same call, which replaces the first.
        const callId = pending[Math.floor(random() * pending.length)]
        if (callId !== undefined) session.settles(callId, 'r'.repeat(length), random() < 0.5)
      } else session.drained()
      if (random() < 0.5) continue
      const all = session.stored()
      const history = session.history()
      const expectedSeqs = expected(all, session.run(), limits)
      expect([step, seqs(history)]).toEqual([step, expectedSeqs])
      expect(history.olderMessages).toBe(all.length - expectedSeqs.length)
      const whole = history.transcript.filter(({ calls }) => !calls.some(({ result }) => isNote(result)))
      expect(whole).toEqual(all.filter(({ seq }) => whole.some((message) => message.seq === seq)))
      expect(whole.length).toBeGreaterThanOrEqual(history.transcript.length - 1)
      const begins = history.transcript[0]?.runId
      const shown = new Set(expectedSeqs)
      const past = all.filter(({ seq, runId }) => runId === begins && !shown.has(seq))
      expect(history.pastCalls.map(({ id }) => id)).toEqual(
        past.flatMap(({ calls }) => calls.map(({ id }) => id)),
      )
      if (expectedSeqs.some((seq, index) => index > 0 && expectedSeqs[index - 1] !== seq - 1)) gaps++
    }
    // Runs that were longer than the window were among them.
    if (limits.bytes < 1_000) expect(gaps).toBeGreaterThan(20)
  },
)

const isNote = (result: string | undefined): boolean => result?.startsWith('This result is left out') === true

describe('what is kept between turns', () => {
  test('a turn reads the rows that are new since the turn before, and no others', () => {
    const session = makeStored({ messages: 200 })
    for (let n = 0; n < 300; n++) session.says(`${n}`)
    session.startRun('next')
    session.drained()
    session.history()
    expect(session.read).toMatchObject({ rows: 200, sizes: 200 })
    session.says('next')
    expect(textsOf(session.history()).slice(-2)).toEqual(['299', 'next'])
    expect(session.read).toMatchObject({ rows: 201, sizes: 201 })
  })

  test('a transcript with very long texts is not kept in memory', () => {
    const session = makeStored()
    session.says('x'.repeat(3 * 1024 * 1024))
    session.history()
    session.history()
    expect(session.read.rows).toBe(2)
  })

  test('nothing is kept of a transcript that is over its budget', () => {
    const session = makeStored({ bytes: 10 })
    session.answers('', [call('c')])
    session.settles('c', 'x'.repeat(20))
    expect(session.history().transcript[0]?.calls[0]?.result).toBe(
      'This result is left out: its 20 bytes are too many.',
    )
    session.settles('c', 'short')
    expect(session.history().transcript[0]?.calls[0]?.result).toBe('short')
  })
})

describe('[D28] the budget of a history', () => {
  test('is met to the byte, and one byte more leaves out the oldest message', () => {
    for (const [bytes, older] of [
      [30, 0],
      [29, 1],
      [20, 1],
      [19, 2],
    ] as const) {
      const session = makeStored({ bytes })
      for (const text of ['a', 'b', 'c']) session.says(text.repeat(10))
      session.startRun('next')
      expect(session.history()).toMatchObject({ olderMessages: older, pastCalls: [] })
    }
  })

  test('texts that are left out are not read: eight results as large as the whole of it', () => {
    const session = makeStored({ bytes: 300_000 })
    for (let n = 1; n <= 8; n++) {
      session.says(`prompt ${n}`)
      session.answers('', [call(`c${n}`)])
      session.settles(`c${n}`, 'x'.repeat(250_000))
      session.startRun(`run ${n + 1}`)
    }
    session.says('and now?')
    const history = session.history()
    expect(history.olderMessages).toBe(14)
    expect(history.transcript.map(({ text, calls }) => [text, calls[0]?.result?.length])).toEqual([
      ['prompt 8', undefined],
      ['', 250_000],
      ['and now?', undefined],
    ])
    expect(session.read.texts).toBeLessThan(260_000)
  })

  test('of the current run the oldest rounds are left out, never what the user said nor the newest round', () => {
    const session = makeStored({ bytes: 100 })
    session.says('an earlier run')
    session.startRun('now')
    session.says('the task')
    for (const [n, path] of ['a.ts', 'b.ts', 'c.ts'].entries()) {
      session.answers(`round ${n}`, [call(`c${n}`, { path })])
      session.settles(`c${n}`, 'x'.repeat(40))
      if (n === 0) session.says('also this')
    }
    const history = session.history()
    expect(textsOf(history)).toEqual(['the task', 'also this', 'round 2'])
    expect(history.olderMessages).toBe(3)
    // What the rounds that are left out touched is still known.
    expect(history.pastCalls).toEqual([
      {
        id: 'c0',
        name: 'read_file',
        arguments: { path: 'a.ts' },
        result: '',
        isError: false,
        changesFiles: false,
      },
      {
        id: 'c1',
        name: 'read_file',
        arguments: { path: 'b.ts' },
        result: '',
        isError: false,
        changesFiles: false,
      },
    ])
  })

  test('[D27] results of the newest round that cannot fit are named in place of their text', () => {
    const session = makeStored({ bytes: 120 })
    session.says('the task')
    session.answers('round', [call('a'), call('b'), call('c')])
    for (const [id, length] of [
      ['a', 50],
      ['b', 90],
      ['c', 20],
    ] as const)
      session.settles(id, 'x'.repeat(length))
    const results = session
      .history()
      .transcript.at(-1)
      ?.calls.map(({ result }) => result)
    expect(results).toEqual([
      'x'.repeat(50),
      'This result is left out: its 90 bytes are too many.',
      'x'.repeat(20),
    ])
    expect(textsOf(session.history())).toEqual(['the task', 'round'])
  })

  test('[U37] of a run whose calls are too many to be known, local models alone see what was said', () => {
    const session = makeStored({ messages: 2 })
    session.says('the task')
    for (let n = 0; n < 9; n++) session.answers('', [call(`c${n}`, { command: 'x '.repeat(1024 * 512) })])
    session.answers('then')
    const trusted = () => session.history().transcript.map(({ localOnly }) => localOnly)
    expect(trusted()).toEqual([undefined, true, true])
    // A run of its own is judged by itself.
    session.startRun('next')
    session.says('and now?')
    session.answers('so')
    expect(trusted()).toEqual([undefined, undefined])
  })

  test('a session without messages has none', () => {
    expect(makeStored().history()).toEqual({
      transcript: [],
      olderMessages: 0,
      pastCalls: [],
      pastAnswers: [],
    })
  })
})
