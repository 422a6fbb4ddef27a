import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { SealedMap } from '../../src/protocol/execution/sealed.ts'
import { SessionDetail } from '../../src/protocol/execution/session.ts'
import { RunResponse } from '../../src/protocol/execution/turn.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { Hold } from '../support/workers/hold.ts'
import { makeClient, parsed, refused, turnAs } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import {
  decryptedFor,
  newSealedSession,
  openOne,
  resultsFor,
  sealAll,
  sealedFor,
  toEncrypt,
} from '../support/workers/sealed-client.ts'
import { crash, inside } from '../support/workers/session-object.ts'
import { rowsWith } from '../support/workers/tables.ts'

const models = scriptModels()

const history = async (
  client: Awaited<ReturnType<typeof makeClient>>,
  session: Awaited<ReturnType<typeof newSealedSession>>,
) => {
  const detail = await parsed(
    await client.send('GET', `/api/v1/sessions/${session.id}`),
    z.object({ session: SessionDetail }),
  )
  return detail.session.messages.map(({ role, content, id }) => [
    role,
    'encrypted' in content ? openOne(session, `message:${id}`, content.encrypted) : content,
  ])
}

/** Every value of every table of the object. */
const objectText = (id: string) =>
  inside(id, (sql) =>
    sql
      .rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'")
      .map(({ name }) => JSON.stringify(sql.rows(`SELECT * FROM "${name}"`)))
      .join('\n'),
  )

describe.each([1, 2] as const)('a sealed session with envelopes of version %i', (version) => {
  test('the first prompt: completed, sealed, idle (EC 17.3)', async () => {
    models.script({ text: ['MARK-answer'] })
    const client = await makeClient()
    const session = await newSealedSession(client, version)
    const done = await turnAs(await client.execute(session.id, makeExecute('MARK-prompt')), 'completed')
    expect(done.allowed_continuations).toEqual(['sealed', 'break'])
    const kinds = Object.keys(toEncrypt(done)).map((ref) => ref.split(':')[0])
    expect(new Set(kinds)).toEqual(new Set(['run_input', 'message', 'tool_call', 'trace']))
    expect(await history(client, session)).toEqual([])
    expect(await objectText(session.id)).not.toContain('MARK')
    const idle = await turnAs(await client.proceed(session.id, sealedFor(session, done)), 'idle')
    expect(idle).not.toHaveProperty('allowed_continuations')
    expect(await history(client, session)).toEqual([
      ['user', 'MARK-prompt'],
      ['assistant', 'MARK-answer'],
    ])
    expect(await objectText(session.id)).not.toContain('MARK')
    expect(await rowsWith('MARK')).toEqual({})
  })

  test('a later prompt asks for the history first, and a tool loop goes on from memory or from the key', async () => {
    models.script(
      { text: ['one'] },
      { text: ['let me see'], calls: [{ id: 'p1', name: 'read_file', arguments: { path: 'MARK.ts' } }] },
      { text: ['two'] },
    )
    const client = await makeClient()
    const session = await newSealedSession(client, version)
    const first = await turnAs(await client.execute(session.id, makeExecute('first')), 'completed')
    await turnAs(await client.proceed(session.id, sealedFor(session, first)), 'idle')
    const locked = await turnAs(await client.execute(session.id, makeExecute('second')), 'awaiting_decrypt')
    expect(locked.allowed_continuations).toEqual(['decrypted', 'break'])
    const tools = await turnAs(
      await client.proceed(session.id, decryptedFor(session, locked)),
      'awaiting_tool',
    )
    await crash(session.id)
    const again = await turnAs(
      await client.proceed(session.id, resultsFor(session, tools, 'MARK-result')),
      'awaiting_decrypt',
    )
    const done = await turnAs(await client.proceed(session.id, decryptedFor(session, again)), 'completed')
    expect(models.chats.at(-1)?.messages.map(({ content }) => content)).toEqual(
      expect.arrayContaining(['first', 'one', 'second', 'MARK-result']),
    )
    await turnAs(await client.proceed(session.id, sealedFor(session, done)), 'idle')
    expect(await history(client, session)).toEqual([
      ['user', 'first'],
      ['assistant', 'one'],
      ['user', 'second'],
      ['assistant', 'let me see'],
      ['assistant', 'two'],
    ])
    expect(await objectText(session.id)).not.toContain('MARK')
    expect(await rowsWith('MARK')).toEqual({})
  })
})

test('an envelope that is missing, of another key or malformed changes nothing, and the pause stays (EC 17.1)', async () => {
  models.script({ text: ['answer'] })
  const client = await makeClient()
  const session = await newSealedSession(client)
  const done = await turnAs(await client.execute(session.id, makeExecute('prompt')), 'completed')
  const whole = sealAll(session, toEncrypt(done))
  const [ref = ''] = Object.keys(whole)
  const envelope = whole[ref]
  if (!envelope) throw new Error('nothing to seal')
  const { [ref]: _, ...lacking } = whole
  const bad: SealedMap[] = [
    lacking,
    { ...whole, [ref]: { ...envelope, key_id: 'kf_other' } },
    { ...whole, [ref]: { ...envelope, version: 2 } },
    { ...whole, [ref]: { ...envelope, algorithm: 'aes' } },
    { ...whole, [ref]: { ...envelope, nonce: 'AAAA' } },
    { ...whole, [ref]: { ...envelope, ciphertext: 'AA==' } },
    { ...whole, 'message:0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11': envelope },
  ]
  for (const encrypted of bad) {
    const answer = await client.proceed(session.id, { type: 'sealed', data: { encrypted } })
    expect(await refused(answer)).toMatchObject({ status: 422, code: 'invalid_request' })
  }
  expect(await history(client, session)).toEqual([])
  await turnAs(await client.proceed(session.id, { type: 'sealed', data: { encrypted: whole } }), 'idle')
})

describe('what a stop or new words leave unsealed', () => {
  test('a break in mid-answer asks to seal the partial, and the run is idle after that (EC 17.4)', async () => {
    const hold = new Hold()
    models.script({ text: ['MARK-half'], hold: hold.wait, after: ['never'] })
    const client = await makeClient()
    const session = await newSealedSession(client)
    const cut = client.execute(session.id, makeExecute('MARK-prompt'))
    await hold.reached()
    const stopped = await turnAs(await client.proceed(session.id, { type: 'break' }), 'awaiting_encrypt')
    expect(stopped.allowed_continuations).toEqual(['sealed', 'break'])
    expect(stopped.data.ended).toMatchObject({ interrupted: true })
    expect(await refused(await cut)).toMatchObject({ status: 409 })
    expect(await objectText(session.id)).not.toContain('MARK')
    await turnAs(await client.proceed(session.id, sealedFor(session, stopped)), 'idle')
    expect(await history(client, session)).toEqual([
      ['user', 'MARK-prompt'],
      ['assistant', 'MARK-half'],
    ])
    hold.release()
  })

  test('a second break gives up what is unsealed: a client without the key gets away', async () => {
    models.script({ text: ['answer'] })
    const client = await makeClient()
    const session = await newSealedSession(client)
    await turnAs(await client.execute(session.id, makeExecute('prompt')), 'completed')
    await turnAs(await client.proceed(session.id, { type: 'break' }), 'awaiting_encrypt')
    await turnAs(await client.proceed(session.id, { type: 'break' }), 'idle')
    expect(await history(client, session)).toEqual([])
  })

  test('an inject at a pause goes on with everything, and is sealed with the next outcome', async () => {
    models.script(
      { text: ['look'], calls: [{ id: 'p1', name: 'read_file', arguments: { path: 'a.ts' } }] },
      { text: ['changed'] },
    )
    const client = await makeClient()
    const session = await newSealedSession(client)
    await turnAs(await client.execute(session.id, makeExecute('prompt')), 'awaiting_tool')
    const inject = { type: 'inject' as const, data: { messages: [{ text: 'stop, do this' }] } }
    const done = await turnAs(await client.proceed(session.id, inject), 'completed')
    await turnAs(await client.proceed(session.id, sealedFor(session, done)), 'idle')
    expect(await history(client, session)).toEqual([
      ['user', 'prompt'],
      ['assistant', 'look'],
      ['user', 'stop, do this'],
      ['assistant', 'changed'],
    ])
  })

  test('an execute instead of the last sealed loses nothing that is still in memory (EC 5.3)', async () => {
    models.script({ text: ['one'] }, { text: ['two'] })
    const client = await makeClient()
    const session = await newSealedSession(client)
    await turnAs(await client.execute(session.id, makeExecute('first')), 'completed')
    const done = await turnAs(await client.execute(session.id, makeExecute('second')), 'completed')
    await turnAs(await client.proceed(session.id, sealedFor(session, done)), 'idle')
    expect(await history(client, session)).toEqual([
      ['user', 'first'],
      ['assistant', 'one'],
      ['user', 'second'],
      ['assistant', 'two'],
    ])
  })

  test('a turn that failed leaves its prompt to seal, and GET …/run tells of it', async () => {
    models.script({ status: 400, error: 'no' }, { text: ['two'] })
    const client = await makeClient()
    const session = await newSealedSession(client)
    const failed = await client.execute(session.id, makeExecute('MARK-first'))
    expect((await refused(failed)).status).toBe(422)
    const left = await turnAs(await client.run(session.id), 'awaiting_encrypt')
    await turnAs(await client.proceed(session.id, sealedFor(session, left)), 'idle')
    expect(await history(client, session)).toEqual([['user', 'MARK-first']])
    expect(await objectText(session.id)).not.toContain('MARK')
  })
})

describe('[D20] an eviction before the ciphertext came', () => {
  test('the pause is told without the texts that are lost, and the client that has them hands them in', async () => {
    models.script(
      { text: ['answer'], calls: [{ id: 'p1', name: 'read_file', arguments: { path: 'MARK.ts' } }] },
      { text: ['done'] },
    )
    const client = await makeClient()
    const session = await newSealedSession(client)
    const tools = await turnAs(await client.execute(session.id, makeExecute('prompt')), 'awaiting_tool')
    await crash(session.id)
    const told = await parsed(await client.run(session.id), RunResponse)
    expect(told).toMatchObject({
      status: 'awaiting_tool',
      data: { tool_requests: [{ name: 'read_file', arguments: null, requires_approval: 'allow' }] },
      lost: Object.keys(toEncrypt(tools)),
    })
    expect(told.data).not.toHaveProperty('to_encrypt')
    const asked = await turnAs(
      await client.proceed(session.id, resultsFor(session, tools)),
      'awaiting_decrypt',
    )
    await turnAs(await client.proceed(session.id, decryptedFor(session, asked)), 'completed')
    expect(models.chats.at(-1)?.messages.map(({ content }) => content)).toContain('out')
  })

  test('the client that never saw the outcome sends the same request again, and the turn is served again', async () => {
    const call = { text: ['look'], calls: [{ id: 'p1', name: 'read_file', arguments: { path: 'a.ts' } }] }
    models.script(call, call, { text: ['lost'] }, { text: ['told'] })
    const client = await makeClient()
    const session = await newSealedSession(client)
    const key = { 'Idempotency-Key': 'k1' }
    await turnAs(await client.execute(session.id, makeExecute('prompt'), key), 'awaiting_tool')
    await crash(session.id)
    const tools = await turnAs(await client.execute(session.id, makeExecute('prompt'), key), 'awaiting_tool')
    const results = resultsFor(session, tools)
    await turnAs(await client.proceed(session.id, results), 'completed')
    await crash(session.id)
    const asked = await turnAs(await client.proceed(session.id, results), 'awaiting_decrypt')
    const done = await turnAs(await client.proceed(session.id, decryptedFor(session, asked)), 'completed')
    await turnAs(await client.proceed(session.id, sealedFor(session, done)), 'idle')
    expect(await history(client, session)).toEqual([
      ['user', 'prompt'],
      ['assistant', 'look'],
      ['assistant', 'told'],
    ])
  })

  test('[U14] a request whose run is long over is answered, not run again', async () => {
    models.script({ text: ['one'] }, { text: ['two'] })
    const client = await makeClient()
    const session = await newSealedSession(client)
    const key = { 'Idempotency-Key': 'k1' }
    const first = await turnAs(await client.execute(session.id, makeExecute('first'), key), 'completed')
    await turnAs(await client.proceed(session.id, sealedFor(session, first)), 'idle')
    await crash(session.id)
    await turnAs(await client.execute(session.id, makeExecute('first'), key), 'idle')
    expect(models.chats).toHaveLength(1)
  })
})

test('facts of a sealed session are sealed with their keys, replaced and forgotten (EC 16)', async () => {
  const memory = (args: Record<string, string>) => ({
    calls: [{ id: 'm', name: 'memory', arguments: { scope: 'session', ...args } }],
  })
  models.script(
    memory({ op: 'record', key: 'MARK-key', value: 'MARK-old' }),
    memory({ op: 'update', key: 'MARK-key', value: 'MARK-new' }),
    { text: ['noted'] },
    { text: ['known'] },
    memory({ op: 'forget', key: 'MARK-key' }),
    { text: ['gone'] },
  )
  const client = await makeClient()
  const session = await newSealedSession(client)
  const first = await turnAs(await client.execute(session.id, makeExecute('remember')), 'completed')
  await turnAs(await client.proceed(session.id, sealedFor(session, first)), 'idle')
  expect(await objectText(session.id)).not.toContain('MARK')
  expect(await rowsWith('MARK')).toEqual({})
  const second = await turnAs(await client.execute(session.id, makeExecute('what?')), 'awaiting_decrypt')
  expect(Object.keys(second.data.to_decrypt).filter((ref) => ref.startsWith('memory:'))).toHaveLength(1)
  const known = await turnAs(await client.proceed(session.id, decryptedFor(session, second)), 'completed')
  expect(JSON.stringify(models.chats.at(-1))).toContain('MARK-new')
  expect(JSON.stringify(models.chats.at(-1))).not.toContain('MARK-old: ')
  const third = await turnAs(await client.execute(session.id, makeExecute('forget it')), 'awaiting_decrypt')
  const gone = await turnAs(await client.proceed(session.id, decryptedFor(session, third)), 'completed')
  await turnAs(await client.proceed(session.id, sealedFor(session, gone)), 'idle')
  expect(toEncrypt(known)).not.toEqual({})
  expect(await inside(session.id, (sql) => sql.rows('SELECT id FROM memories'))).toEqual([])
})

test('a plan is sealed with its approval, and the next turn knows it (EC 14)', async () => {
  models.script({ text: ['MARK-plan'] }, { text: ['built'] })
  const client = await makeClient()
  const session = await newSealedSession(client)
  const body = makeExecute('make a plan', { input: { text: 'make a plan', command: 'plan' } })
  const plan = await turnAs(await client.execute(session.id, body), 'awaiting_approval')
  const ref = Object.keys(toEncrypt(plan)).find((name) => name.startsWith('plan:')) ?? ''
  expect(toEncrypt(plan)[ref]).toBe('MARK-plan')
  const decided = await client.proceed(session.id, {
    type: 'approval_decisions',
    data: {
      decisions: [{ approval_id: plan.data.approval.approval_id, decision: 'approved' }],
      encrypted: sealAll(session, toEncrypt(plan)),
    },
  })
  const done = await turnAs(decided, 'completed')
  await turnAs(await client.proceed(session.id, sealedFor(session, done)), 'idle')
  expect(await objectText(session.id)).not.toContain('MARK')
  expect((await history(client, session)).map(([, text]) => text)).toEqual([
    'make a plan',
    'MARK-plan',
    'built',
  ])
})
