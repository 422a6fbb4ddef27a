import { expect } from 'vitest'
import type { TraceEntry } from '../../../../src/core/run/writes.ts'
import {
  callsRef,
  diffRef,
  factRef,
  inputRef,
  messageRef,
  planRef,
  resultRef,
  traceRef,
} from '../../../../src/protocol/execution/content-refs.ts'
import type { EncryptedPayload } from '../../../../src/protocol/execution/sealed.ts'
import { byteLength, MAX_D1_TEXT_BYTES, MAX_INLINE_BYTES } from '../../../../src/storage/limits.ts'
import { messagesToCopy, turnsToCopy } from '../../../../src/storage/session/copy-rows.ts'
import { sizesBackFrom, sizesFrom, wordSizes } from '../../../../src/storage/session/message-sizes.ts'
import { insertMessage, loadMessages, settleCall } from '../../../../src/storage/session/messages.ts'
import { policiesOfTurns } from '../../../../src/storage/session/policies.ts'
import {
  dropSealed,
  dropUnsealed,
  isSealed,
  loadSealed,
  messageOfContent,
  newestMessageSeq,
  saveSealed,
  sealedBytes,
} from '../../../../src/storage/session/sealed-contents.ts'
import { saveSession } from '../../../../src/storage/session/session-row.ts'
import type { Sql } from '../../../../src/storage/session/sql.ts'
import { expireTraces, loadTurns, saveTurn } from '../../../../src/storage/session/turns.ts'
import { assistantMessage, call, entry, lostCall, makeSession, makeTurn, userMessage } from './builders.ts'
import { count, NOW, ruleInto, type StorageRule } from './rules.ts'

export const SEALED_RULES: StorageRule[] = []

const rule = ruleInto(SEALED_RULES)

const envelope = (ciphertext: string): EncryptedPayload => ({
  version: 1,
  algorithm: 'xchacha20poly1305',
  key_id: 'kf_k',
  nonce: 'n',
  ciphertext,
})
const bytesOf = (ciphertext: string): number => byteLength(JSON.stringify(envelope(ciphertext)))

/** Notes what is asked of a database. */
function watched(sql: Sql): { sql: Sql; queries: string[] } {
  const queries: string[] = []
  const rows: Sql['rows'] = (query, ...values) => {
    queries.push(query)
    return sql.rows(query, ...values)
  }
  return { sql: { ...sql, rows }, queries }
}

const says = (sql: Sql, seq: number) => insertMessage(sql, seq, userMessage(`m${seq}`, ''), NOW, 1)
/** A message with two calls, as a sealed session stores it. */
const answers = (sql: Sql, seq: number) =>
  insertMessage(
    sql,
    seq,
    assistantMessage(`m${seq}`, '', [
      call(`c${seq}`, { arguments: {} }),
      call(`d${seq}`, { arguments: {}, recordsDiff: true }),
    ]),
    NOW,
    1,
  )
const settle = (sql: Sql, callId: string, content = '') =>
  settleCall(sql, { w: 'settle_call', callId, isError: false, content }, NOW)
const seal = (sql: Sql, ref: string, ciphertext = ref) => saveSealed(sql, ref, envelope(ciphertext))

for (const [what, length] of Object.entries({ short: 10, long: MAX_INLINE_BYTES + 1 })) {
  rule(`[EC 17] a ${what} envelope comes back as it was saved last, and goes with all of it`, (sql) => {
    const ref = messageRef('m1')
    seal(sql, ref, 'a'.repeat(length))
    expect(loadSealed(sql, [ref])).toEqual({ [ref]: envelope('a'.repeat(length)) })
    expect([isSealed(sql, ref), sealedBytes(sql, ref)]).toEqual([true, bytesOf('a'.repeat(length))])
    seal(sql, ref, 'again')
    expect(loadSealed(sql, [ref])).toEqual({ [ref]: envelope('again') })
    seal(sql, ref, 'a'.repeat(length))
    dropSealed(sql, [ref])
    expect([isSealed(sql, ref), sealedBytes(sql, ref), loadSealed(sql, [ref])]).toEqual([false, null, {}])
    expect([count(sql, 'sealed_contents'), count(sql, 'chunks')]).toEqual([0, 0])
  })
}

rule(
  '[EC 17] envelopes come in the order asked for, without those that are not there, in one read',
  (sql) => {
    const refs = Array.from({ length: 300 }, (_, n) => traceRef(`t${n}`))
    for (const ref of refs) if (ref !== refs[7]) seal(sql, ref)
    const asked = watched(sql)
    const backwards = [...refs].reverse()
    expect(Object.keys(loadSealed(asked.sql, [...backwards, ...refs]))).toEqual(
      backwards.filter((ref) => ref !== refs[7]),
    )
    expect(asked.queries).toHaveLength(1)
  },
)

rule('[D28] a sealed message weighs what its envelopes weigh, and none of them is read', (sql) => {
  says(sql, 1)
  answers(sql, 2)
  const long = 'x'.repeat(MAX_INLINE_BYTES)
  seal(sql, messageRef('m1'), 'words')
  seal(sql, messageRef('m2'), 'text')
  seal(sql, callsRef('m2'), 'given')
  seal(sql, resultRef('c2'), long)
  const asked = watched(sql)
  const sizes = [
    { seq: 1, runId: 'run', role: 'user', textBytes: bytesOf('words'), callBytes: 0 },
    {
      seq: 2,
      runId: 'run',
      role: 'assistant',
      textBytes: bytesOf('text'),
      callBytes: bytesOf('given') + bytesOf(long),
    },
  ]
  expect(sizesFrom(asked.sql, 1, 9, true)).toEqual(sizes)
  expect(sizesBackFrom(asked.sql, 2, 9, true)).toEqual([...sizes].reverse())
  expect(wordSizes(asked.sql, 1, 3, true)).toEqual(sizes.slice(0, 1))
  expect(asked.queries).toHaveLength(3)
  // What waits for its envelope weighs nothing yet.
  says(sql, 3)
  expect(sizesFrom(sql, 3, 1, true)).toMatchObject([{ textBytes: 0, callBytes: 0 }])
})

rule('[EC 17] content that is lost takes the row along that waited for it, and no other', (sql) => {
  says(sql, 1)
  answers(sql, 2)
  answers(sql, 3)
  for (const id of ['p1', 'p2'])
    sql.rows(
      `INSERT INTO plans (id, content, status, created_at, updated_at) VALUES (?, '', 'draft', 1, 1)`,
      id,
    )
  for (const id of ['f1', 'f2'])
    sql.rows(
      `INSERT INTO memories (id, content, local_only, created_at, updated_at) VALUES (?, '', 0, 1, 1)`,
      id,
    )
  for (const ref of [messageRef('m1'), messageRef('m2'), planRef('p1'), factRef('f1')]) seal(sql, ref)
  // Of the message that is lost something was sealed already.
  for (const ref of [callsRef('m3'), resultRef('c3'), diffRef('d3')]) seal(sql, ref)
  dropUnsealed(
    sql,
    ['m1', 'm2', 'm3', 'm9']
      .flatMap((id) => [messageRef(id), callsRef(id)])
      .concat([planRef('p1'), planRef('p2'), factRef('f1'), factRef('f2'), inputRef('s'), traceRef('t')]),
  )
  expect(loadMessages(sql, 1, 9).map(({ id, calls }) => [id, calls.length])).toEqual([
    ['m1', 0],
    ['m2', 2],
  ])
  expect(newestMessageSeq(sql)).toBe(2)
  expect(count(sql, 'tool_calls')).toBe(2)
  expect(sql.rows('SELECT id FROM plans')).toEqual([{ id: 'p1' }])
  expect(sql.rows('SELECT id FROM memories')).toEqual([{ id: 'f1' }])
  expect(sql.rows('SELECT ref FROM sealed_contents').map(({ ref }) => ref)).toEqual(
    [factRef('f1'), messageRef('m1'), messageRef('m2'), planRef('p1')].sort(),
  )
})

rule('[D26] content tells the message whose copy it changes', (sql) => {
  expect(newestMessageSeq(sql)).toBe(0)
  says(sql, 1)
  answers(sql, 2)
  const refs = [messageRef('m1'), messageRef('m2'), callsRef('m2'), resultRef('d2')]
  expect(refs.map((ref) => messageOfContent(sql, ref))).toEqual([1, 2, 2, 2])
  const none = [
    messageRef('c2'),
    messageRef('m3'),
    resultRef('c3'),
    diffRef('c2'),
    planRef('m1'),
    traceRef('m1'),
  ]
  expect(none.map((ref) => messageOfContent(sql, ref))).toEqual(none.map(() => null))
  expect(newestMessageSeq(sql)).toBe(2)
})

const room = { rows: 9, bytes: 4 * MAX_D1_TEXT_BYTES }

rule('[D26] D1 gets the envelopes of a sealed session, and of a message that has none nothing', (sql) => {
  says(sql, 1)
  answers(sql, 2)
  settle(sql, 'c2')
  settle(sql, 'd2', 'The user stopped this.')
  says(sql, 3)
  for (const ref of [messageRef('m1'), messageRef('m2'), callsRef('m2'), resultRef('c2')]) seal(sql, ref)
  const { rows, to } = messagesToCopy(sql, 1, room, true)
  expect(to).toBeNull()
  expect(rows.map(({ seq, text, calls }) => [seq, JSON.parse(text), calls])).toEqual([
    [1, envelope(messageRef('m1')), []],
    [
      2,
      envelope(messageRef('m2')),
      {
        encrypted: envelope(callsRef('m2')),
        calls: [
          {
            id: 'c2',
            name: 'read_file',
            isError: false,
            changesFiles: false,
            encrypted: envelope(resultRef('c2')),
          },
          {
            id: 'd2',
            name: 'read_file',
            isError: false,
            changesFiles: true,
            result: 'The user stopped this.',
          },
        ],
      },
    ],
  ])
})

rule('[D26] messages that wait for their envelope do not end the copy of those behind them', (sql) => {
  for (let seq = 1; seq <= 9; seq++) says(sql, seq)
  for (const id of ['m1', 'm6', 'm9']) seal(sql, messageRef(id))
  const copied: number[] = []
  let from: number | null = 1
  let pages = 0
  while (from !== null) {
    const { rows, to } = messagesToCopy(sql, from, { rows: 3, bytes: room.bytes }, true)
    copied.push(...rows.map(({ seq }) => seq))
    from = to === null ? null : to + 1
    if (++pages > 9) break
  }
  expect(copied).toEqual([1, 6, 9])
  expect(pages).toBeLessThanOrEqual(4)
})

rule('[D26] what goes to D1 is weighed as envelopes, whatever the texts in them take', (sql) => {
  for (const seq of [1, 2]) says(sql, seq)
  saveSealed(sql, messageRef('m1'), envelope('of nothing said'), 0)
  saveSealed(sql, messageRef('m2'), envelope('x'.repeat(MAX_D1_TEXT_BYTES)), 9)
  expect(sizesBackFrom(sql, 2, 9, true).map(({ textBytes }) => textBytes)).toEqual([9, 0])
  expect(messagesToCopy(sql, 1, room, true).rows).toMatchObject([
    { text: JSON.stringify(envelope('of nothing said')) },
    { text: '', omittedText: bytesOf('x'.repeat(MAX_D1_TEXT_BYTES)) },
  ])
})

rule('[D27] an envelope that is too long for D1 is weighed and not read', (sql) => {
  answers(sql, 1)
  const long = 'x'.repeat(MAX_D1_TEXT_BYTES)
  seal(sql, messageRef('m1'), long)
  seal(sql, resultRef('c1'), long)
  const asked = watched(sql)
  expect(messagesToCopy(asked.sql, 1, room, true).rows).toMatchObject([
    { text: '', calls: [], omittedText: bytesOf(long), omittedCalls: bytesOf(long) },
  ])
  expect(asked.queries.some((query) => query.startsWith('SELECT body FROM chunks'))).toBe(false)
})

const sealedEntry = (id: string): TraceEntry => ({
  ...entry(id),
  payload: { type: 'sealed', event_type: 'routing_decision' },
})

rule('[D26] a trace goes to D1 with its envelopes, as far as it has them', (sql) => {
  saveTurn(sql, makeTurn(1, { trace: [sealedEntry('e1'), sealedEntry('e2')], calls: [lostCall] }))
  saveTurn(sql, makeTurn(2, { trace: [sealedEntry('e3')] }))
  seal(sql, traceRef('e2'))
  const { rows, to } = turnsToCopy(sql, 1, room, true)
  expect(to).toBeNull()
  const { payload: _, ...head } = entry('e2')
  const payload = { event_type: 'routing_decision', encrypted: envelope(traceRef('e2')) }
  expect(rows.map(({ trace, calls }) => [trace, calls])).toEqual([
    [[{ ...head, payload }], [lostCall]],
    [[], []],
  ])
})

rule(
  '[D27] a batch of sealed traces ends before it is too large; one too long for D1 is told by size',
  (sql) => {
    const quarter = MAX_D1_TEXT_BYTES / 4
    for (let seq = 1; seq <= 3; seq++) {
      saveTurn(sql, makeTurn(seq, { trace: [sealedEntry(`e${seq}`)] }))
      seal(sql, traceRef(`e${seq}`), 'x'.repeat(quarter))
    }
    saveTurn(sql, makeTurn(4, { trace: [sealedEntry('e4')] }))
    seal(sql, traceRef('e4'), 'x'.repeat(MAX_D1_TEXT_BYTES))
    const first = turnsToCopy(sql, 1, { rows: 9, bytes: 2 * quarter }, true)
    expect([first.rows.map(({ seq }) => seq), first.to]).toEqual([[1], 1])
    const second = turnsToCopy(sql, 2, { rows: 2, bytes: 4 * quarter }, true)
    expect([second.rows.map(({ seq }) => seq), second.to]).toEqual([[2, 3], 3])
    const [last] = turnsToCopy(sql, 4, room, true).rows
    expect(last?.trace).toEqual([])
    expect(last?.omittedTrace).toBeGreaterThan(MAX_D1_TEXT_BYTES)
  },
)

rule('[D31] when the trace of a sealed session has had its time, its envelopes go with it', (sql) => {
  saveSession(sql, makeSession({ keyId: 'kf_k' }))
  saveTurn(sql, makeTurn(1, { trace: [sealedEntry('e1')], status: 'done', endedAtMs: NOW }))
  saveTurn(sql, makeTurn(2, { trace: [sealedEntry('e2')], status: 'done', endedAtMs: NOW + 5 }))
  for (const ref of [traceRef('e1'), traceRef('e2'), messageRef('m1')]) seal(sql, ref, 'x'.repeat(300_000))
  expect(expireTraces(sql, NOW + 1, 7)).toBe(1)
  expect(loadTurns(sql, 1, 9).map(({ trace }) => trace.length)).toEqual([0, 1])
  expect(sql.rows('SELECT ref FROM sealed_contents').map(({ ref }) => ref)).toEqual([
    messageRef('m1'),
    traceRef('e2'),
  ])
  expect(sealedBytes(sql, traceRef('e2'))).toBe(bytesOf('x'.repeat(300_000)))
  expect(sql.rows('SELECT DISTINCT ref FROM chunks')).toHaveLength(2)
})

rule('[U09] the policies of sealed traces are told by the turns', (sql) => {
  saveTurn(sql, makeTurn(1, { policyDigest: 'b' }))
  saveTurn(sql, makeTurn(2, { policyDigest: 'a' }))
  saveTurn(sql, makeTurn(3, { policyDigest: 'b' }))
  saveTurn(sql, makeTurn(4))
  saveTurn(sql, makeTurn(5, { policyDigest: 'c' }))
  expect([...policiesOfTurns(sql, ['t4', 't3', 't2', 't1', 'nobody'])]).toEqual(['b', 'a'])
})
