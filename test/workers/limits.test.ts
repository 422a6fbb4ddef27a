import { evictDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { GetSessionResponse, ListSessionsResponse } from '../../src/protocol/execution/session.ts'
import {
  byteLength,
  MAX_D1_TEXT_BYTES,
  MAX_FILE_BYTES,
  MAX_FILES,
  MAX_IDEMPOTENCY_KEY_CHARS,
  MAX_INJECTED_MESSAGES,
  MAX_MESSAGES_PER_SESSION,
  MAX_RUN_WORDS_BYTES,
  MAX_RUNS_PER_SESSION,
  MAX_SESSIONS_PER_USER,
  MAX_TOOL_RESULT_BYTES,
  MAX_TURNS_PER_RUN,
} from '../../src/storage/limits.ts'
import { loadCheckpoint, saveCheckpoint } from '../../src/storage/session/checkpoint.ts'
import { insertMessage } from '../../src/storage/session/messages.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { copyOf } from '../support/workers/d1.ts'
import { Hold } from '../support/workers/hold.ts'
import { type Client, makeClient, parsed, refused, turnAs, turnOf } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { checkpointOf, crash, inside, messagesOf, turnsOf } from '../support/workers/session-object.ts'

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

  it('[D27] of 8 MiB is kept whole, and the model is shown its beginning and end and told what is missing', async () => {
    const { call_id } = await pause()
    const content = `first${'ü'.repeat(MAX_TOOL_RESULT_BYTES / 2 - 4)}end`
    expect(byteLength(content)).toBe(MAX_TOOL_RESULT_BYTES)
    const turn = await turnAs(await answer(call_id, content), 'completed')
    const [, assistant] = await messagesOf(id)
    expect(assistant?.calls[0]?.result === content).toBe(true)
    const shown = models.chats.at(-1)?.messages.at(-1)?.content ?? ''
    expect(shown).toMatch(/^first[ü]+\n\[\d+ of 4194308 characters are left out here.*\]\n[ü]+end$/)
    expect(shown.length).toBeLessThan(32_768)
    expect(turn.data.context.exclusions).toContainEqual({
      item: 'the middle of what read_file gave',
      reason: 'too long for the window',
    })
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

describe('what one request brings', () => {
  const files = (count: number, content = 'x') =>
    Array.from({ length: count }, (_, n) => ({ path: `f${n}`, content, content_hash: '', required: false }))
  const untouched = async () => {
    expect(await turnOf(await client.run(id))).toMatchObject({ status: 'idle' })
    expect(await messagesOf(id)).toEqual([])
    expect(models.chats).toEqual([])
  }

  it('[D27] a thousand files are taken; of one more nothing is', async () => {
    const more = makeExecute('hi', { attachments: { files: files(MAX_FILES + 1) } })
    const refusal = {
      status: 422,
      code: 'invalid_request',
      details: {
        field: 'attachments.files',
        max_items: MAX_FILES,
        issues: [{ path: 'attachments.files', message: `at most ${MAX_FILES} entries are taken` }],
      },
    }
    expect(await refused(await client.execute(id, more))).toMatchObject(refusal)
    expect(await refused(await client.send('POST', `/api/v1/sessions/${id}/preview`, more))).toMatchObject(
      refusal,
    )
    await untouched()
    models.script({ text: ['Read.'] })
    await turnAs(
      await client.execute(id, makeExecute('hi', { attachments: { files: files(MAX_FILES) } })),
      'completed',
    )
  })

  it('[D27] a file of 8 MiB is taken, a longer one is not', async () => {
    const content = 'ü'.repeat(MAX_FILE_BYTES / 2)
    const longer = makeExecute('hi', { attachments: { files: files(1, `${content}!`) } })
    expect(await refused(await client.execute(id, longer))).toMatchObject({
      status: 422,
      code: 'invalid_request',
      details: { field: 'attachments.files.0.content', max_bytes: MAX_FILE_BYTES },
    })
    await untouched()
    models.script({ text: ['Read.'] })
    const fits = makeExecute('hi', { attachments: { files: files(1, content) } })
    await turnAs(await client.execute(id, fits), 'completed')
  })

  it('[D27] a hundred texts are injected at once; of one more none is, and the pause stays', async () => {
    models.script({ calls: [{ name: 'read_file', arguments: { path: 'a' } }] }, { text: ['Done.'] })
    const paused = await turnAs(await client.execute(id, makeExecute('hi')), 'awaiting_tool')
    const inject = (count: number) =>
      client.proceed(id, {
        type: 'inject',
        data: { messages: Array.from({ length: count }, () => ({ text: 'more' })) },
      })
    expect(await refused(await inject(MAX_INJECTED_MESSAGES + 1))).toMatchObject({
      status: 422,
      code: 'invalid_request',
      details: { field: 'data.messages', max_items: MAX_INJECTED_MESSAGES },
    })
    expect(await turnOf(await client.run(id))).toEqual(paused)
    await turnAs(await inject(MAX_INJECTED_MESSAGES), 'completed')
  })

  it('[D20] an idempotency key has up to 255 characters', async () => {
    models.script({ text: ['Hello'] })
    const keyed = (length: number) =>
      client.execute(id, makeExecute('hi'), { 'Idempotency-Key': 'k'.repeat(length) })
    expect(await refused(await keyed(MAX_IDEMPOTENCY_KEY_CHARS + 1))).toMatchObject({
      status: 422,
      code: 'invalid_request',
      details: { max_chars: MAX_IDEMPOTENCY_KEY_CHARS },
    })
    await untouched()
    await turnAs(await keyed(MAX_IDEMPOTENCY_KEY_CHARS), 'completed')
  })
})

describe('what piles up in a session', () => {
  type Changes = { message?: number; runs?: number; turn?: number }

  /** Brings the counters of a session to where a client in a loop would bring them. */
  async function bring({ turn, ...counters }: Changes): Promise<void> {
    await inside(id, (sql, state) =>
      state.storage.transactionSync(() => {
        const before = loadCheckpoint(sql)
        saveCheckpoint(sql, {
          ...before,
          state: before.state === null || turn === undefined ? before.state : { ...before.state, turn },
          counters: { ...before.counters, ...counters },
        })
      }),
    )
    await evictDurableObject(env.SESSION.getByName(id))
  }
  const begin = async () => {
    models.script({ text: ['Hello'] })
    await turnAs(await client.execute(id, makeExecute('first')), 'completed')
  }
  const pause = async () => {
    models.script({ calls: [{ name: 'read_file', arguments: { path: 'a' } }] }, { text: ['Done.'] })
    const paused = await turnAs(await client.execute(id, makeExecute('hi')), 'awaiting_tool')
    return { paused, call_id: paused.data.tool_requests[0]?.call_id ?? '' }
  }
  const inject = () => client.proceed(id, { type: 'inject', data: { messages: [{ text: 'go on' }] } })
  const report = (call_id: string) =>
    client.proceed(id, { type: 'tool_results', data: { results: [{ call_id, content: 'x' }] } })
  const rest = async () => {
    const [{ state, counters }, run] = await Promise.all([checkpointOf(id), client.run(id)])
    return { state, counters, run: await run.json() }
  }

  it('[D27] the hundred-thousandth message still begins a run; after it no prompt is taken, nor an inject', async () => {
    await begin()
    await bring({ message: MAX_MESSAGES_PER_SESSION })
    const before = await rest()
    const refusal = {
      status: 422,
      code: 'invalid_request',
      message: expect.stringContaining('new one'),
      details: { max_messages: MAX_MESSAGES_PER_SESSION },
    }
    expect(await refused(await client.execute(id, makeExecute('next')))).toEqual(refusal)
    expect(await refused(await inject())).toEqual(refusal)
    expect(await rest()).toEqual(before)
    await bring({ message: MAX_MESSAGES_PER_SESSION - 1 })
    await turnAs(await client.execute(id, makeExecute('next')), 'completed')
  })

  it('[D27] the ten-thousandth run is taken, and none after it, prompted or injected', async () => {
    await begin()
    await bring({ runs: MAX_RUNS_PER_SESSION - 1 })
    await turnAs(await client.execute(id, makeExecute('last')), 'completed')
    const before = await rest()
    const refusal = { status: 422, code: 'invalid_request', details: { max_runs: MAX_RUNS_PER_SESSION } }
    expect(await refused(await client.execute(id, makeExecute('one more')))).toMatchObject(refusal)
    expect(await refused(await inject())).toMatchObject(refusal)
    expect(await rest()).toEqual(before)
  })

  it('[D27] the last run of a session can still be carried on', async () => {
    const { call_id } = await pause()
    await bring({ runs: MAX_RUNS_PER_SESSION })
    await turnAs(await report(call_id), 'completed')
    expect((await checkpointOf(id)).counters.runs).toBe(MAX_RUNS_PER_SESSION)
  })

  it('[D27] the last run of a session takes injects while it waits', async () => {
    await pause()
    await bring({ runs: MAX_RUNS_PER_SESSION })
    await turnAs(await inject(), 'completed')
  })

  it('[D27] a run gets its last turn, and then can only be stopped', async () => {
    const { call_id, paused } = await pause()
    await bring({ turn: MAX_TURNS_PER_RUN })
    const before = await rest()
    const refusal = { status: 422, code: 'invalid_request', details: { max_turns: MAX_TURNS_PER_RUN } }
    expect(await refused(await report(call_id))).toMatchObject(refusal)
    expect(await refused(await inject())).toMatchObject(refusal)
    expect(await rest()).toEqual(before)
    expect(before.run).toEqual(paused)
    await turnAs(await client.proceed(id, { type: 'break' }), 'idle')
    models.script({ text: ['Anew.'] })
    await turnAs(await client.execute(id, makeExecute('another')), 'completed')
  })

  it('[D27] a run with one turn left takes its results', async () => {
    const { call_id } = await pause()
    await bring({ turn: MAX_TURNS_PER_RUN - 1 })
    await turnAs(await report(call_id), 'completed')
    expect((await checkpointOf(id)).state?.turn).toBe(MAX_TURNS_PER_RUN)
  })

  it('[D20][D27] the results that a crash cut off are taken again, also in the last turn', async () => {
    const { call_id } = await pause()
    await bring({ turn: MAX_TURNS_PER_RUN - 1 })
    const hold = new Hold()
    models.script({ text: ['a'], hold: hold.wait, after: ['b'] })
    const cut = report(call_id).catch(() => null)
    await hold.reached()
    await crash(id)
    await cut
    models.script({ text: ['Done.'] })
    await turnAs(await report(call_id), 'completed')
  })
})

describe('sessions of a user', () => {
  const fill = (userId: string, count: number) =>
    env.DB.prepare(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
       INSERT INTO sessions (id, user_id, title, created_at, updated_at, rev)
       SELECT ?1 || '-' || i, ?1, 't', 1, 1, 0 FROM n`,
    )
      .bind(userId, count)
      .run()
  const create = (headers = {}) => client.send('POST', '/api/v1/sessions', { title: 'newest' }, headers)
  const archived = (yes: boolean) =>
    env.DB.prepare('UPDATE sessions SET archived_at = ? WHERE id = ?')
      .bind(yes ? 1 : null, `${client.userId}-1`)
      .run()
  const newest = async () => {
    const { sessions } = await parsed(
      await client.send('GET', '/api/v1/sessions?title=newest'),
      ListSessionsResponse,
    )
    return sessions.length
  }

  it('[D27] are ten thousand that are not archived; one more is refused, with or without a key, and leaves nothing', async () => {
    client = await makeClient()
    await fill(client.userId, MAX_SESSIONS_PER_USER - 1)
    expect((await create()).status).toBe(201)
    const refusal = {
      status: 422,
      code: 'invalid_request',
      message: expect.stringMatching(/delete|archive/),
      details: { max_sessions: MAX_SESSIONS_PER_USER },
    }
    expect(await refused(await create())).toEqual(refusal)
    const key = { 'Idempotency-Key': 'k' }
    expect(await refused(await create(key))).toEqual(refusal)
    expect(await newest()).toBe(1)
    // Another user is not concerned, and the key is free for the time when there is room.
    expect(await (await makeClient()).newSession()).toMatch(/-/)
    await archived(true)
    expect((await create(key)).status).toBe(201)
    expect(await newest()).toBe(2)
    // What the key has made it tells again, full or not.
    expect((await create(key)).status).toBe(201)
    expect(await newest()).toBe(2)
  })
})
