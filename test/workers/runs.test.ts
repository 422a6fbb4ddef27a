import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { TurnEvent } from '../../src/protocol/execution/stream.ts'
import { TraceResponse } from '../../src/protocol/execution/trace.ts'
import { SessionUsageResponse } from '../../src/protocol/execution/usage.ts'
import { makeExecute } from '../support/workers/bodies.ts'
import { eachCase } from '../support/workers/each-case.ts'
import { Hold } from '../support/workers/hold.ts'
import { type Client, makeClient, parsed, refused, turnAs, turnOf } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { checkpointOf, messagesOf, transcriptOf } from '../support/workers/session-object.ts'
import { endOf, eventsOf, STREAM, textOf } from '../support/workers/turn-stream.ts'

const models = scriptModels()

let client: Client
let id: string
beforeAll(async () => {
  client = await makeClient()
})
beforeEach(async () => {
  id = await client.newSession()
})

const UUID7 = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
const TRACE_ID = expect.stringMatching(/^trace:[0-9a-f-]{36}$/)
const USAGE = { input_tokens: 100, output_tokens: 20, total_tokens: 120, actual_cost: '0', currency: 'USD' }
const COMPLETED = {
  status: 'completed',
  data: {
    message: { role: 'assistant', content: 'Hello there', provider: 'ollama', model: 'small' },
    classification: {
      intent: 'chat',
      source: 'inferred',
      reason: expect.any(String),
      confidence: 'low',
    },
    routing: {
      task_type: 'chat',
      provider: 'ollama',
      model: 'small',
      fallback_used: false,
      override_used: false,
    },
    context: { included: [], excluded: [] },
    usage: USAGE,
    trace_id: TRACE_ID,
  },
}
const TOOLS = {
  text: ['Let me ', 'look.'],
  calls: [
    { id: 'p1', name: 'read_file', arguments: { path: 'src/a.ts' } },
    { id: 'p2', name: 'shell', arguments: { command: 'ls' } },
  ],
}
const AWAITING_TOOL = {
  status: 'awaiting_tool',
  data: {
    tool_requests: [
      {
        call_id: UUID7,
        name: 'read_file',
        arguments: { path: 'src/a.ts' },
        requires_approval: 'allow',
        driver_epoch: 1,
      },
      {
        call_id: UUID7,
        name: 'shell',
        arguments: { command: 'ls' },
        requires_approval: 'ask',
        driver_epoch: 1,
      },
    ],
    trace_id: TRACE_ID,
  },
  allowed_continuations: ['tool_results', 'inject', 'break'],
}

/** Starts a run that waits for the two calls of `TOOLS`; gives their ids. */
async function pause(): Promise<[string, string]> {
  models.script(TOOLS)
  const turn = await turnAs(await client.execute(id, makeExecute('look around')), 'awaiting_tool')
  const [first, second] = turn.data.tool_requests
  return [first?.call_id ?? '', second?.call_id ?? '']
}
const results = (
  ...entries: { call_id: string; content?: string; is_error?: boolean; decision?: 'approved' }[]
) => ({
  type: 'tool_results' as const,
  data: { results: entries.map((entry) => ({ content: 'ok', ...entry })) },
})
const inject = (...texts: string[]) => ({
  type: 'inject' as const,
  data: { messages: texts.map((text) => ({ text })) },
})
const BREAK = { type: 'break' as const }
const lastChat = () => models.chats.at(-1)?.messages ?? []

describe('a turn without tools', () => {
  it('[EC 2.11] completes in one JSON body', async () => {
    models.script({ text: ['Hello ', 'there'] })
    expect(await turnOf(await client.execute(id, makeExecute('hi')))).toEqual(COMPLETED)
  })

  it('[EC 18] streams what it says as it comes, then its usage, then one turn_end with the same envelope', async () => {
    models.script({ reasoning: ['Hm. '], text: ['Hello ', 'there'] })
    const events = await eventsOf(await client.execute(id, makeExecute('hi'), STREAM))
    expect(events).toEqual([
      { type: 'reasoning_delta', delta: 'Hm. ' },
      { type: 'text_delta', delta: 'Hello ' },
      { type: 'text_delta', delta: 'there' },
      { type: 'usage', ...USAGE },
      { type: 'turn_end', ...COMPLETED },
    ])
  })

  it('[EC 18] a stream is not to be stored or buffered on its way', async () => {
    models.script({ text: ['x'] })
    const response = await client.execute(id, makeExecute('hi'), STREAM)
    expect(response.headers.get('Cache-Control')).toBe('no-store, no-transform')
    expect(response.headers.get('X-Accel-Buffering')).toBe('no')
    await response.text()
  })

  it('[EC 6] a later prompt has what was said before it', async () => {
    models.script({ text: ['first answer'] })
    await turnOf(await client.execute(id, makeExecute('first')))
    await turnOf(await client.execute(id, makeExecute('second')))
    expect(lastChat().map(({ role, content }) => [role, content])).toEqual([
      ['system', expect.any(String)],
      ['user', 'first'],
      ['assistant', 'first answer'],
      ['user', 'second'],
    ])
  })

  it('[EC 20.1] a model that does not say what it used leaves usage unknown', async () => {
    models.script({ text: ['x'], usage: null })
    const turn = await turnAs(await client.execute(id, makeExecute('hi')), 'completed')
    expect(turn.data.usage).toEqual({ unknown_count: 1 })
  })
})

describe('a turn with tools', () => {
  it('[EC 12.4] pauses with the calls under ids of the router’s own', async () => {
    models.script(TOOLS)
    expect(await turnOf(await client.execute(id, makeExecute('look around')))).toEqual(AWAITING_TOOL)
  })

  it('[EC 18] streams each call once it is checked and stored, started then requested, in order', async () => {
    models.script(TOOLS)
    const events = await eventsOf(await client.execute(id, makeExecute('look around'), STREAM))
    const end = endOf(events)
    expect(end).toEqual({ type: 'turn_end', ...AWAITING_TOOL })
    if (end.status !== 'awaiting_tool') throw new Error('unreachable')
    const expected: TurnEvent[] = [
      { type: 'text_delta', delta: 'Let me ' },
      { type: 'text_delta', delta: 'look.' },
      ...end.data.tool_requests.flatMap(
        ({ call_id, name, arguments: args, requires_approval }): TurnEvent[] => [
          { type: 'tool_call_started', call_id, name },
          { type: 'tool_call_requested', call_id, name, arguments: args, requires_approval },
        ],
      ),
      end,
    ]
    expect(events).toEqual(expected)
  })

  eachCase(
    [{ streamed: false }, { streamed: true }],
    ({ streamed }) => `[EC 12.4] goes on when all results are there (streamed: ${streamed})`,
    async ({ streamed }) => {
      const [read, shell] = await pause()
      models.script({ text: ['Done.'] })
      const answer = results(
        { call_id: shell, content: 'a.ts', decision: 'approved' },
        { call_id: read, content: 'no such file', is_error: true },
      )
      const response = await client.proceed(id, answer, streamed ? STREAM : {})
      const turn = streamed ? endOf(await eventsOf(response)) : await turnOf(response)
      expect(turn).toMatchObject({ status: 'completed', data: { message: { content: 'Done.' } } })
      expect(await transcriptOf(id)).toEqual([
        { role: 'user', text: 'look around' },
        {
          role: 'assistant',
          text: 'Let me look.',
          calls: [
            { name: 'read_file', result: 'no such file', isError: true },
            { name: 'shell', result: 'a.ts', isError: false },
          ],
        },
        { role: 'assistant', text: 'Done.' },
      ])
    },
  )

  it('[EC 11] the model gets its calls back before their results, and the prompt once', async () => {
    const [read, shell] = await pause()
    models.script({ text: ['Done.'] })
    await turnOf(
      await client.proceed(id, results({ call_id: read, content: 'R' }, { call_id: shell, content: 'S' })),
    )
    expect(lastChat().map(({ role, content }) => [role, content])).toEqual([
      ['system', expect.any(String)],
      ['user', 'look around'],
      ['assistant', 'Let me look.'],
      ['tool', 'R'],
      ['tool', 'S'],
    ])
  })

  it('[EC 12.4] several rounds of one run stay together', async () => {
    const [read, shell] = await pause()
    models.script({ calls: [{ name: 'read_file', arguments: { path: 'b' } }] }, { text: ['Done.'] })
    const again = await turnAs(
      await client.proceed(id, results({ call_id: read, content: 'R' }, { call_id: shell, content: 'S' })),
      'awaiting_tool',
    )
    const [third] = again.data.tool_requests
    await turnOf(await client.proceed(id, results({ call_id: third?.call_id ?? '', content: 'T' })))
    expect(lastChat().map(({ role, content }) => (role === 'system' ? role : content))).toEqual([
      'system',
      'look around',
      'Let me look.',
      'R',
      'S',
      '',
      'T',
    ])
  })

  it('[D05] a result may carry the epoch of its driver, and an older one is refused with the current', async () => {
    const [read, shell] = await pause()
    await turnOf(await client.proceed(id, BREAK))
    models.script(TOOLS)
    const turn = await turnAs(await client.execute(id, makeExecute('again')), 'awaiting_tool')
    expect(turn.data.tool_requests.map(({ driver_epoch }) => driver_epoch)).toEqual([2, 2])
    const ids = turn.data.tool_requests.map(({ call_id }) => call_id)
    expect(ids).not.toContain(read)
    expect(ids).not.toContain(shell)
    const withEpoch = (epoch: number) => ({
      type: 'tool_results' as const,
      data: { results: ids.map((call_id) => ({ call_id, content: 'ok', driver_epoch: epoch })) },
    })
    expect(await refused(await client.proceed(id, withEpoch(1)))).toMatchObject({
      status: 422,
      code: 'invalid_request',
      details: { driver_epoch: 2 },
    })
    models.script({ text: ['Done.'] })
    await turnAs(await client.proceed(id, withEpoch(2)), 'completed')
  })
})

describe('results that do not fit', () => {
  it('[EC 12.4] keep the pause, which can still be answered', async () => {
    const [read, shell] = await pause()
    const whole = [{ call_id: read }, { call_id: shell }]
    const wrong = {
      'a missing result': results({ call_id: read }),
      'no result': results(),
      'an unknown call': results(...whole, { call_id: '01890000-0000-7000-8000-000000000000' }),
      'a repeated call': results(...whole, { call_id: read }),
      'another kind of answer': {
        type: 'approval_decisions' as const,
        data: { decisions: [{ approval_id: 'x', decision: 'approved' as const }] },
      },
      'opened content': { type: 'decrypted' as const, data: { plaintext: {} } },
      'sealed content': { type: 'sealed' as const, data: { encrypted: {} } },
    }
    const before = await checkpointOf(id)
    for (const [name, message] of Object.entries(wrong)) {
      const answer = await refused(await client.proceed(id, message))
      expect(answer, name).toMatchObject({ status: 422, code: 'invalid_request' })
      expect(await turnOf(await client.run(id)), name).toEqual(AWAITING_TOOL)
    }
    expect(await checkpointOf(id)).toEqual(before)
    models.script({ text: ['Done.'] })
    await turnAs(await client.proceed(id, results(...whole)), 'completed')
  })

  it('[EC 18] are refused before a stream begins', async () => {
    const [read] = await pause()
    const answer = await client.proceed(id, results({ call_id: read }), STREAM)
    expect(await refused(answer)).toMatchObject({ status: 422, code: 'invalid_request' })
  })

  it('[EC 2.12] without any run every continuation is refused, `break` too', async () => {
    for (const message of [BREAK, inject('x'), results({ call_id: 'c' })]) {
      expect(await refused(await client.proceed(id, message)), message.type).toMatchObject({
        status: 422,
        code: 'invalid_request',
      })
    }
  })

  it('[EC 5.3] when the run is idle there is nothing for results to answer', async () => {
    const [read, shell] = await pause()
    await turnAs(await client.proceed(id, BREAK), 'idle')
    const late = await client.proceed(id, results({ call_id: read }, { call_id: shell }))
    expect(await refused(late)).toMatchObject({ status: 422, code: 'invalid_request' })
  })
})

describe('while a turn is served', () => {
  it('[EC 5.3] another execute and every answer to a pause get 409, and the turn goes on', async () => {
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] })
    const served = client.execute(id, makeExecute('hi'))
    await hold.reached()
    const attempts = [
      client.execute(id, makeExecute('hi')),
      client.execute(id, makeExecute('other'), STREAM),
      client.proceed(id, results({ call_id: 'c' })),
      client.proceed(id, { type: 'approval_decisions', data: { decisions: [] } }),
      client.proceed(id, { type: 'decrypted', data: { plaintext: {} } }),
      client.proceed(id, { type: 'sealed', data: { encrypted: {} } }, STREAM),
    ]
    for (const attempt of attempts) {
      expect(await refused(await attempt)).toMatchObject({ status: 409, code: 'run_in_flight' })
    }
    hold.release()
    const turn = await turnAs(await served, 'completed')
    expect(turn.data.message.content).toBe('one two')
    expect(models.chats).toHaveLength(1)
  })
})

describe('break', () => {
  it('[EC 15] ends a pause: calls get a cancellation as their result, the run is idle', async () => {
    const paused = await pause()
    expect(await turnOf(await client.proceed(id, BREAK))).toEqual({
      status: 'idle',
      data: {
        trace_id: TRACE_ID,
        ended: {
          run_id: expect.any(String),
          interrupted: false,
          tool_calls: paused,
        },
      },
    })
    const [, assistant] = await transcriptOf(id)
    expect(assistant?.calls).toEqual([
      { name: 'read_file', result: expect.stringMatching(/cancel/i), isError: true },
      { name: 'shell', result: expect.stringMatching(/cancel/i), isError: true },
    ])
    expect(await turnOf(await client.run(id))).toMatchObject({ status: 'idle' })
  })

  it('[U22] a broken pause leaves a conversation that the next model can take', async () => {
    await pause()
    await turnOf(await client.proceed(id, BREAK))
    models.script({ text: ['fine'] })
    await turnAs(await client.execute(id, makeExecute('something else')), 'completed')
    expect(lastChat().map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
      'tool',
      'user',
    ])
  })

  it('[EC 5.3] of an idle run is idle, as a stream too', async () => {
    models.script({ text: ['x'] })
    await turnOf(await client.execute(id, makeExecute('hi')))
    expect(await turnOf(await client.proceed(id, BREAK))).toMatchObject({ status: 'idle' })
    expect(await eventsOf(await client.proceed(id, BREAK, STREAM))).toEqual([
      { type: 'turn_end', status: 'idle', data: { trace_id: TRACE_ID } },
    ])
  })
})

describe('inject', () => {
  it('[EC 15] into a pause cancels its calls, and its texts are the newest user input', async () => {
    await pause()
    models.script({ text: ['As you wish.'] })
    const turn = await turnAs(await client.proceed(id, inject('stop,', 'do Y instead')), 'completed')
    expect(turn.data.message.content).toBe('As you wish.')
    expect(lastChat().map(({ role, content }) => [role, content])).toEqual([
      ['system', expect.any(String)],
      ['user', 'look around'],
      ['assistant', 'Let me look.'],
      ['tool', expect.stringMatching(/cancel/i)],
      ['tool', expect.stringMatching(/cancel/i)],
      ['user', 'stop,\ndo Y instead'],
    ])
  })

  it('[D11] the injected text is what the next turn is classified by', async () => {
    models.script(TOOLS)
    const policy = { classification: { rules: [{ intent: 'review' as const, keywords: ['review'] }] } }
    await turnAs(await client.execute(id, makeExecute('look', { policy })), 'awaiting_tool')
    models.script({ text: ['x'] })
    const turn = await turnAs(await client.proceed(id, inject('review it')), 'completed')
    expect(turn.data.classification).toMatchObject({ intent: 'review', source: 'inferred', matched_rule: 0 })
  })

  it('[EC 15] into an idle run starts one with the policy of the last, without its attachments', async () => {
    models.script({ text: ['x'] })
    const body = makeExecute('hi', {
      attachments: { files: [{ path: 'a', content: 'SECRET', content_hash: 'sha256:0', required: true }] },
      policy: { routing: { default: { model: 'ollama/other' } } },
    })
    await turnOf(await client.execute(id, body))
    expect(JSON.stringify(lastChat())).toContain('SECRET')
    const turn = await turnAs(await client.proceed(id, inject('go on')), 'completed')
    expect(turn.data.message.model).toBe('other')
    expect(JSON.stringify(lastChat())).not.toContain('SECRET')
    expect(lastChat().at(-1)).toMatchObject({ role: 'user', content: 'go on' })
  })

  it('[EC 15] needs at least one message', async () => {
    await pause()
    expect(await refused(await client.proceed(id, inject()))).toMatchObject({ status: 422 })
  })
})

describe('execute over a pause', () => {
  it('[EC 5.3] starts a new run and gives the old one up', async () => {
    const [read, shell] = await pause()
    models.script({ text: ['fresh'] })
    await turnAs(await client.execute(id, makeExecute('something else')), 'completed')
    const late = await client.proceed(id, results({ call_id: read }, { call_id: shell }))
    expect(await refused(late)).toMatchObject({ status: 422 })
    const [, assistant] = await transcriptOf(id)
    expect(assistant?.calls?.every(({ isError }) => isError)).toBe(true)
  })
})

describe('superseding a turn that is served', () => {
  it('[EC 15] `break` cuts it: buffered it ends with 409, what it had said is kept as interrupted', async () => {
    const hold = new Hold()
    models.script({ text: ['one ', 'two '], hold: hold.wait, after: ['three'] })
    const served = client.execute(id, makeExecute('hi'))
    await hold.reached()
    expect(await turnOf(await client.proceed(id, BREAK))).toMatchObject({ status: 'idle' })
    expect(await refused(await served)).toMatchObject({ status: 409, code: 'run_in_flight' })
    expect(models.aborted).toBe(1)
    hold.release()
    expect(await transcriptOf(id)).toEqual([
      { role: 'user', text: 'hi' },
      { role: 'assistant', text: 'one two ', interrupted: true },
    ])
    const shown = await (await client.send('GET', `/api/v1/sessions/${id}`)).json()
    expect(shown).toMatchObject({
      session: { messages: [{ role: 'user' }, { role: 'assistant', interrupted: true, model: 'small' }] },
    })
  })

  it('[EC 18] its stream ends with one turn_end of `idle`', async () => {
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] })
    const response = await client.execute(id, makeExecute('hi'), STREAM)
    await hold.reached()
    await turnAs(await client.proceed(id, BREAK), 'idle')
    const events = await eventsOf(response)
    expect(endOf(events)).toMatchObject({ status: 'idle' })
    expect(textOf(events)).toBe('one ')
    hold.release()
  })

  it('[EC 15] `inject` cuts it and goes on with the partial and the new text', async () => {
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] }, { text: ['As you wish.'] })
    const response = await client.execute(id, makeExecute('hi'), STREAM)
    await hold.reached()
    const turn = await turnAs(await client.proceed(id, inject('do Y')), 'completed')
    expect(turn.data.message.content).toBe('As you wish.')
    expect(endOf(await eventsOf(response))).toMatchObject({ status: 'idle' })
    hold.release()
    expect(models.aborted).toBe(1)
    expect(await transcriptOf(id)).toEqual([
      { role: 'user', text: 'hi' },
      { role: 'assistant', text: 'one ', interrupted: true },
      { role: 'user', text: 'do Y' },
      { role: 'assistant', text: 'As you wish.' },
    ])
  })

  it('[D23] the usage of a call that was cut before it was told is unknown, and the call is counted', async () => {
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, after: ['two'] })
    const served = client.execute(id, makeExecute('hi'))
    await hold.reached()
    await turnOf(await client.proceed(id, BREAK))
    await served
    hold.release()
    const usage = await parsed(await client.send('GET', `/api/v1/sessions/${id}/usage`), SessionUsageResponse)
    expect(usage).toEqual({
      total: { unknown_count: 1 },
      by_model: [{ provider: 'ollama', model: 'small', request_count: 1, unknown_count: 1 }],
      by_task_type: [{ task_type: 'chat', request_count: 1, unknown_count: 1 }],
    })
  })

  it('[U28] archiving the session stops the turn: nobody could stop it afterwards', async () => {
    const hold = new Hold()
    models.script({ text: ['half '], hold: hold.wait, after: ['never'] })
    const served = client.execute(id, makeExecute('hi'))
    await hold.reached()
    await client.send('PUT', `/api/v1/sessions/${id}`, { archived: true })
    expect(await refused(await served)).toMatchObject({ status: 409, code: 'run_in_flight' })
    hold.release()
    await client.send('PUT', `/api/v1/sessions/${id}`, { archived: false })
    expect(await turnOf(await client.run(id))).toMatchObject({ status: 'idle' })
    expect((await messagesOf(id)).at(-1)).toMatchObject({ role: 'assistant', interrupted: true })
  })

  it('[EC 15] before the first token nothing is kept but the prompt', async () => {
    const hold = new Hold()
    models.onListing = hold.wait
    models.script({ text: ['never'] })
    const served = client.execute(id, makeExecute('hi'))
    await hold.reached()
    await turnAs(await client.proceed(id, BREAK), 'idle')
    expect(await refused(await served)).toMatchObject({ status: 409 })
    hold.release()
    models.onListing = null
    expect(await transcriptOf(id)).toEqual([{ role: 'user', text: 'hi' }])
    expect(models.chats).toHaveLength(0)
    models.script({ text: ['fine'] })
    await turnAs(await client.execute(id, makeExecute('next')), 'completed')
  })
})

describe('traces and usage', () => {
  it('[EC 19] every decision of a run is traced in order, never with contents', async () => {
    const [read, shell] = await pause()
    models.script({ text: ['Done.'] })
    const answer = results({ call_id: read, content: 'SECRET' }, { call_id: shell, decision: 'approved' })
    const turn = await turnAs(await client.proceed(id, answer), 'completed')
    const path = `/api/v1/sessions/${id}/traces`
    const whole = await client.send('GET', path)
    const text = await whole.clone().text()
    const { trace } = await parsed(whole, TraceResponse)
    expect(trace.session_id).toBe(id)
    expect(trace.events.map(({ event_type }) => event_type)).toEqual([
      'classification',
      'routing_decision',
      'message',
      'message',
      'tool_call',
      'tool_call',
      'cost',
      'tool_call',
      'tool_call',
      'approval',
      'classification',
      'routing_decision',
      'message',
      'cost',
    ])
    for (const content of ['SECRET', 'look around', 'Done.']) expect(text).not.toContain(content)
    expect(turn.data.trace_id).toMatch(/^trace:/)
    const page = await parsed(await client.send('GET', `${path}?limit=3&offset=2`), TraceResponse)
    expect(page.trace.events).toEqual(trace.events.slice(2, 5))
    const beyond = await parsed(await client.send('GET', `${path}?offset=999`), TraceResponse)
    expect(beyond.trace.events).toEqual([])
    expect(await refused(await client.send('GET', `${path}?limit=-1`))).toMatchObject({ status: 400 })
  })

  it('[EC 20.2] a session sums up every call, in first-seen order', async () => {
    const [read, shell] = await pause()
    models.script({ text: ['Done.'], usage: { input: 7, output: 3, cached: 2, reasoning: 1 } })
    await turnOf(await client.proceed(id, results({ call_id: read }, { call_id: shell })))
    await turnOf(await client.execute(id, makeExecute('hi', { input: { explicit_model: 'ollama/other' } })))
    const usage = await parsed(await client.send('GET', `/api/v1/sessions/${id}/usage`), SessionUsageResponse)
    expect(usage.total).toMatchObject({
      input_tokens: 114,
      output_tokens: 26,
      total_tokens: 140,
      cached_tokens: 4,
    })
    expect(usage.by_model.map(({ model, request_count }) => [model, request_count])).toEqual([
      ['small', 2],
      ['other', 1],
    ])
  })

  it('[EC 20.2] an empty session has used nothing', async () => {
    const usage = await parsed(await client.send('GET', `/api/v1/sessions/${id}/usage`), SessionUsageResponse)
    expect(usage).toEqual({ total: {}, by_model: [], by_task_type: [] })
  })
})
