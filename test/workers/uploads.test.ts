import { env } from 'cloudflare:workers'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { SessionOperation } from '../../src/session/rpc.ts'
import { makeExecute, routeTo } from '../support/workers/bodies.ts'
import { until } from '../support/workers/hold.ts'
import { quietGateway } from '../support/workers/live-list.ts'
import { type Client, makeClient, turnAs } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { checkpointOf, crash } from '../support/workers/session-object.ts'
import { SharedSession } from '../support/workers/shared-session.ts'

const models = scriptModels()
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const PIXEL_BYTES = 70

let client: Client
let id: string
let session: SharedSession
beforeAll(async () => {
  models.hasSeeing = true
  client = await makeClient()
})
beforeEach(async () => {
  quietGateway()
  session = await SharedSession.open(client)
  id = session.id
})

const ask: SharedSession['ask'] = (...asked) => session.ask(...asked)

const chunk = (offset: number, data: string): SessionOperation => ({
  type: 'upload_image',
  attachment_id: 'pixel',
  mime_type: 'image/png',
  offset,
  total_bytes: PIXEL_BYTES,
  data_base64: data,
})

async function upload(): Promise<string> {
  const { result } = await ask(chunk(0, PIXEL))
  if (result.type !== 'image_uploaded' || result.prompt_reference === undefined)
    throw new Error(`not uploaded: ${JSON.stringify(result)}`)
  return result.prompt_reference
}

/** Runs once over HTTP, so that the session has a policy. */
async function runOnce(...route: Parameters<typeof routeTo>): Promise<void> {
  models.script({ text: ['Hello'] })
  await turnAs(await client.execute(id, makeExecute('hi', { policy: routeTo(...route) })), 'completed')
}

const isIdle = async () => {
  const { state } = await checkpointOf(id)
  return state?.active == null && state?.phase.k === 'Idle'
}

async function submit(prompt: string): Promise<void> {
  expect(await ask({ type: 'submit_prompt', prompt })).toMatchObject({ receipt: 'applied' })
  await until(isIdle)
}

describe('[RF 27] a picture from a device', () => {
  it('is shown to a model that sees, in its turn and in the turns after it, also after a death', async () => {
    await runOnce('ollama/small', 'ollama/seeing')
    models.script({ text: ['A pixel.'] })
    await submit(`What is ${await upload()}?`)
    expect(models.chats.at(-1)).toMatchObject({ model: 'seeing', images: [PIXEL] })
    await crash(id)
    await client.execute(id, makeExecute('Sure?', { policy: routeTo('ollama/seeing') }))
    expect(models.chats.at(-1)).toMatchObject({ model: 'seeing', images: [PIXEL] })
    // For one that sees none, its name stands in the text.
    await client.execute(id, makeExecute('And you?', { policy: routeTo('ollama/small') }))
    expect(models.chats.at(-1)).toMatchObject({ model: 'small', images: [] })
    expect(JSON.stringify(models.chats.at(-1)?.messages)).toContain('![image](switchyard-image:')
  })

  it('of which the object has a part goes on after its death; an answer that was given is given again', async () => {
    await runOnce('ollama/seeing')
    const first = await ask(chunk(0, PIXEL.slice(0, 40)), { requestId: 'first' })
    expect(first).toMatchObject({ receipt: 'applied', result: { next_offset: 30, complete: false } })
    await crash(id)
    expect(await ask(chunk(0, PIXEL.slice(0, 40)), { requestId: 'first' })).toEqual(first)
    const last = await ask(chunk(30, PIXEL.slice(40)), { requestId: 'last' })
    expect(last).toMatchObject({ receipt: 'applied', result: { complete: true } })
    await crash(id)
    expect(await ask(chunk(30, PIXEL.slice(40)), { requestId: 'last' })).toEqual(last)
    // The same chunk under another request has the same progress.
    expect(await ask(chunk(0, PIXEL.slice(0, 40)))).toEqual(first)
  })

  it('that is none is deleted with the answer that says so, and may be sent anew', async () => {
    await runOnce('ollama/seeing')
    const broken = `${PIXEL.slice(0, 60)}AAAA${PIXEL.slice(64)}`
    const refused = await ask(chunk(0, broken), { requestId: 'broken' })
    expect(refused).toMatchObject({ receipt: 'rejected', result: { code: 'invalid_request' } })
    await crash(id)
    expect(await ask(chunk(0, broken), { requestId: 'broken' })).toEqual(refused)
    expect(await upload()).toContain('switchyard-image:')
  })

  it('is refused where no model of the session sees, and starts no turn where one does', async () => {
    await runOnce('ollama/small', 'ollama/other')
    expect(await ask(chunk(0, PIXEL))).toMatchObject({
      receipt: 'rejected',
      result: { type: 'error', code: 'unsupported_operation' },
    })
    await runOnce('ollama/seeing')
    const asked = models.chats.length
    await upload()
    expect(await isIdle()).toBe(true)
    expect(models.chats).toHaveLength(asked)
  })

  it('that was never uploaded cannot be referred to', async () => {
    await runOnce('ollama/seeing')
    const prompt = 'What is ![image](switchyard-image:00000000-0000-0000-0000-000000000000)?'
    expect(await ask({ type: 'submit_prompt', prompt })).toMatchObject({
      receipt: 'rejected',
      result: { type: 'error', code: 'invalid_request' },
    })
  })
})

it('[D26] what became of an upload is in D1 as well', async () => {
  await runOnce('ollama/seeing')
  const spoiled = { ...chunk(0, PIXEL), mime_type: 'image/gif' } as SessionOperation
  expect(await ask(spoiled, { requestId: 'spoiled' })).toMatchObject({ receipt: 'rejected' })
  const copied = () =>
    env.DB.prepare('SELECT receipt, code FROM receipts WHERE session_id = ? AND request_id = ?')
      .bind(id, 'spoiled')
      .all()
  await until(async () => (await copied()).results.length > 0)
  expect((await copied()).results).toEqual([{ receipt: 'rejected', code: 'invalid_request' }])
})
