import { expect } from 'vitest'
import type { RunState } from '../../../src/core/run/state.ts'
import type { Step } from '../../../src/core/run/step.ts'
import type { CallRecord, NewCall, TraceEntry, Write } from '../../../src/core/run/writes.ts'
import { ExecuteRequest } from '../../../src/protocol/execution/execute.ts'
import {
  byteLength,
  CHUNK_UNITS,
  IDEMPOTENCY_TTL_MS,
  MAX_INLINE_BYTES,
  MAX_TOOL_RESULT_BYTES,
} from '../../../src/storage/limits.ts'
import {
  type Checkpoint,
  EMPTY_OUTBOX,
  loadCheckpoint,
  saveCheckpoint,
} from '../../../src/storage/session/checkpoint.ts'
import { commitStep } from '../../../src/storage/session/commit.ts'
import { loadKey, saveKey } from '../../../src/storage/session/idempotency.ts'
import { insertMessage, loadMessages, settleCall } from '../../../src/storage/session/messages.ts'
import { migrateSession } from '../../../src/storage/session/migrations.ts'
import {
  appendToRing,
  RING_BYTES,
  type RingLine,
  readRing,
  ringExtent,
} from '../../../src/storage/session/ring-segments.ts'
import { loadRunInput, saveRunInput } from '../../../src/storage/session/run-input.ts'
import { loadSession, type SessionRow, saveSession } from '../../../src/storage/session/session-row.ts'
import type { Sql } from '../../../src/storage/session/sql.ts'
import { loadText, storeText } from '../../../src/storage/session/texts.ts'
import { loadTurn, loadTurns, type StoredTurn, saveTurn } from '../../../src/storage/session/turns.ts'
import { executeRequest } from '../../support/node/run-request.ts'

/** One rule of the session’s storage, checked on an empty SQLite of whatever kind. */
export type StorageRule = { name: string; check: (sql: Sql) => void }

const rules: StorageRule[] = []

/** A rule about a database with the current tables. */
const rule = (name: string, check: (sql: Sql) => void) =>
  rules.push({
    name,
    check: (sql) => {
      migrateSession(sql)
      check(sql)
    },
  })

const NOW = 1_760_000_000_000
const count = (sql: Sql, table: string) => sql.rows(`SELECT count(*) AS n FROM ${table}`)[0]?.n

// Texts

const SIZES = [
  { what: 'one-byte', char: 'a' },
  { what: 'two-byte', char: 'ü' },
  { what: 'three-byte', char: '€' },
  { what: 'four-byte', char: '🚂' },
]

for (const { what, char } of SIZES) {
  const fits = Math.floor(MAX_INLINE_BYTES / byteLength(char))
  rule(`[D27] a text of ${what} characters stays whole up to 256 KiB and is split beyond`, (sql) => {
    const whole = char.repeat(fits)
    expect(storeText(sql, 'whole', whole)).toBe(whole)
    expect(count(sql, 'chunks')).toBe(0)
    const longer = whole + char
    const stored = storeText(sql, 'longer', longer)
    expect(stored.length).toBeLessThan(100)
    expect(loadText(sql, stored)).toBe(longer)
  })
}

rule('[D27] no chunk is longer than 256 KiB, and none is cut inside a surrogate pair', (sql) => {
  // Every offset of the pair to the cut, at the first cut and at the second.
  for (let lead = 0; lead < 4; lead++) {
    const text = '€'.repeat(CHUNK_UNITS - lead) + '🚂'.repeat(CHUNK_UNITS)
    const stored = storeText(sql, `lead ${lead}`, text)
    expect(loadText(sql, stored) === text).toBe(true)
  }
  for (const row of sql.rows('SELECT body FROM chunks')) {
    const body = String(row.body)
    expect(byteLength(body)).toBeLessThanOrEqual(MAX_INLINE_BYTES)
    expect(body).not.toMatch(/\p{Surrogate}/u)
  }
})

rule('[D27] a text that looks like a mark is kept as the text it is', (sql) => {
  const long = 'x'.repeat(MAX_INLINE_BYTES + 1)
  const mark = storeText(sql, 'a', long)
  const stored = storeText(sql, 'b', mark)
  expect(stored).not.toBe(mark)
  expect(loadText(sql, stored)).toBe(mark)
  expect(loadText(sql, mark)).toBe(long)
})

rule('[D27] a text in place of a longer one leaves none of its chunks', (sql) => {
  storeText(sql, 'a', 'x'.repeat(4 * MAX_INLINE_BYTES))
  const shorter = 'y'.repeat(2 * MAX_INLINE_BYTES)
  expect(loadText(sql, storeText(sql, 'a', shorter))).toBe(shorter)
  expect(loadText(sql, storeText(sql, 'a', 'short'))).toBe('short')
  expect(count(sql, 'chunks')).toBe(0)
})

// Messages

const userMessage = (id: string, text: string, runId = 'run'): Extract<Write, { w: 'user_message' }> => ({
  w: 'user_message',
  id,
  runId,
  text,
})
const assistantMessage = (
  id: string,
  text: string,
  calls: NewCall[] = [],
  interrupted = false,
): Extract<Write, { w: 'assistant_message' }> => ({
  w: 'assistant_message',
  id,
  runId: 'run',
  text,
  provider: 'ollama',
  model: 'small',
  interrupted,
  calls,
})
const call = (id: string, more: Partial<NewCall> = {}): NewCall => ({
  id,
  name: 'read_file',
  arguments: { path: 'a.ts' },
  recordsDiff: false,
  ...more,
})

rule('[D25] messages come back in their order with everything they had', (sql) => {
  insertMessage(sql, 1, userMessage('m1', 'hello\u0000ü'), NOW, 3)
  const opaque = { signature: 'abc', nested: { n: 1 } }
  const answer = { result: 'the skill', isError: false, refused: false }
  const calls = [
    call('c1', { providerCallId: 'p1', opaque }),
    call('c2', { recordsDiff: true }),
    call('c3', { name: 'a_skill', arguments: {}, answer }),
    call('c4', { answer: { result: 'no', isError: true, refused: true } }),
  ]
  insertMessage(sql, 2, assistantMessage('m2', '', calls), NOW + 1, 4)
  insertMessage(sql, 3, { ...assistantMessage('m3', 'half a', [], true), localOnly: true }, NOW + 2, 5)
  const plain = { name: 'read_file', arguments: { path: 'a.ts' }, isError: false, changesFiles: false }
  const said = { runId: 'run', provider: 'ollama', model: 'small' }
  expect(loadMessages(sql, 1, 10)).toEqual([
    {
      seq: 1,
      id: 'm1',
      runId: 'run',
      role: 'user',
      text: 'hello\u0000ü',
      interrupted: false,
      calls: [],
      createdAtMs: NOW,
      rev: 3,
    },
    {
      ...said,
      seq: 2,
      id: 'm2',
      role: 'assistant',
      text: '',
      interrupted: false,
      calls: [
        { ...plain, id: 'c1', providerCallId: 'p1', opaque },
        { ...plain, id: 'c2', changesFiles: true },
        { ...plain, id: 'c3', name: 'a_skill', arguments: {}, result: 'the skill' },
        { ...plain, id: 'c4', result: 'no', isError: true },
      ],
      createdAtMs: NOW + 1,
      rev: 4,
    },
    {
      ...said,
      seq: 3,
      id: 'm3',
      role: 'assistant',
      text: 'half a',
      interrupted: true,
      localOnly: true,
      calls: [],
      createdAtMs: NOW + 2,
      rev: 5,
    },
  ])
})

rule('[U09] a window of messages is read without the others, calls too', (sql) => {
  for (let seq = 1; seq <= 5; seq++) {
    insertMessage(sql, seq, assistantMessage(`m${seq}`, `${seq}`, [call(`c${seq}`)]), NOW, 1)
  }
  const window = loadMessages(sql, 2, 2)
  expect(window.map(({ seq, calls }) => [seq, calls.map(({ id }) => id)])).toEqual([
    [2, ['c2']],
    [3, ['c3']],
  ])
  expect(loadMessages(sql, 6, 10)).toEqual([])
  expect(loadMessages(sql, 1, Number.MAX_SAFE_INTEGER)).toHaveLength(5)
})

rule('[EC 12.4] a result settles its call, and a file change with it', (sql) => {
  const calls = [call('c1', { recordsDiff: true }), call('c2', { recordsDiff: true }), call('c3')]
  insertMessage(sql, 1, assistantMessage('m1', '', calls), NOW, 1)
  const settle = (callId: string, isError: boolean) =>
    settleCall(sql, { w: 'settle_call', callId, isError, content: `result of ${callId}` }, NOW + 1)
  expect([settle('c1', false), settle('c2', true), settle('c3', false)]).toEqual([1, 1, 1])
  expect(sql.rows('SELECT id, status, diff_status, completed_at FROM tool_calls ORDER BY ordinal')).toEqual([
    { id: 'c1', status: 'completed', diff_status: 'applied', completed_at: NOW + 1 },
    { id: 'c2', status: 'failed', diff_status: 'rejected', completed_at: NOW + 1 },
    { id: 'c3', status: 'completed', diff_status: null, completed_at: NOW + 1 },
  ])
  const [message] = loadMessages(sql, 1, 1)
  expect(message?.calls.map(({ result, isError }) => [result, isError])).toEqual([
    ['result of c1', false],
    ['result of c2', true],
    ['result of c3', false],
  ])
})

rule('[EC 12.4] a result for a call that does not exist changes nothing', (sql) => {
  const write = { w: 'settle_call', callId: 'nobody', isError: false, content: 'x' } as const
  expect(settleCall(sql, write, NOW)).toBeNull()
})

rule('[U24] the id of a call is unique in its session', (sql) => {
  insertMessage(sql, 1, assistantMessage('m1', '', [call('c1')]), NOW, 1)
  expect(() => insertMessage(sql, 2, assistantMessage('m2', '', [call('c1')]), NOW, 1)).toThrow()
})

rule('[D27] a tool result of 8 MiB and long arguments are kept whole', (sql) => {
  const content = '🚂'.repeat(MAX_TOOL_RESULT_BYTES / 4)
  const args = { path: 'a', content: 'ü'.repeat(300_000) }
  insertMessage(sql, 1, assistantMessage('m1', '', [call('c1', { arguments: args })]), NOW, 1)
  settleCall(sql, { w: 'settle_call', callId: 'c1', isError: false, content }, NOW)
  const kept = loadMessages(sql, 1, 1)[0]?.calls[0]
  expect(kept?.result === content).toBe(true)
  expect(kept?.arguments).toEqual(args)
})

// Turns

const lostCall: CallRecord = {
  provider: 'ollama',
  model: 'small',
  taskType: 'chat',
  chosenBy: 'default route',
  status: 'lost',
  usage: null,
}
const entry = (id: string): TraceEntry => ({
  id,
  createdAtMs: NOW,
  taskType: 'chat',
  provider: 'ollama',
  model: 'small',
  payload: { type: 'message', role: 'user', provider: 'ollama', model: 'small' },
})
const makeTurn = (seq: number, changes: Partial<StoredTurn> = {}): StoredTurn => ({
  turnId: `t${seq}`,
  seq,
  runId: 'run',
  turn: 1,
  status: 'running',
  trace: [],
  calls: [],
  outcome: null,
  startedAtMs: NOW,
  endedAtMs: null,
  rev: 1,
  ...changes,
})

rule('[D25] a turn comes back as it was saved last', (sql) => {
  saveTurn(sql, makeTurn(1))
  const done = makeTurn(1, {
    status: 'done',
    trace: [entry('e1'), entry('e2')],
    calls: [{ ...lostCall, status: 'answered', usage: { inputTokens: 1, outputTokens: 0 }, cost: '0.5' }],
    outcome: { status: 'idle', data: { trace_id: 'trace:x' } },
    endedAtMs: NOW + 5,
    rev: 2,
  })
  saveTurn(sql, done)
  saveTurn(sql, makeTurn(2))
  expect(loadTurn(sql, 't1')).toEqual(done)
  expect(loadTurn(sql, 'nobody')).toBeNull()
  expect(loadTurns(sql, 1, 10).map(({ turnId }) => turnId)).toEqual(['t1', 't2'])
  expect(loadTurns(sql, 2, 10)).toEqual([makeTurn(2)])
  expect(loadTurns(sql, 1, 1)).toEqual([done])
})

rule('[D28] a trace beyond 256 KiB is kept whole', (sql) => {
  const trace = Array.from({ length: 3000 }, (_, n) => entry(`e${n}`))
  saveTurn(sql, makeTurn(1, { trace }))
  expect(loadTurn(sql, 't1')?.trace).toEqual(trace)
})

// The checkpoint, the session’s row, the run’s input

const makeState = (changes: Partial<RunState> = {}): RunState => ({
  v: 1,
  runId: 'run',
  turn: 1,
  phase: { k: 'Idle' },
  active: null,
  driver: { kind: 'http' },
  driverEpoch: 1,
  unsettled: null,
  planning: false,
  planApproved: false,
  remoteDeclined: false,
  disclosed: [],
  costAccepted: false,
  unattendedRounds: 0,
  lastRoute: null,
  promptTraced: false,
  traceId: 'trace:1',
  checkpointTurnId: null,
  ...changes,
})

rule('[EC 5.1] a session that never had a run has no state, and owes nothing', (sql) => {
  const fresh = loadCheckpoint(sql)
  expect(fresh).toEqual({
    state: null,
    outbox: EMPTY_OUTBOX,
    counters: { message: 0, turn: 0, rev: 0, ringReserved: 0 },
  })
  fresh.counters.message = 7
  expect(loadCheckpoint(sql).counters.message).toBe(0)
})

rule('[EC 5.1] the newest checkpoint stands alone', (sql) => {
  const checkpoint = (rev: number): Checkpoint => ({
    state: makeState({ turn: rev }),
    outbox: { ...EMPTY_OUTBOX, session: true, failures: 2, retryAtMs: NOW },
    counters: { message: 1, turn: 2, rev, ringReserved: 1024 },
  })
  saveCheckpoint(sql, checkpoint(1))
  saveCheckpoint(sql, checkpoint(2))
  expect(loadCheckpoint(sql)).toEqual(checkpoint(2))
  expect(count(sql, 'checkpoint')).toBe(1)
})

rule('[D32] a run state of another version is refused, not guessed at', (sql) => {
  saveCheckpoint(sql, { ...loadCheckpoint(sql), state: { ...makeState(), v: 2 as 1 } })
  expect(() => loadCheckpoint(sql)).toThrow(/version 2/)
})

const makeSession = (changes: Partial<SessionRow> = {}): SessionRow => ({
  sessionId: 's',
  userId: 'u',
  title: 't',
  scope: null,
  keyId: null,
  createdAtMs: NOW,
  updatedAtMs: NOW,
  archivedAtMs: null,
  deletedAtMs: null,
  rev: 0,
  ...changes,
})

rule('[EC 22] a session’s owner, key and birth never change, the rest does', (sql) => {
  expect(loadSession(sql)).toBeNull()
  saveSession(sql, makeSession())
  const changed = { title: null, scope: '/p', updatedAtMs: NOW + 1, archivedAtMs: NOW + 1, rev: 4 }
  saveSession(sql, makeSession({ ...changed, userId: 'another', keyId: 'kf', createdAtMs: 0 }))
  expect(loadSession(sql)).toEqual(makeSession(changed))
})

rule('[EC 5.1] a run’s input is the newest, whole and parsed', (sql) => {
  expect(() => loadRunInput(sql)).toThrow(/without its input/)
  saveRunInput(sql, executeRequest('first'))
  const large = ExecuteRequest.parse({
    ...executeRequest('second'),
    attachments: {
      files: [{ path: 'a', content: '🚂'.repeat(100_000), content_hash: 'sha256:0', required: true }],
      instructions: [],
    },
  })
  saveRunInput(sql, large)
  expect(loadRunInput(sql)).toEqual(large)
})

// Idempotency keys

rule('[D20] a key is known for 24 hours, then it is free again', (sql) => {
  saveKey(sql, 'k', { digest: 'd', result: { turnId: 't1' } }, NOW)
  const known = { digest: 'd', result: { turnId: 't1' } }
  expect(loadKey(sql, 'k', NOW + IDEMPOTENCY_TTL_MS - 1)).toEqual(known)
  expect(loadKey(sql, 'k', NOW + IDEMPOTENCY_TTL_MS)).toBeNull()
  expect(loadKey(sql, 'other', NOW)).toBeNull()
})

rule('[D20] a key may stand for an outcome that needed no turn', (sql) => {
  const outcome = { status: 'idle', data: { trace_id: 'trace:x' } } as const
  saveKey(sql, 'k', { digest: 'd', result: { outcome } }, NOW)
  expect(loadKey(sql, 'k', NOW)).toEqual({ digest: 'd', result: { outcome } })
})

rule('[D20] keys whose time is over are forgotten when another is stored', (sql) => {
  saveKey(sql, 'old', { digest: 'd', result: { turnId: 't1' } }, NOW)
  saveKey(sql, 'young', { digest: 'd', result: { turnId: 't2' } }, NOW + 1)
  saveKey(sql, 'new', { digest: 'd', result: { turnId: 't3' } }, NOW + IDEMPOTENCY_TTL_MS)
  expect(sql.rows('SELECT key FROM idempotency ORDER BY created_at')).toEqual([
    { key: 'young' },
    { key: 'new' },
  ])
})

// The event ring

const lines = (from: number, to: number, units: number): RingLine[] =>
  Array.from({ length: to - from + 1 }, (_, n) => ({
    seq: from + n,
    line: `${from + n}:`.padEnd(units, '.'),
  }))
const seqs = (read: string[]) => read.map((line) => Number(line.split(':', 1)[0]))

rule('[D33] events are appended to the newest row while it has room, then to a new one', (sql) => {
  expect(ringExtent(sql)).toBeNull()
  appendToRing(sql, lines(5, 9, 100))
  appendToRing(sql, lines(10, 19, 100))
  expect(count(sql, 'ring_segments')).toBe(1)
  appendToRing(sql, lines(20, 400, 100))
  expect(count(sql, 'ring_segments')).toBe(2)
  expect(ringExtent(sql)).toMatchObject({ firstSeq: 5, lastSeq: 400 })
  expect(seqs(readRing(sql, 0))).toEqual(Array.from({ length: 396 }, (_, n) => n + 5))
  appendToRing(sql, [])
  expect(count(sql, 'ring_segments')).toBe(2)
})

rule('[D33] a reader gets what comes after its sequence, from the row that holds it on', (sql) => {
  appendToRing(sql, lines(1, 300, 100))
  appendToRing(sql, lines(301, 320, 100))
  expect(seqs(readRing(sql, 310)).filter((seq) => seq > 310)).toEqual([
    311, 312, 313, 314, 315, 316, 317, 318, 319, 320,
  ])
  expect(readRing(sql, 320)).toEqual([])
})

rule('[D33] the ring keeps 4 MiB and drops its oldest rows whole', (sql) => {
  let seq = 1
  for (let round = 0; round < 150; round++) {
    appendToRing(sql, lines(seq, seq + 29, 1023))
    seq += 30
  }
  const extent = ringExtent(sql)
  expect(extent?.lastSeq).toBe(seq - 1)
  expect(extent?.bytes).toBeLessThanOrEqual(RING_BYTES)
  expect(extent?.bytes).toBeGreaterThan(RING_BYTES - 64 * 1024)
  const first = extent?.firstSeq ?? 0
  expect(first).toBeGreaterThan(1)
  expect(seqs(readRing(sql, 0))).toEqual(Array.from({ length: seq - first }, (_, n) => first + n))
})

rule('[D33] the size of the ring counts bytes, not characters', (sql) => {
  const line = '€'.repeat(1000)
  appendToRing(sql, [{ seq: 1, line }])
  expect(ringExtent(sql)?.bytes).toBe(byteLength(`${line}\n`))
})

// Whole steps

const commit = (
  sql: Sql,
  before: Checkpoint,
  writes: Write[],
  state = makeState(),
  nowMs = NOW,
): Checkpoint => {
  const result: Step = { state, writes, events: [], effects: [] }
  return sql.transaction(() => commitStep(sql, before, result, { nowMs, runInput: executeRequest('hi') }))
}
const openTurn = (turnId: string): Write => ({ w: 'open_turn', turnId, runId: 'run', turn: 1 })
const closeTurn = (turnId: string): Write => ({ w: 'close_turn', turnId, status: 'done', outcome: null })

rule(
  '[D26] a step is stored with what it owes to D1: a running turn not yet, all else from the oldest row on',
  (sql) => {
    saveSession(sql, makeSession())
    const first = commit(sql, loadCheckpoint(sql), [
      { w: 'run_input' },
      userMessage('m1', 'hi'),
      openTurn('t1'),
    ])
    expect(first.counters).toEqual({ message: 1, turn: 1, rev: 1, ringReserved: 0 })
    expect(first.outbox).toEqual({ ...EMPTY_OUTBOX, messagesFrom: 1 })
    const second = commit(
      sql,
      first,
      [
        assistantMessage('m2', 'hello', [call('c1')]),
        { w: 'call', turnId: 't1', call: lostCall },
        closeTurn('t1'),
      ],
      makeState(),
      NOW + 9,
    )
    expect(second.outbox).toEqual({ ...EMPTY_OUTBOX, session: true, messagesFrom: 1, turnsFrom: 1 })
    expect(loadSession(sql)).toMatchObject({ updatedAtMs: NOW + 9, rev: 2 })
    const sent: Checkpoint = { ...second, outbox: EMPTY_OUTBOX }
    const third = commit(sql, sent, [
      userMessage('m3', 'more'),
      { w: 'settle_call', callId: 'c1', isError: false, content: 'r' },
    ])
    expect(third.outbox).toEqual({ ...EMPTY_OUTBOX, messagesFrom: 2 })
    expect(loadMessages(sql, 1, 9).map(({ rev }) => rev)).toEqual([1, 3, 3])
    expect(loadCheckpoint(sql)).toEqual(third)
  },
)

rule('[D23] the call that left is known before it answers, and what it came to replaces it', (sql) => {
  const open = commit(sql, loadCheckpoint(sql), [openTurn('t1'), { w: 'call', turnId: 't1', call: lostCall }])
  expect(loadTurn(sql, 't1')?.calls).toEqual([lostCall])
  const failed: CallRecord = { ...lostCall, status: 'failed' }
  const retried = commit(sql, open, [
    { w: 'call_settled', turnId: 't1', call: failed },
    { w: 'call', turnId: 't1', call: lostCall },
  ])
  const answered: CallRecord = { ...lostCall, status: 'answered', usage: { inputTokens: 3 } }
  commit(sql, retried, [{ w: 'call_settled', turnId: 't1', call: answered }])
  expect(loadTurn(sql, 't1')?.calls).toEqual([failed, answered])
})

rule(
  '[EC 15] text injected into an idle run keeps policy, preferences and paths of the last input, no more',
  (sql) => {
    const input = ExecuteRequest.parse({
      ...executeRequest('hi'),
      input: { text: 'hi', command: 'plan', explicit_model: 'ollama/other' },
      workspace: { root: '/p', referenced_paths: ['a'], git_diff: 'diff --git a/a b/a', active_file: 'a' },
      attachments: {
        files: [{ path: 'a', content: 'x', content_hash: 'sha256:0', required: true }],
        instructions: [{ source: 'AGENTS.md', content: 'x' }],
        invoked_skills: [{ name: 's', content: 'x' }],
        available_skills: [{ name: 't', content: 'x' }],
      },
    })
    saveRunInput(sql, input)
    commit(sql, loadCheckpoint(sql), [{ w: 'injected_input' }])
    const kept = loadRunInput(sql)
    expect(kept.input).toEqual({ text: 'hi' })
    expect(kept.policy).toEqual(input.policy)
    expect(kept.local_preferences).toEqual(input.local_preferences)
    expect(kept.workspace).toEqual({ ...input.workspace, git_diff: null })
    expect(kept.attachments).toEqual({
      files: [],
      instructions: [],
      invoked_skills: [],
      available_skills: [],
    })
  },
)

rule('[EC 13] approvals and plans are kept with their outcome', (sql) => {
  const made = commit(sql, loadCheckpoint(sql), [{ w: 'plan', id: 'p1', content: 'first this' }])
  commit(
    sql,
    made,
    [
      { w: 'approval', id: 'a1', targetType: 'plan', targetId: 'p1', decision: 'approved', reason: 'good' },
      { w: 'plan_status', id: 'p1', status: 'approved' },
    ],
    makeState(),
    NOW + 1,
  )
  expect(sql.rows('SELECT * FROM plans')).toEqual([
    { id: 'p1', content: 'first this', status: 'approved', created_at: NOW, updated_at: NOW + 1 },
  ])
  expect(sql.rows('SELECT * FROM approvals')).toEqual([
    {
      id: 'a1',
      target_type: 'plan',
      target_id: 'p1',
      decision: 'approved',
      reason: 'good',
      created_at: NOW + 1,
    },
  ])
})

rule('[D26] a step that cannot be stored whole is not stored at all', (sql) => {
  saveSession(sql, makeSession())
  const before = commit(sql, loadCheckpoint(sql), [userMessage('m1', 'hi'), openTurn('t1')])
  const writes: Write[] = [
    userMessage('m2', 'lost'),
    assistantMessage('m3', '', [call('c1'), call('c1')]),
    closeTurn('t1'),
  ]
  expect(() => commit(sql, before, writes, makeState({ turn: 2 }))).toThrow()
  expect(loadCheckpoint(sql)).toEqual(before)
  expect(loadMessages(sql, 1, 9).map(({ id }) => id)).toEqual(['m1'])
  expect(loadTurn(sql, 't1')?.status).toBe('running')
  expect(count(sql, 'tool_calls')).toBe(0)
})

// Migrations

const OLD = ['CREATE TABLE a (x INTEGER)']
const NEW = ['ALTER TABLE a ADD COLUMN y TEXT', "UPDATE a SET y = 'from ' || x"]

rules.push(
  {
    name: '[D32] migrations run once, and again they find nothing to do',
    check: (sql) => {
      migrateSession(sql)
      const tables = () => sql.rows('SELECT name, sql FROM sqlite_master ORDER BY name')
      const before = tables()
      saveSession(sql, makeSession())
      migrateSession(sql)
      expect(tables()).toEqual(before)
      expect(loadSession(sql)).toEqual(makeSession())
    },
  },
  {
    name: '[D32] an older database with rows is brought up to date, rows and all',
    check: (sql) => {
      migrateSession(sql, [OLD])
      sql.rows('INSERT INTO a (x) VALUES (1), (2)')
      migrateSession(sql, [OLD, NEW])
      expect(sql.rows('SELECT * FROM a')).toEqual([
        { x: 1, y: 'from 1' },
        { x: 2, y: 'from 2' },
      ])
      expect(sql.rows('SELECT version FROM schema_migrations')).toEqual([{ version: 1 }, { version: 2 }])
    },
  },
  {
    name: '[D32] a migration that fails leaves the database at its old version',
    check: (sql) => {
      migrateSession(sql, [OLD])
      expect(() => migrateSession(sql, [OLD, [...NEW, 'CREATE TABLE a (again INTEGER)']])).toThrow()
      expect(sql.rows('SELECT version FROM schema_migrations')).toEqual([{ version: 1 }])
      expect(sql.rows("SELECT name FROM pragma_table_info('a')")).toEqual([{ name: 'x' }])
    },
  },
  {
    name: '[D32] a changed history and a newer release are refused',
    check: (sql) => {
      migrateSession(sql, [OLD, NEW])
      expect(() => migrateSession(sql, [['CREATE TABLE a (x TEXT)'], NEW])).toThrow(/migration 1 has changed/)
      expect(() => migrateSession(sql, [OLD])).toThrow(/newer release \(schema 2\)/)
    },
  },
  {
    name: '[D32] another layout of the same statements is no change',
    check: (sql) => {
      migrateSession(sql, [OLD])
      migrateSession(sql, [['CREATE TABLE a\n   (x INTEGER)']])
      expect(count(sql, 'a')).toBe(0)
    },
  },
)

export const STORAGE_RULES: readonly StorageRule[] = rules
