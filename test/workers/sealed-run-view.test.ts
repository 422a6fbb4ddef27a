import { expect, test } from 'vitest'
import { makeExecute } from '../support/workers/bodies.ts'
import { makeClient, turnAs } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { newSealedSession, resultsFor, toEncrypt } from '../support/workers/sealed-client.ts'
import { crash } from '../support/workers/session-object.ts'
import { eventsOf, STREAM } from '../support/workers/turn-stream.ts'

const models = scriptModels()

test('[D20] a call whose arguments are lost is not announced on a stream: whoever runs what comes would run nothing', async () => {
  models.script({ text: ['look'], calls: [{ id: 'p1', name: 'read_file', arguments: { path: 'a.ts' } }] })
  const client = await makeClient()
  const session = await newSealedSession(client)
  const tools = await turnAs(await client.execute(session.id, makeExecute('prompt')), 'awaiting_tool')
  const before = await eventsOf(await client.run(session.id, STREAM))
  expect(before.map(({ type }) => type)).toContain('tool_call_requested')
  await crash(session.id)
  const after = await eventsOf(await client.run(session.id, STREAM))
  expect(after).toMatchObject([{ type: 'turn_end', status: 'awaiting_tool' }])
  expect(toEncrypt(tools)).not.toEqual({})
  await turnAs(await client.proceed(session.id, resultsFor(session, tools)), 'awaiting_decrypt')
})
