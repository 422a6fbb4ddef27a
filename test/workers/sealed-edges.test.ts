import { describe, expect, test } from 'vitest'
import { makeExecute } from '../support/workers/bodies.ts'
import { makeClient, refused, turnAs } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import {
  decryptedFor,
  newSealedSession,
  resultsFor,
  sealedFor,
  toEncrypt,
} from '../support/workers/sealed-client.ts'
import { crash } from '../support/workers/session-object.ts'

const models = scriptModels()
const READ = { calls: [{ id: 'p1', name: 'read_file', arguments: { path: 'a.ts' } }] }

async function setUp() {
  const client = await makeClient()
  const session = await newSealedSession(client)
  return { client, session }
}

describe('[EC 15] an inject is always accepted', () => {
  test('also when what the run was started with was given up before anybody sealed it', async () => {
    models.script({ text: ['one'] }, { text: ['two'] })
    const { client, session } = await setUp()
    await turnAs(await client.execute(session.id, makeExecute('prompt')), 'completed')
    await turnAs(await client.proceed(session.id, { type: 'break' }), 'awaiting_encrypt')
    await turnAs(await client.proceed(session.id, { type: 'break' }), 'idle')
    const inject = { type: 'inject' as const, data: { messages: [{ text: 'go on' }] } }
    await turnAs(await client.proceed(session.id, inject), 'completed')
    expect(models.chats.at(-1)?.messages.at(-1)?.content).toBe('go on')
  })

  test('also when it was lost with the object', async () => {
    models.script(READ, { text: ['two'] })
    const { client, session } = await setUp()
    await turnAs(await client.execute(session.id, makeExecute('prompt')), 'awaiting_tool')
    await crash(session.id)
    const inject = { type: 'inject' as const, data: { messages: [{ text: 'go on' }] } }
    await turnAs(await client.proceed(session.id, inject), 'completed')
  })
})

describe('[EC 17.3] an opened run input', () => {
  test.each(['no json', '[]', '{}', '{"version":1,"input":7}'])(
    'that is none (%s) is refused, and the pause stays',
    async (garbage) => {
      models.script(READ, { text: ['done'] })
      const { client, session } = await setUp()
      const tools = await turnAs(await client.execute(session.id, makeExecute('prompt')), 'awaiting_tool')
      await crash(session.id)
      const asked = await turnAs(
        await client.proceed(session.id, resultsFor(session, tools)),
        'awaiting_decrypt',
      )
      const right = decryptedFor(session, asked)
      if (right.type !== 'decrypted') throw new Error('no answer to a decrypt pause')
      const ref = `run_input:${session.id}`
      const plaintext = { ...right.data.plaintext, [ref]: garbage }
      const wrong = await client.proceed(session.id, {
        type: 'decrypted',
        data: { ...right.data, plaintext },
      })
      expect(await refused(wrong)).toMatchObject({ status: 422, code: 'invalid_request', details: { ref } })
      await turnAs(await client.proceed(session.id, right), 'completed')
    },
  )
})

describe('[D20] a key that comes again', () => {
  test('after a failed turn gives the failure, also when its words are gone with the object', async () => {
    models.script({ status: 400, error: 'no' })
    const { client, session } = await setUp()
    const key = { 'Idempotency-Key': 'k' }
    const first = await refused(await client.execute(session.id, makeExecute('prompt'), key))
    await crash(session.id)
    const again = await refused(await client.execute(session.id, makeExecute('prompt'), key))
    expect([again.status, again.code]).toEqual([first.status, first.code])
    expect(models.chats).toHaveLength(1)
  })

  test('of a stop is that one stop: it gives up nothing', async () => {
    models.script({ text: ['answer'] })
    const { client, session } = await setUp()
    const done = await turnAs(await client.execute(session.id, makeExecute('prompt')), 'completed')
    const key = { 'Idempotency-Key': 'stop' }
    await turnAs(await client.proceed(session.id, { type: 'break' }, key), 'awaiting_encrypt')
    await crash(session.id)
    await turnAs(await client.proceed(session.id, { type: 'break' }, key), 'awaiting_encrypt')
    const encrypted = sealedFor(session, done)
    await turnAs(await client.proceed(session.id, encrypted), 'idle')
  })

  test('of ciphertext that is kept already is answered with idle, in whatever form it comes', async () => {
    models.script({ text: ['answer'] })
    const { client, session } = await setUp()
    const done = await turnAs(await client.execute(session.id, makeExecute('prompt')), 'completed')
    await turnAs(await client.proceed(session.id, sealedFor(session, done)), 'idle')
    await turnAs(await client.proceed(session.id, sealedFor(session, done)), 'idle')
    expect(Object.keys(toEncrypt(done)).length).toBeGreaterThan(0)
  })
})

test('[EC 2.6] a blank key id makes no encrypted session', async () => {
  const client = await makeClient()
  for (const key_id of ['', '  ']) {
    const answer = await client.send('POST', '/api/v1/sessions', { title: 't', key_id })
    expect(await refused(answer)).toMatchObject({ status: 422, code: 'invalid_request' })
  }
})
