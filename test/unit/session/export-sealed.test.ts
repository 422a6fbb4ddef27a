import { expect, test } from 'vitest'
import {
  callsRef,
  factRef,
  messageRef,
  resultRef,
  traceRef,
} from '../../../src/protocol/execution/content-refs.ts'
import { ExportRecord } from '../../../src/protocol/execution/export.ts'
import type { EncryptedPayload } from '../../../src/protocol/execution/sealed.ts'
import { sessionRecords } from '../../../src/session/export.ts'
import { newId } from '../../../src/storage/ids.ts'
import { applyMemory } from '../../../src/storage/session/memories.ts'
import { insertMessage, settleCall } from '../../../src/storage/session/messages.ts'
import { migrateSession } from '../../../src/storage/session/migrations.ts'
import { saveSealed } from '../../../src/storage/session/sealed-contents.ts'
import { saveTurn } from '../../../src/storage/session/turns.ts'
import { makeNodeSql } from '../../support/node/node-sql.ts'
import { call, entry, makeSession, makeTurn } from '../storage/contract/builders.ts'

const NOW = 1_760_000_000_000

const envelope = (ciphertext: string): EncryptedPayload => ({
  version: 1,
  algorithm: 'xchacha20poly1305',
  key_id: 'kf_k',
  nonce: 'n',
  ciphertext,
})

/** A sealed session with two of each kind of content, of which one waits for its envelope. */
function makeSealedSession() {
  const sql = makeNodeSql()
  migrateSession(sql)
  const session = makeSession({ sessionId: newId(), keyId: 'kf_k' })
  const ids = {
    said: newId(),
    answered: newId(),
    waiting: newId(),
    served: newId(),
    stopped: newId(),
    answeredByRouter: newId(),
    facts: [newId(), newId()] as const,
    plans: [newId(), newId()] as const,
    traces: [newId(), newId()] as const,
  }
  const runId = newId()
  insertMessage(sql, 1, { w: 'user_message', id: ids.said, runId, text: '' }, NOW, 1)
  const calls = [
    call(ids.served, { arguments: {} }),
    call(ids.stopped, { arguments: {} }),
    call(ids.answeredByRouter, {
      arguments: {},
      answer: { result: '', isError: false, refused: false },
    }),
  ]
  insertMessage(
    sql,
    2,
    {
      w: 'assistant_message',
      id: ids.answered,
      runId,
      text: '',
      provider: 'ollama',
      model: 'small',
      interrupted: false,
      calls,
    },
    NOW,
    1,
  )
  settleCall(sql, { w: 'settle_call', callId: ids.served, isError: false, content: '' }, NOW)
  settleCall(sql, { w: 'settle_call', callId: ids.stopped, isError: true, content: 'Cancelled.' }, NOW)
  insertMessage(sql, 3, { w: 'user_message', id: ids.waiting, runId, text: '' }, NOW, 1)
  for (const id of ids.facts)
    applyMemory(
      sql,
      {
        w: 'memory',
        id,
        op: { op: 'record', scope: 'session', key: '', content: '', localOnly: false, sealed: true },
      },
      NOW,
    )
  for (const id of ids.plans)
    sql.rows(
      `INSERT INTO plans (id, content, status, created_at, updated_at) VALUES (?, '', 'draft', 1, 1)`,
      id,
    )
  const trace = ids.traces.map((id) => ({
    ...entry(id),
    payload: { type: 'sealed', event_type: 'message' } as const,
  }))
  saveTurn(sql, makeTurn(1, { turnId: newId(), runId, trace }))
  const refs = [
    messageRef(ids.said),
    messageRef(ids.answered),
    callsRef(ids.answered),
    resultRef(ids.served),
    factRef(ids.facts[1]),
    `plan:${ids.plans[1]}`,
    traceRef(ids.traces[1]),
  ]
  for (const ref of refs) saveSealed(sql, ref, envelope(ref))
  return { records: [...sessionRecords(sql, session)], ids }
}

const ofType = <T extends ExportRecord['type']>(records: ExportRecord[], type: T) =>
  records.filter((record): record is Extract<ExportRecord, { type: T }> => record.type === type)

test('[EC 17] an export of a sealed session is made of envelopes, each beside what stays clear', () => {
  const { records, ids } = makeSealedSession()
  for (const record of records) expect(ExportRecord.parse(record)).toEqual(record)
  expect(records.map(({ type }) => type)).toEqual([
    'session',
    'memory',
    'message',
    'message',
    'plan',
    'trace',
    'usage',
  ])
  const [said, answered] = ofType(records, 'message')
  expect(said).toMatchObject({ id: ids.said, content: { encrypted: envelope(messageRef(ids.said)) } })
  expect(said).not.toHaveProperty('tool_calls')
  expect(answered).toMatchObject({
    content: { encrypted: envelope(messageRef(ids.answered)) },
    encrypted_calls: envelope(callsRef(ids.answered)),
  })
  expect(answered?.tool_calls).toEqual([
    {
      id: ids.served,
      name: 'read_file',
      arguments: {},
      status: 'completed',
      encrypted: envelope(resultRef(ids.served)),
    },
    { id: ids.stopped, name: 'read_file', arguments: {}, status: 'failed', result: 'Cancelled.' },
    { id: ids.answeredByRouter, name: 'read_file', arguments: {}, status: 'completed' },
  ])
  expect(ofType(records, 'plan')).toMatchObject([
    { id: ids.plans[1], content: '', encrypted: envelope(`plan:${ids.plans[1]}`) },
  ])
  const [fact] = ofType(records, 'memory')
  expect(fact).toMatchObject({ id: ids.facts[1], content: '', encrypted: envelope(factRef(ids.facts[1])) })
  expect(fact).not.toHaveProperty('key')
  expect(ofType(records, 'trace')).toMatchObject([
    { event: { id: ids.traces[1], payload: { encrypted: envelope(traceRef(ids.traces[1])) } } },
  ])
})

test('[EC 17] what waits for its envelope is no part of an export', () => {
  const { records, ids } = makeSealedSession()
  const told = JSON.stringify(records)
  for (const id of [ids.waiting, ids.facts[0], ids.plans[0], ids.traces[0]]) expect(told).not.toContain(id)
})
