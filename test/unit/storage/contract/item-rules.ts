import { expect } from 'vitest'
import { insertMessage, settleCall } from '../../../../src/storage/session/messages.ts'
import {
  callsOf,
  contentPlace,
  itemsBefore,
  newestAnswer,
  readHead,
} from '../../../../src/storage/session/remote-items.ts'
import { firstOfRun, lastOfRun, newestTurn, turnAt } from '../../../../src/storage/session/run-turns.ts'
import type { Sql } from '../../../../src/storage/session/sql.ts'
import { isInsideChar, pieceText, readPiece, readWhole } from '../../../../src/storage/session/text-pieces.ts'
import { saveTurn } from '../../../../src/storage/session/turns.ts'
import { assistantMessage, call, makeTurn, userMessage } from './builders.ts'
import { NOW, ruleInto, type StorageRule } from './rules.ts'

export const ITEM_RULES: StorageRule[] = []

const rule = ruleInto(ITEM_RULES)

const SIZES = { contentBytes: 8, argumentBytes: 100 }

function storeTalk(sql: Sql): void {
  insertMessage(sql, 1, userMessage('u1', 'go on, please'), NOW, 1)
  insertMessage(sql, 2, assistantMessage('a2', 'so', [call('c1'), call('c2')]), NOW + 1, 1)
  settleCall(sql, { w: 'settle_call', callId: 'c2', isError: true, content: '' }, NOW + 2)
  insertMessage(sql, 3, { ...assistantMessage('a3', 'end'), clock: { responseMs: 5 } }, NOW + 3, 1)
}

rule('[RF 15] items are the messages, each with its calls behind it, before any place of them', (sql) => {
  storeTalk(sql)
  const places = [
    { seq: 1, part: 0 },
    { seq: 2, part: 0 },
    { seq: 2, part: 1 },
    { seq: 2, part: 2 },
    { seq: 3, part: 0 },
  ]
  const before = (index: number, limit: number) =>
    itemsBefore(sql, places[index] ?? null, limit, SIZES).map(({ seq, part }) => ({ seq, part }))
  for (let index = 0; index <= places.length; index++)
    for (let limit = 1; limit <= 6; limit++)
      expect(before(index, limit)).toEqual(places.slice(Math.max(0, index - limit), index))
})

rule('[RF 15] items have the beginning of their text, and say how long the whole is', (sql) => {
  storeTalk(sql)
  const [said, answer, waiting, failed, last] = itemsBefore(sql, null, 10, SIZES)
  expect(said).toMatchObject({
    k: 'message',
    role: 'user',
    content: { text: 'go on, p', totalBytes: 13 },
    clock: null,
  })
  expect(answer).toMatchObject({ k: 'message', role: 'assistant', content: { text: 'so', totalBytes: 2 } })
  expect(waiting).toMatchObject({
    k: 'call',
    status: 'pending',
    arguments: '{"path":"a.ts"}',
    completedAtMs: null,
  })
  expect(failed).toMatchObject({
    k: 'call',
    status: 'failed',
    content: { totalBytes: 0 },
    completedAtMs: NOW + 2,
  })
  expect(last).toMatchObject({ clock: { responseMs: 5 } })
  expect(newestAnswer(sql)).toEqual({ seq: 3, id: 'a3', runId: 'run' })
  const { calls, total } = callsOf(sql, 2, 1, 100)
  expect([calls.map(({ callId }) => callId), total]).toEqual([['c1'], 2])
})

/** Characters of every length, among them those that SQLite and decoders treat in ways of their own. */
const WEIRD = '\ufeffa\u0000ß€\u0001chunks:🚂'

for (const times of [1, 40_000]) {
  rule(`[U44] a piece of a text of ${times} parts is read at each byte, wherever it is kept`, (sql) => {
    const text = WEIRD.repeat(times)
    const bytes = new TextEncoder().encode(text)
    insertMessage(sql, 1, userMessage('u1', text), NOW, 1)
    const place = contentPlace({ seq: 1, part: 0 })
    const offsets =
      times === 1 ? bytes.keys() : [0, 1, 262_100, 262_143, 262_144, 262_145, bytes.length - 3, bytes.length]
    for (const offset of offsets) {
      const piece = readPiece(sql, place, offset, 60)
      expect([...(piece?.bytes ?? [])]).toEqual([...bytes.slice(offset, offset + 60)])
      expect(piece?.totalBytes).toBe(bytes.length)
      expect(piece && isInsideChar(piece)).toBe(((bytes[offset] ?? 0) & 0xc0) === 0x80)
    }
    expect(readWhole(sql, place) === text).toBe(true)
  })
}

rule('[RF 15] what a piece has of a character that is cut is no part of its text', (sql) => {
  insertMessage(sql, 1, userMessage('u1', '€🚂x'), NOW, 1)
  const heads = Array.from(
    { length: 9 },
    (_, length) => readHead(sql, contentPlace({ seq: 1, part: 0 }), length)?.text,
  )
  expect(heads).toEqual(['', '', '', '€', '€', '€', '€', '€🚂', '€🚂x'])
  expect(pieceText({ bytes: new Uint8Array(0), totalBytes: 0 })).toBe('')
})

rule('[U44] there is no piece of a text that is not there', (sql) => {
  expect(readPiece(sql, contentPlace({ seq: 1, part: 0 }), 0, 10)).toBeNull()
  expect(readWhole(sql, contentPlace({ seq: 1, part: 2 }))).toBeNull()
})

rule('[RF 14] the turns of a run are found from any of them, and by a time', (sql) => {
  const lengths = [1, 3, 1, 17, 2]
  const runs: { first: number; last: number }[] = []
  let seq = 0
  for (const [n, length] of lengths.entries()) {
    runs.push({ first: seq + 1, last: seq + length })
    for (let turn = 0; turn < length; turn++) {
      seq++
      saveTurn(
        sql,
        makeTurn(seq, { runId: `run ${n}`, startedAtMs: NOW + seq * 10, endedAtMs: NOW + seq * 10 + 4 }),
      )
    }
  }
  const newest = newestTurn(sql)
  if (newest === null) throw new Error('no turn is stored')
  for (const { first, last } of runs)
    for (let at = first; at <= last; at++) {
      const turn = turnAt(sql, NOW + at * 10 + 9, newest)
      if (turn === null) throw new Error(`no turn at ${at}`)
      const [begin, end] = [firstOfRun(sql, turn), lastOfRun(sql, turn, newest)]
      expect([turn.seq, begin.seq, end.seq]).toEqual([at, first, last])
    }
  expect(turnAt(sql, NOW, newest)).toBeNull()
})
