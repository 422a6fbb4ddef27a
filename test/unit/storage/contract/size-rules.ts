import { expect } from 'vitest'
import { byteLength, MAX_D1_TEXT_BYTES, MAX_INLINE_BYTES } from '../../../../src/storage/limits.ts'
import { messagesToCopy, turnsToCopy } from '../../../../src/storage/session/copy-rows.ts'
import {
  runStart,
  sizesBackFrom,
  sizesFrom,
  wordSizes,
} from '../../../../src/storage/session/message-sizes.ts'
import { insertMessage, loadMessages, settleCall } from '../../../../src/storage/session/messages.ts'
import { eachPastCall } from '../../../../src/storage/session/past-calls.ts'
import type { Sql } from '../../../../src/storage/session/sql.ts'
import { storeText, textBytes } from '../../../../src/storage/session/texts.ts'
import { eachCall, eachTrace, saveTurn } from '../../../../src/storage/session/turns.ts'
import { assistantMessage, call, entry, lostCall, makeTurn, userMessage } from './builders.ts'
import { NOW, ruleInto, type StorageRule } from './rules.ts'

export const SIZE_RULES: StorageRule[] = []

const rule = ruleInto(SIZE_RULES)

/** Notes what is asked of a database. */
function watched(sql: Sql): { sql: Sql; queries: string[] } {
  const queries: string[] = []
  const rows: Sql['rows'] = (query, ...values) => {
    queries.push(query)
    return sql.rows(query, ...values)
  }
  return { sql: { ...sql, rows }, queries }
}

const settle = (sql: Sql, callId: string, content: string) =>
  settleCall(sql, { w: 'settle_call', callId, isError: false, content }, NOW)

const TEXTS = {
  empty: '',
  plain: 'a text',
  'of any characters': 'ü€🚂\u0000 and what follows',
  'of the longest that stays whole': 'x'.repeat(MAX_INLINE_BYTES),
  'in pieces': '🚂€'.repeat(MAX_INLINE_BYTES / 4),
  'that looks like a mark': '\u0001chunks:message:other',
}

for (const [what, text] of Object.entries(TEXTS)) {
  rule(`[D28] the size of a text ${what} is known without reading it`, (sql) => {
    insertMessage(sql, 1, userMessage('m1', text), NOW, 1)
    const asked = watched(sql)
    expect(sizesFrom(asked.sql, 1, 9)).toEqual([
      { seq: 1, runId: 'run', role: 'user', textBytes: byteLength(text), callBytes: 0 },
    ])
    expect(asked.queries).toHaveLength(1)
    expect(textBytes(sql, storeText(sql, 'other', text))).toBe(byteLength(text))
  })
}

rule('[D28] a message weighs what its calls were given, gave and carry', (sql) => {
  const result = '€'.repeat(MAX_INLINE_BYTES)
  const opaque = { signature: 'abc' }
  insertMessage(sql, 1, assistantMessage('m1', 'text', [call('c1', { opaque }), call('c2')]), NOW, 1)
  const args = byteLength(JSON.stringify({ path: 'a.ts' }))
  const given = 2 * args + byteLength(JSON.stringify(opaque))
  const size = () => sizesFrom(sql, 1, 1)[0]
  expect(size()).toMatchObject({ role: 'assistant', textBytes: 4, callBytes: given })
  settle(sql, 'c2', result)
  expect(size()).toMatchObject({ callBytes: given + byteLength(result) })
  settle(sql, 'c2', 'short')
  expect(size()).toMatchObject({ callBytes: given + 5 })
})

rule('[D28] sizes come in either direction, and the words of a run by themselves', (sql) => {
  insertMessage(sql, 1, userMessage('m1', 'a', 'one'), NOW, 1)
  insertMessage(sql, 2, userMessage('m2', 'b'), NOW, 1)
  insertMessage(sql, 3, assistantMessage('m3', 'c'), NOW, 1)
  insertMessage(sql, 4, userMessage('m4', 'd'), NOW, 1)
  insertMessage(sql, 5, assistantMessage('m5', 'e'), NOW, 1)
  const seqs = (sizes: { seq: number }[]) => sizes.map(({ seq }) => seq)
  expect(seqs(sizesFrom(sql, 2, 2))).toEqual([2, 3])
  expect(seqs(sizesBackFrom(sql, 4, 3))).toEqual([4, 3, 2])
  expect([runStart(sql, 'run', 5), runStart(sql, 'run', 2), runStart(sql, 'one', 2)]).toEqual([2, 2, 1])
  expect(seqs(wordSizes(sql, 2, 5))).toEqual([2, 4])
  expect(seqs(wordSizes(sql, 2, 4))).toEqual([2])
})

rule('[D11] of past calls the paths are read, and neither results nor long contents', (sql) => {
  const content = 'x'.repeat(5_000)
  for (let seq = 1; seq <= 20; seq++) {
    const args = { path: `${seq}.ts`, content, command: `cat ${content}`, list: [{ file: `${seq}.md` }] }
    insertMessage(
      sql,
      seq,
      assistantMessage(`m${seq}`, '', [
        call(`c${seq}`, { arguments: args, recordsDiff: true }),
        call(`d${seq}`),
      ]),
      NOW,
      1,
    )
  }
  settle(sql, 'c3', content)
  const past = [...eachPastCall(sql, 2, 20)]
  expect(past.map(({ id }) => id)).toEqual(
    Array.from({ length: 18 }, (_, n) => [`c${n + 2}`, `d${n + 2}`]).flat(),
  )
  const args = { path: '2.ts', command: `cat ${content}`, list: [{ file: '2.md' }] }
  expect(past[0]).toEqual({
    id: 'c2',
    name: 'read_file',
    arguments: args,
    isError: false,
    changesFiles: true,
  })
  expect(past[2]).toMatchObject({ id: 'c3', result: '', changesFiles: true })
})

rule('[D28] messages can be read without their calls, or without what was said', (sql) => {
  insertMessage(sql, 1, assistantMessage('m1', 'text', [call('c1')]), NOW, 1)
  const [whole] = loadMessages(sql, 1, 1)
  const asked = watched(sql)
  expect(loadMessages(asked.sql, 1, 1, { calls: false })).toEqual([{ ...whole, calls: [] }])
  expect(asked.queries).toHaveLength(1)
  expect(loadMessages(sql, 1, 1, { texts: false })).toEqual([{ ...whole, text: '' }])
  const results = loadMessages(sql, 1, 1, { readResult: () => 'never asked' })
  expect(results).toEqual([whole])
  settle(sql, 'c1', 'result')
  expect(loadMessages(sql, 1, 1, { readResult: (stored) => `(${stored})` })[0]?.calls[0]?.result).toBe(
    '(result)',
  )
})

const kib = (n: number) => 'x'.repeat(n * 1024)

rule('[D26] a batch ends before the row that would make it too large, and holds one row at least', (sql) => {
  for (let seq = 1; seq <= 5; seq++) insertMessage(sql, seq, userMessage(`m${seq}`, kib(10)), NOW, 1)
  const pageOf = (from: number, rows: number, bytes: number) => {
    const { rows: page, to } = messagesToCopy(sql, from, { rows, bytes })
    return [page.map(({ seq }) => seq), to]
  }
  expect(pageOf(1, 9, 50 * 1024)).toEqual([[1, 2, 3, 4, 5], null])
  expect(pageOf(1, 5, 50 * 1024)).toEqual([[1, 2, 3, 4, 5], null])
  expect(pageOf(1, 9, 50 * 1024 - 1)).toEqual([[1, 2, 3, 4], 4])
  expect(pageOf(1, 2, 50 * 1024)).toEqual([[1, 2], 2])
  expect(pageOf(3, 9, 1)).toEqual([[3], 3])
  expect(pageOf(5, 9, 1)).toEqual([[5], null])
  expect(pageOf(6, 9, 1)).toEqual([[], null])
})

rule('[D27] what D1 gets a marker for is weighed and not read', (sql) => {
  const most = 'x'.repeat(MAX_D1_TEXT_BYTES)
  insertMessage(sql, 1, userMessage('m1', most), NOW, 1)
  insertMessage(sql, 2, userMessage('m2', `${most}!`), NOW, 1)
  insertMessage(sql, 3, assistantMessage('m3', 'said', [call('c1')]), NOW, 1)
  settle(sql, 'c1', most)
  const asked = watched(sql)
  const { rows, to } = messagesToCopy(asked.sql, 1, { rows: 9, bytes: MAX_D1_TEXT_BYTES + 4 })
  expect(to).toBeNull()
  expect(rows.map(({ text, omittedText, omittedCalls }) => [text.length, omittedText, omittedCalls])).toEqual(
    [
      [MAX_D1_TEXT_BYTES, undefined, undefined],
      [0, MAX_D1_TEXT_BYTES + 1, undefined],
      [4, undefined, MAX_D1_TEXT_BYTES + byteLength('{"path":"a.ts"}')],
    ],
  )
  // The pieces of one text were read, and the calls of two messages.
  expect(asked.queries.filter((query) => query.startsWith('SELECT body FROM chunks'))).toHaveLength(1)
  expect(asked.queries.filter((query) => query.startsWith('SELECT * FROM tool_calls'))).toHaveLength(2)
})

rule('[D26] turns go to D1 by the same rule, and never what they came to', (sql) => {
  const outcome = { status: 'idle' as const, data: { trace_id: 'trace:x' } }
  const trace = Array.from({ length: 4000 }, (_, n) => entry(`e${n}`))
  saveTurn(sql, makeTurn(1, { calls: [lostCall], outcome }))
  saveTurn(sql, makeTurn(2, { trace, calls: [lostCall] }))
  saveTurn(sql, makeTurn(3, { trace: [entry('e')] }))
  const asked = watched(sql)
  const { rows, to } = turnsToCopy(asked.sql, 1, { rows: 9, bytes: MAX_D1_TEXT_BYTES })
  expect(to).toBeNull()
  expect(rows).toEqual([
    makeTurn(1, { calls: [lostCall] }),
    { ...makeTurn(2, { calls: [lostCall] }), omittedTrace: byteLength(JSON.stringify(trace)) },
    makeTurn(3, { trace: [entry('e')] }),
  ])
  expect(asked.queries.some((query) => query.includes('FROM chunks WHERE ref = ? ORDER'))).toBe(false)
  expect(turnsToCopy(sql, 1, { rows: 1, bytes: 1 })).toEqual({ rows: [rows[0]], to: 1 })
})

rule('[U09] traces and calls of all turns are gone through without what the turns came to', (sql) => {
  const outcome = { status: 'idle' as const, data: { trace_id: 'trace:x' } }
  for (let seq = 1; seq <= 101; seq++) {
    saveTurn(sql, makeTurn(seq, { trace: [entry(`e${seq}`)], calls: [lostCall], outcome }))
  }
  const asked = watched(sql)
  expect([...eachTrace(asked.sql)].flatMap(({ trace }) => trace.map(({ id }) => id))).toEqual(
    Array.from({ length: 101 }, (_, n) => `e${n + 1}`),
  )
  expect([...eachCall(asked.sql)]).toHaveLength(101)
  expect(asked.queries.every((query) => query.includes('NULL AS outcome'))).toBe(true)
})
