import { evictDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { GetSessionResponse } from '../../src/protocol/execution/session.ts'
import { MAX_D1_TEXT_BYTES, MAX_RUN_WORDS_BYTES, MAX_TOOL_RESULT_BYTES } from '../../src/storage/limits.ts'
import { loadCheckpoint, saveCheckpoint } from '../../src/storage/session/checkpoint.ts'
import { insertMessage } from '../../src/storage/session/messages.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { copyOf } from '../support/workers/d1.ts'
import { type Client, makeClient, parsed, refused, turnAs, turnOf } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { inside, messagesOf, turnsOf } from '../support/workers/session-object.ts'

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

describe('a session with more text than a turn takes', () => {
  const MIB = 1024 * 1024
  /** Puts an earlier run into the object whose every result is of the longest kind. */
  async function fill(results: number): Promise<void> {
    models.script({ text: ['Hello'] })
    await turnAs(await client.execute(id, makeExecute('hi')), 'completed')
    await inside(id, (sql, state) =>
      state.storage.transactionSync(() => {
        const before = loadCheckpoint(sql)
        let { message } = before.counters
        for (let n = 0; n < results; n++) {
          insertMessage(sql, ++message, longRound(n), Date.now(), before.counters.rev)
        }
        saveCheckpoint(sql, { ...before, counters: { ...before.counters, message } })
      }),
    )
    await evictDurableObject(env.SESSION.getByName(id))
  }
  const longRound = (n: number) => ({
    w: 'assistant_message' as const,
    id: `m${n}`,
    runId: 'long',
    text: 'read',
    provider: 'ollama' as const,
    model: 'small',
    interrupted: false,
    calls: [
      {
        id: `c${n}`,
        name: 'read_file',
        arguments: { path: 'a' },
        recordsDiff: false,
        answer: { result: 'x'.repeat(6 * MIB), isError: false, refused: false },
      },
    ],
  })

  it('[D28] goes on, and says how many older messages are left out', async () => {
    await fill(4)
    models.script({ text: ['On we go'] })
    const preview = await client.send('POST', `/api/v1/sessions/${id}/preview`, makeExecute('next'))
    expect(await preview.json()).toMatchObject({ excluded_context: ['6 earlier messages'] })
    const turn = await turnAs(await client.execute(id, makeExecute('next')), 'completed')
    expect(turn.data.message.content).toBe('On we go')
    const trace = (await turnsOf(id)).at(-1)?.trace ?? []
    const items = trace.flatMap(({ payload }) =>
      payload.type === 'context_selection_list' ? payload.items : [],
    )
    // Two of 6 MiB are held and fit no window; the four messages before them were not even read.
    expect(items.map(({ reason }) => reason)).toEqual([
      'does not fit the window',
      'does not fit the window',
      '4 older messages',
    ])
  })

  it('[D27] shows its transcript without reading what its tools gave', async () => {
    await fill(4)
    const { session } = await parsed(await client.send('GET', `/api/v1/sessions/${id}`), GetSessionResponse)
    expect(session.messages.map(({ content }) => content)).toEqual(
      ['hi', 'Hello', 'read', 'read', 'read', 'read'].map((plaintext) => ({ plaintext })),
    )
  })
})

describe('what the user says in a run', () => {
  const pauseWith = async (prompt: string) => {
    models.script({ calls: [{ name: 'read_file', arguments: { path: 'a' } }] }, { text: ['Done.'] })
    return turnAs(await client.execute(id, makeExecute(prompt)), 'awaiting_tool')
  }
  const inject = (text: string) => client.proceed(id, { type: 'inject', data: { messages: [{ text }] } })
  const most = MAX_RUN_WORDS_BYTES - 1000

  it('[D27] may take 10 MiB in all, and a longer inject leaves the pause as it is', async () => {
    const paused = await pauseWith('a'.repeat(500))
    expect(await refused(await inject('ü'.repeat((most + 502) / 2)))).toMatchObject({
      status: 422,
      code: 'invalid_request',
      details: { max_bytes: MAX_RUN_WORDS_BYTES },
    })
    expect(await turnOf(await client.run(id))).toEqual(paused)
    expect((await refused(await inject('ü'.repeat((most + 500) / 2)))).code).not.toBe('invalid_request')
    expect(await messagesOf(id)).toHaveLength(3)
  })

  it('[D27] counts for its run alone', async () => {
    models.script({ text: ['Hello'] }, { text: ['Again'] })
    await client.execute(id, makeExecute('a'.repeat(6_000_000))).then((answer) => answer.text())
    expect((await refused(await inject('b'.repeat(6_000_000)))).code).not.toBe('invalid_request')
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
