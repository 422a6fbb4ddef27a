import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { GetSessionResponse } from '../../src/protocol/execution/session.ts'
import { MAX_D1_TEXT_BYTES, MAX_TOOL_RESULT_BYTES } from '../../src/storage/limits.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { copyOf } from '../support/workers/d1.ts'
import { type Client, makeClient, parsed, refused, turnAs, turnOf } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { messagesOf } from '../support/workers/session-object.ts'

const models = scriptModels()

let client: Client
let id: string
beforeAll(async () => {
  client = await makeClient()
})
beforeEach(async () => {
  id = await client.newSession()
})

describe('a tool result', () => {
  const pause = async () => {
    models.script({ calls: [{ name: 'read_file', arguments: { path: 'a' } }] }, { text: ['Done.'] })
    const body = makeExecute('hi', { policy: { routing: { default: { model: 'openai-compat:lan/desk' } } } })
    const paused = await turnAs(await client.execute(id, body), 'awaiting_tool')
    return { paused, call_id: paused.data.tool_requests[0]?.call_id ?? '' }
  }
  const answer = (call_id: string, content: string) =>
    client.proceed(id, { type: 'tool_results', data: { results: [{ call_id, content }] } })

  it('[D27] of 8 MiB is accepted and kept whole', async () => {
    const { call_id } = await pause()
    const content = 'ü'.repeat(MAX_TOOL_RESULT_BYTES / 2)
    // It fits no window, so the run ends there; the result is kept all the same.
    expect((await refused(await answer(call_id, content))).code).not.toBe('invalid_request')
    const [, assistant] = await messagesOf(id)
    expect(assistant?.calls[0]?.result === content).toBe(true)
  })

  it('[D27] one byte longer is refused with 422, and the pause takes a shorter one', async () => {
    const { paused, call_id } = await pause()
    const content = `${'ü'.repeat(MAX_TOOL_RESULT_BYTES / 2)}!`
    expect(await refused(await answer(call_id, content))).toMatchObject({
      status: 422,
      code: 'invalid_request',
      details: { call_id, max_bytes: MAX_TOOL_RESULT_BYTES },
    })
    expect(await turnOf(await client.run(id))).toEqual(paused)
    await turnAs(await answer(call_id, 'short'), 'completed')
  })
})

describe('a text', () => {
  const say = async (text: string) => {
    models.script({ text: [text] })
    const turn = await turnAs(await client.execute(id, makeExecute('hi')), 'completed')
    expect(turn.data.message.content === text).toBe(true)
  }

  it('[D27] of 512 KiB stands in D1 as it is; a longer one leaves a marker with its size', async () => {
    const fits = '🚂'.repeat(MAX_D1_TEXT_BYTES / 4)
    await say(fits)
    expect((await copyOf(id)).messages[1]?.content === fits).toBe(true)
    await say(`${fits}!`)
    expect((await copyOf(id)).messages[3]?.content).toBe(`\u0001omitted:${MAX_D1_TEXT_BYTES + 1}`)
    const { session } = await parsed(await client.send('GET', `/api/v1/sessions/${id}`), GetSessionResponse)
    expect(session.messages.at(-1)).toMatchObject({ content: { plaintext: `${fits}!` } })
  })

  it('[D27] long prompts of any characters come back as they were sent', async () => {
    const prompt = `${'a'.repeat(87_380)}${'🚂'.repeat(200_000)}€`
    models.script({ text: ['x'] })
    await (await client.execute(id, makeExecute(prompt))).text()
    const { session } = await parsed(await client.send('GET', `/api/v1/sessions/${id}`), GetSessionResponse)
    expect(
      JSON.stringify(session.messages[0]) ===
        JSON.stringify({ role: 'user', content: { plaintext: prompt } }),
    ).toBe(true)
  })
})
