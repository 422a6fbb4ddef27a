import { expect, test } from 'vitest'
import type { NewCall } from '../../../src/core/run/writes.ts'
import { callsRef, messageRef, resultRef } from '../../../src/protocol/execution/content-refs.ts'
import { TranscriptWindow } from '../../../src/session/transcript-window.ts'
import { byteLength, MAX_SEALED_HISTORY_BYTES } from '../../../src/storage/limits.ts'
import { insertMessage, settleCall } from '../../../src/storage/session/messages.ts'
import { migrateSession } from '../../../src/storage/session/migrations.ts'
import { saveSealed } from '../../../src/storage/session/sealed-contents.ts'
import { makeNodeSql } from '../../support/node/node-sql.ts'

const envelope = (ciphertext: string) => ({
  version: 1,
  algorithm: 'xchacha20poly1305',
  key_id: 'kf_k',
  nonce: 'n',
  ciphertext,
})
const EMPTY_BYTES = byteLength(JSON.stringify(envelope('')))

/** A session whose texts are sealed; an envelope of `bytes` bytes stands for a text. */
function makeSealed(limits: { messages?: number; bytes?: number; pastBytes?: number } = {}) {
  const plain = makeNodeSql()
  migrateSession(plain)
  const read = { rows: 0, texts: 0 }
  const sql: typeof plain = {
    ...plain,
    rows: (query, ...values) => {
      const rows = plain.rows(query, ...values)
      if (query.startsWith('SELECT * FROM messages')) read.rows += rows.length
      read.texts += byteLength(JSON.stringify(rows))
      return rows
    },
  }
  const window = new TranscriptWindow(sql, { ...limits, sealed: true })
  let seq = 0
  let run = 'run 1'
  const seal = (ref: string, bytes: number) => {
    saveSealed(plain, ref, envelope('x'.repeat(bytes - EMPTY_BYTES)))
    window.changed(seq)
  }
  const newCall = (id: string): NewCall => ({ id, name: 'read_file', arguments: {}, recordsDiff: false })
  return {
    read,
    seal,
    startRun: (name: string) => {
      run = name
    },
    history: () => window.read(seq, run),
    /** `bytes: null`: nobody sealed it yet. */
    says: (bytes: number | null) => {
      const id = `m${++seq}`
      insertMessage(plain, seq, { w: 'user_message', id, runId: run, text: '' }, 0, 1)
      if (bytes === null) window.changed(seq)
      else seal(messageRef(id), bytes)
    },
    answers: (bytes: number, calls: string[] = []) => {
      const id = `m${++seq}`
      insertMessage(
        plain,
        seq,
        {
          w: 'assistant_message',
          id,
          runId: run,
          text: '',
          provider: 'ollama',
          model: 'small',
          interrupted: false,
          calls: calls.map(newCall),
        },
        0,
        1,
      )
      seal(messageRef(id), bytes)
      if (calls.length > 0) seal(callsRef(id), bytes)
    },
    settles: (callId: string, bytes: number | null, content = '') => {
      settleCall(plain, { w: 'settle_call', callId, isError: false, content }, 0)
      if (bytes === null) window.changed(seq)
      else seal(resultRef(callId), bytes)
    },
  }
}

const seqs = ({ transcript }: { transcript: readonly { seq: number }[] }) => transcript.map(({ seq }) => seq)
const resultsOf = ({ transcript }: ReturnType<ReturnType<typeof makeSealed>['history']>) =>
  transcript.at(-1)?.calls.map(({ result }) => result)

test('[D28] a sealed history is met to the byte by its envelopes, and one byte more leaves out the oldest', () => {
  for (const [bytes, from] of [
    [2_000, 1],
    [1_999, 2],
    [1_500, 2],
    [1_499, 3],
  ] as const) {
    const session = makeSealed({ bytes })
    session.says(500)
    session.answers(250, ['c'])
    session.settles('c', 500)
    session.answers(500)
    session.startRun('next')
    expect([bytes, seqs(session.history())[0]]).toEqual([bytes, from])
  }
})

test('[D28] 3 MiB of envelopes take part in a turn unless another bound is given', () => {
  const session = makeSealed()
  for (let n = 0; n < 4; n++) session.says(MAX_SEALED_HISTORY_BYTES / 3)
  session.startRun('next')
  const history = session.history()
  expect([seqs(history), history.olderMessages]).toEqual([[2, 3, 4], 1])
  // No envelope was read, and what was read once is kept whatever the envelopes weigh.
  expect(session.read.texts).toBeLessThan(10_000)
  expect(session.read.rows).toBe(3)
  session.history()
  expect(session.read.rows).toBe(3)
})

test('[D28] a message that waits for its envelope is part of the turn, and weighs what it weighs once sealed', () => {
  const session = makeSealed({ bytes: 1_000 })
  session.says(500)
  session.answers(500)
  session.startRun('next')
  session.says(null)
  expect(seqs(session.history())).toEqual([1, 2, 3])
  session.seal(messageRef('m3'), 400)
  expect(seqs(session.history())).toEqual([2, 3])
})

test('[D27] of the newest round of a sealed session results that cannot fit are named in place of their envelope', () => {
  const session = makeSealed({ bytes: 1_600 })
  session.says(200)
  session.answers(200, ['a', 'b', 'c', 'd'])
  session.settles('a', 600)
  session.settles('b', 900)
  session.settles('c', 300)
  session.settles('d', null, 'The user stopped this.')
  expect(resultsOf(session.history())).toEqual([
    '',
    'This result is left out: its 900 bytes are too many.',
    '',
    'The user stopped this.',
  ])
})

test('[U37] of a sealed run that is cut, the calls that are left out are opened with the rest, and judged by', () => {
  const session = makeSealed({ messages: 2 })
  session.says(200)
  session.answers(200, ['a'])
  session.answers(200)
  session.answers(200, ['b'])
  session.answers(200)
  session.answers(200)
  const { transcript, pastAnswers, pastCalls } = session.history()
  expect(transcript.map(({ seq, localOnly }) => [seq, localOnly === true])).toEqual([
    [1, false],
    [5, false],
    [6, false],
  ])
  expect([pastAnswers.map(({ seq }) => seq), pastCalls]).toEqual([[2, 4], []])
})

test('[U37] of a sealed run whose calls are too many to be opened, local models alone see what was answered', () => {
  const session = makeSealed({ messages: 3, pastBytes: 0 })
  session.says(200)
  session.answers(200, ['a'])
  session.answers(200, ['b'])
  const told = () => {
    const { transcript, pastCalls } = session.history()
    expect(pastCalls).toEqual([])
    return transcript.map(({ seq, localOnly }) => [seq, localOnly === true])
  }
  expect(told()).toEqual([
    [1, false],
    [2, false],
    [3, false],
  ])
  // What the user said is all that is left out of the recent messages, and has its place before them.
  session.answers(200)
  expect(told()).toEqual([
    [1, false],
    [2, false],
    [3, false],
    [4, false],
  ])
  session.answers(200)
  expect(told()).toEqual([
    [1, false],
    [3, true],
    [4, true],
    [5, true],
  ])
  // A run that is there whole is judged by itself, and so is the rest of the one that is cut.
  session.startRun('next')
  session.says(200)
  session.answers(200)
  expect(told()).toEqual([
    [5, true],
    [6, false],
    [7, false],
  ])
})
