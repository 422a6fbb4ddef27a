import { beforeEach, expect, it } from 'vitest'
import {
  callsRef,
  factRef,
  messageRef,
  resultRef,
  traceRef,
} from '../../src/protocol/execution/content-refs.ts'
import { ListMemoryResponse } from '../../src/protocol/execution/memory.ts'
import type { EncryptedPayload } from '../../src/protocol/execution/sealed.ts'
import { CreateSessionResponse } from '../../src/protocol/execution/session.ts'
import { newId } from '../../src/storage/ids.ts'
import { loadCheckpoint, saveCheckpoint } from '../../src/storage/session/checkpoint.ts'
import { applyMemory, factSealed } from '../../src/storage/session/memories.ts'
import { insertMessage, settleCall } from '../../src/storage/session/messages.ts'
import { saveSealed } from '../../src/storage/session/sealed-contents.ts'
import type { Sql } from '../../src/storage/session/sql.ts'
import { saveTurn } from '../../src/storage/session/turns.ts'
import { copyOf } from '../support/workers/d1.ts'
import { type Client, makeClient, parsed } from '../support/workers/router.ts'
import { crash, inside } from '../support/workers/session-object.ts'
import { assistantMessage, call, entry, makeTurn, userMessage } from '../unit/storage/contract/builders.ts'

const KEY_ID = 'kf_k'
const NOW = 1_760_000_000_000

const envelope = (ciphertext: string): EncryptedPayload => ({
  version: 1,
  algorithm: 'xchacha20poly1305',
  key_id: KEY_ID,
  nonce: 'n',
  ciphertext,
})
const seal = (sql: Sql, ref: string) => saveSealed(sql, ref, envelope(ref))

let client: Client
let id: string
beforeEach(async () => {
  client = await makeClient()
  const created = await client.send('POST', '/api/v1/sessions', { title: 'sealed', key_id: KEY_ID })
  id = (await parsed(created, CreateSessionResponse, 201)).session.id
})

/** Stores as a sealed session does, owes all of it to D1, and lets the object carry it there. */
async function copied(store: (sql: Sql) => void): Promise<void> {
  await inside(id, (sql) => {
    store(sql)
    const checkpoint = loadCheckpoint(sql)
    const owed = { session: true, messagesFrom: 1, turnsFrom: 1, memory: true }
    saveCheckpoint(sql, { ...checkpoint, outbox: { ...checkpoint.outbox, ...owed } })
  })
  await crash(id)
  await parsed(
    await client.send('PUT', `/api/v1/sessions/${id}`, { title: 'renamed' }),
    CreateSessionResponse,
  )
}

const recordFact = (sql: Sql, factId: string, replaces?: string) =>
  applyMemory(
    sql,
    {
      w: 'memory',
      id: factId,
      op: {
        op: 'record',
        scope: 'session',
        key: '',
        content: '',
        localOnly: true,
        sealed: true,
        ...(replaces === undefined ? {} : { replaces }),
      },
    },
    NOW,
  )
const listed = async () =>
  (await parsed(await client.send('GET', `/api/v1/memory?session_id=${id}`), ListMemoryResponse)).memories

it('[D26] of a sealed session D1 gets envelopes, and nothing of what waits for one', async () => {
  await copied((sql) => {
    insertMessage(sql, 1, userMessage('m1', ''), NOW, 1)
    const calls = [call('c1', { arguments: {} })]
    insertMessage(sql, 2, assistantMessage('m2', '', calls), NOW, 1)
    settleCall(sql, { w: 'settle_call', callId: 'c1', isError: false, content: '' }, NOW)
    insertMessage(sql, 3, userMessage('m3', ''), NOW, 1)
    const payload = { type: 'sealed', event_type: 'message' } as const
    const trace = ['e1', 'e2'].map((entryId) => ({ ...entry(entryId), payload }))
    saveTurn(sql, makeTurn(1, { status: 'done', endedAtMs: NOW, trace }))
    for (const ref of [messageRef('m1'), messageRef('m2'), callsRef('m2'), resultRef('c1'), traceRef('e2')])
      seal(sql, ref)
  })
  const copy = await copyOf(id)
  expect(copy.messages.map(({ seq, content, calls }) => [seq, content, calls])).toEqual([
    [1, JSON.stringify(envelope(messageRef('m1'))), null],
    [
      2,
      JSON.stringify(envelope(messageRef('m2'))),
      JSON.stringify({
        encrypted: envelope(callsRef('m2')),
        calls: [
          {
            id: 'c1',
            name: 'read_file',
            isError: false,
            changesFiles: false,
            encrypted: envelope(resultRef('c1')),
          },
        ],
      }),
    ],
  ])
  expect(copy.turns.map(({ trace }) => JSON.parse(String(trace)))).toMatchObject([
    [{ id: 'e2', payload: { event_type: 'message', encrypted: envelope(traceRef('e2')) } }],
  ])
})

it('[D50] a fact of a sealed session is listed as its envelope, until another has replaced it', async () => {
  const [first, second] = [newId(), newId()]
  await copied((sql) => {
    for (const factId of [first, newId()]) recordFact(sql, factId)
    seal(sql, factRef(first))
    factSealed(sql, first, NOW + 1)
  })
  const [fact, ...others] = await listed()
  expect(others).toEqual([])
  expect(fact).toMatchObject({
    id: first,
    scope: 'session',
    session_id: id,
    content: '',
    encrypted: envelope(factRef(first)),
    local_only: true,
  })
  expect(fact).not.toHaveProperty('key')
  await copied((sql) => {
    recordFact(sql, second, first)
    seal(sql, factRef(second))
    factSealed(sql, second, NOW + 2)
  })
  expect(await listed()).toMatchObject([{ id: second, encrypted: envelope(factRef(second)) }])
})
