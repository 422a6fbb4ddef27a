import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { SessionUsageResponse } from '../../src/protocol/execution/usage.ts'
import { type BodyChanges, makeExecute, routeTo } from '../support/workers/bodies.ts'
import { describeEach, eachCase } from '../support/workers/each-case.ts'
import { Hold } from '../support/workers/hold.ts'
import { type Client, type Headers, makeClient, parsed, refused, turnAs } from '../support/workers/router.ts'
import { type Reply, scriptModels } from '../support/workers/scripted-models.ts'
import { transcriptOf, turnsOf } from '../support/workers/session-object.ts'
import { endOf, eventsOf, STREAM, TurnStream, textOf } from '../support/workers/turn-stream.ts'

const models = scriptModels()

let client: Client
let id: string
beforeAll(async () => {
  client = await makeClient()
})
beforeEach(async () => {
  id = await client.newSession()
})

const CLOUD = { 'X-Smista-Provider-Cloud-Api-Key': 'key-1' }
const REMOTE: BodyChanges['policy'] = { privacy: { remote: { mode: 'allow' } } }
const big = routeTo('openai-compat:cloud/big')
const execute = (policy: BodyChanges['policy'] = {}, headers: Headers = {}) =>
  client.execute(id, makeExecute('hi', { policy: { ...REMOTE, ...policy } }), { ...CLOUD, ...headers })

const FAILURES: { name: string; reply: Reply; status: number; code: string; details?: object }[] = [
  {
    name: 'HTTP 401',
    reply: { status: 401, error: 'bad key' },
    status: 503,
    code: 'invalid_provider_credentials',
  },
  { name: 'HTTP 403', reply: { status: 403, error: 'no' }, status: 503, code: 'provider_authentication' },
  {
    name: 'HTTP 429',
    reply: { status: 429, error: 'slow down', headers: { 'retry-after': '7' } },
    status: 429,
    code: 'rate_limited',
    details: { retry_after_ms: 7000 },
  },
  { name: 'HTTP 500', reply: { status: 500, error: 'oops' }, status: 503, code: 'provider_unavailable' },
  { name: 'HTTP 400', reply: { status: 400, error: 'bad field' }, status: 422, code: 'invalid_request' },
  { name: 'HTTP 418', reply: { status: 418, error: 'teapot' }, status: 502, code: 'provider_error' },
  { name: 'a redirect', reply: { status: 302, error: '' }, status: 502, code: 'provider_error' },
  {
    name: 'a prompt that is too long',
    reply: { status: 400, error: 'the prompt is too long for the context length' },
    status: 422,
    code: 'context_length_exceeded',
  },
  {
    name: 'a model that is gone',
    reply: { status: 404, error: 'model not found' },
    status: 404,
    code: 'model_not_found',
  },
  {
    name: 'a refused connection',
    reply: { unreachable: true },
    status: 503,
    code: 'provider_unavailable',
  },
  {
    name: 'a stream that is cut before its first token',
    reply: { ending: 'break' },
    status: 503,
    code: 'provider_unavailable',
  },
]

describeEach(
  [
    { provider: 'ollama', model: 'small', policy: routeTo('ollama/small') },
    { provider: 'openai-compat:cloud', model: 'big', policy: big },
  ],
  ({ provider }) => `a failure of ${provider}`,
  ({ provider, model, policy }) => {
    eachCase(
      FAILURES,
      ({ name, status, code }) => `[EC 3] ${name} is ${status} ${code}`,
      async ({ reply, status, code, details = {} }) => {
        models.script(reply)
        const answer = await refused(await execute(policy))
        expect(answer).toMatchObject({ status, code, details: { provider, model, ...details } })
      },
    )

    eachCase(
      FAILURES,
      ({ name }) => `[EC 18] ${name} ends a stream with one turn_end of \`error\``,
      async ({ reply, code }) => {
        models.script(reply)
        const events = await eventsOf(await execute(policy, STREAM))
        expect(endOf(events)).toMatchObject({ status: 'error', data: { error: { code } } })
        expect(endOf(events)).not.toHaveProperty('allowed_continuations')
        expect(events).toHaveLength(1)
      },
    )

    it('[EC 3] a failure never repeats the key, the prompt or the provider’s page', async () => {
      models.script({ status: 500, error: 'SECRETPROMPT key-1 <html>' })
      const response = await client.execute(
        id,
        makeExecute('SECRETPROMPT', { policy: { ...REMOTE, ...policy } }),
        CLOUD,
      )
      const text = await response.text()
      expect(response.status).toBe(503)
      expect(text).not.toContain('key-1')
      expect(text).not.toContain('SECRETPROMPT')
    })

    it('[D24][U41] after the first token the run ends, and what was said is kept as interrupted', async () => {
      const hold = new Hold()
      models.script({ text: ['one ', 'two'], hold: hold.wait, ending: 'break' })
      const stream = new TurnStream(await execute(policy, STREAM))
      await stream.until((event) => event.type === 'text_delta' && event.delta === 'two')
      hold.release()
      expect((await stream.rest()).map(({ event }) => event)).toMatchObject([
        { type: 'turn_end', status: 'error', data: { error: { code: 'provider_unavailable' } } },
      ])
      expect(await transcriptOf(id)).toEqual([
        { role: 'user', text: 'hi' },
        { role: 'assistant', text: 'one two', interrupted: true },
      ])
    })
  },
)

describe('after a failure', () => {
  it('[EC 5.7] the run is over, the session stays', async () => {
    models.script({ status: 500 })
    expect((await execute()).status).toBe(503)
    expect(await turnAs(await client.run(id), 'error')).toMatchObject({
      data: { error: { code: 'provider_unavailable' } },
    })
    const inject = { type: 'tool_results' as const, data: { results: [] } }
    expect(await refused(await client.proceed(id, inject))).toMatchObject({ status: 422 })
    models.script({ text: ['fine'] })
    await turnAs(await execute(), 'completed')
  })

  it('[EC 5.7] a provider error after tool results ends the run as well', async () => {
    models.script({ calls: [{ name: 'read_file', arguments: { path: 'a' } }] }, { status: 401 })
    const turn = await turnAs(await execute(), 'awaiting_tool')
    const results = [{ call_id: turn.data.tool_requests[0]?.call_id ?? '', content: 'R' }]
    const answer = () => client.proceed(id, { type: 'tool_results', data: { results } })
    expect(await refused(await answer())).toMatchObject({ code: 'invalid_provider_credentials' })
    expect(await refused(await answer())).toMatchObject({ status: 422, code: 'invalid_request' })
  })

  it('[D23] the call is counted, its usage unknown', async () => {
    models.script({ status: 500 })
    await execute()
    const usage = await parsed(await client.send('GET', `/api/v1/sessions/${id}/usage`), SessionUsageResponse)
    expect(usage).toMatchObject({ total: {}, by_model: [{ model: 'small', request_count: 1 }] })
  })

  it('[EC 18] nothing that was asked for in a cut stream reaches the client', async () => {
    models.script({ text: ['x'], calls: [], ending: 'break' })
    const events = await eventsOf(await execute({}, STREAM))
    expect(events.map(({ type }) => type)).toEqual(['text_delta', 'turn_end'])
  })
})

describe('fallback', () => {
  const chain = routeTo('openai-compat:cloud/big', 'ollama/small', 'ollama/other')

  it.each([
    { status: 500 },
    { status: 429 },
    { status: 418 },
    { unreachable: true },
    { ending: 'break' as const },
  ])('[D24] before the first token %o moves on to the next model', async (reply) => {
    models.script(reply, { text: ['from the second'] })
    const turn = await turnAs(await execute(chain), 'completed')
    expect(turn.data.message).toMatchObject({
      content: 'from the second',
      provider: 'ollama',
      model: 'small',
    })
    expect(turn.data.routing).toMatchObject({ provider: 'ollama', model: 'small', fallback_used: true })
    expect(models.chats.map(({ model }) => model)).toEqual(['big', 'small'])
    const [served] = await turnsOf(id)
    expect(served?.calls).toMatchObject([
      { model: 'big', status: 'failed', usage: null },
      { model: 'small', status: 'answered', usage: { inputTokens: 100 } },
    ])
  })

  it.each([{ status: 401 }, { status: 403 }, { status: 400 }])(
    '[EC 3] %o does not: the next model would not help',
    async (reply) => {
      models.script(reply, { text: ['never'] })
      expect((await execute(chain)).ok).toBe(false)
      expect(models.chats).toHaveLength(1)
    },
  )

  it('[D24] after the first token there is no fallback', async () => {
    const hold = new Hold()
    models.script({ text: ['one '], hold: hold.wait, ending: 'break' }, { text: ['never'] })
    const stream = new TurnStream(await execute(chain, STREAM))
    await stream.until(({ type }) => type === 'text_delta')
    hold.release()
    const rest = (await stream.rest()).map(({ event }) => event)
    expect(rest).toMatchObject([{ type: 'turn_end', data: { error: { code: 'provider_unavailable' } } }])
    expect(models.chats).toHaveLength(1)
  })

  it('[EC 8.6] when all have failed the last failure is told', async () => {
    models.script({ status: 500 }, { status: 429 }, { status: 418 })
    const answer = await refused(await execute(chain))
    expect(answer).toMatchObject({ code: 'provider_error', details: { provider: 'ollama', model: 'other' } })
    expect(models.chats).toHaveLength(3)
  })

  it('[U37] a turn bound to local models has no remote fallback', async () => {
    models.script({ status: 500 }, { text: ['never'] })
    const policy = routeTo('ollama/small', 'openai-compat:cloud/big')
    const body = makeExecute('hi', {
      policy: { ...REMOTE, ...policy },
      local_preferences: { local_only: true },
    })
    expect((await client.execute(id, body, CLOUD)).ok).toBe(false)
    expect(models.chats.map(({ origin }) => origin)).toEqual(['http://127.0.0.1:11434'])
  })

  it('[EC 8.5] a model that cannot serve is skipped before anything is asked', async () => {
    models.script({ text: ['x'] })
    const policy = routeTo('ollama/absent', 'openai-compat:cloud/big', 'ollama/small')
    const withoutKey = makeExecute('hi', { policy: { ...REMOTE, ...policy } })
    const turn = await turnAs(await client.execute(id, withoutKey), 'completed')
    expect(turn.data.routing).toMatchObject({ model: 'small', fallback_used: true })
    expect(models.chats).toHaveLength(1)
  })
})

describe('route records', () => {
  it('[U38] every completion that leaves is on record, with the rule that chose it', async () => {
    const info = vi.spyOn(console, 'info')
    models.script({ status: 500 }, { text: ['x'] })
    const rules = [{ name: 'first rule', model: 'openai-compat:cloud/big', fallbacks: ['ollama/small'] }]
    await turnAs(await execute({ routing: { rules } }), 'completed')
    expect(info.mock.calls.map(([line]) => line)).toEqual([
      'route completion openai-compat:cloud/big local=false by="first rule" to https://cloud.test',
      'route completion ollama/small local=true by="first rule" to http://127.0.0.1:11434',
    ])
  })
})

describe('a route that cannot be served', () => {
  const cases: { name: string; changes: BodyChanges; headers?: Headers; status: number; code: string }[] = [
    {
      name: 'no rule and no default',
      changes: { policy: { routing: {} } },
      status: 422,
      code: 'no_route',
    },
    {
      name: 'a default model that is not offered',
      changes: { policy: routeTo('ollama/absent') },
      status: 503,
      code: 'fallback_exhausted',
    },
    {
      name: 'an explicit model that is not offered',
      changes: { input: { explicit_model: 'ollama/absent' } },
      status: 404,
      code: 'model_not_found',
    },
    {
      name: 'an explicit model of a provider that is not registered',
      changes: { input: { explicit_model: 'openai-compat:nobody/any' } },
      status: 404,
      code: 'model_not_found',
    },
    {
      name: 'an explicit model of a cloud provider without a key',
      changes: { input: { explicit_model: 'anthropic/claude-opus-5-5' } },
      status: 503,
      code: 'missing_provider_credentials',
    },
    {
      name: 'an explicit model of a provider that is down',
      changes: { input: { explicit_model: 'openai-compat:gone/any' } },
      status: 503,
      code: 'provider_unavailable',
    },
    {
      name: 'a provider without its key',
      changes: { policy: big },
      status: 503,
      code: 'missing_provider_credentials',
    },
    {
      name: 'a capability that no model of the route has',
      changes: {
        policy: {
          routing: { rules: [{ name: 'r', model: 'ollama/small', requires_capabilities: { images: true } }] },
        },
      },
      status: 422,
      code: 'missing_capability',
    },
    {
      name: 'required context that does not fit',
      changes: {
        policy: routeTo('ollama/tiny'),
        attachments: {
          files: [{ path: 'a', content: 'x'.repeat(4000), content_hash: 'sha256:0', required: true }],
        },
      },
      status: 422,
      code: 'context_window_exceeded',
    },
  ]

  eachCase(
    cases,
    ({ name, status, code }) => `[EC 3] ${name}: ${status} ${code}`,
    async ({ changes, status, code }) => {
      const answer = await refused(await client.execute(id, makeExecute('hi', changes)))
      expect(answer).toMatchObject({ status, code })
      expect(models.chats).toHaveLength(0)
    },
  )

  eachCase(
    cases,
    ({ name }) => `[EC 18] ${name} is told before a stream begins`,
    async ({ changes, status, code }) => {
      const answer = await refused(await client.execute(id, makeExecute('hi', changes), STREAM))
      expect(answer).toMatchObject({ status, code })
    },
  )

  it('[EC 3] the window error says how much was needed and how much there is', async () => {
    const files = [{ path: 'a', content: 'x'.repeat(4000), content_hash: 'sha256:0', required: true }]
    const body = makeExecute('hi', { policy: routeTo('ollama/tiny'), attachments: { files } })
    const { details } = await refused(await client.execute(id, body))
    expect(details).toEqual({ estimated_tokens: expect.any(Number), max_context_tokens: 600 })
    models.script({ text: ['x'] })
    const wider = makeExecute('hi', {
      policy: routeTo('ollama/tiny', 'ollama/small'),
      attachments: { files },
    })
    const turn = await turnAs(await client.execute(id, wider), 'completed')
    expect(turn.data.message.model).toBe('small')
  })
})

describe('OpenAI-compatible instances', () => {
  it('[EC 21] are served under their id, with their own key and price', async () => {
    models.script({ text: ['Hello'], usage: { input: 1000, output: 500 } })
    const turn = await turnAs(await execute(big), 'completed')
    expect(turn.data.message).toMatchObject({ provider: 'openai-compat:cloud', model: 'big' })
    expect(turn.data.usage).toMatchObject({ actual_cost: '0.007', currency: 'USD', total_tokens: 1500 })
    expect(models.chats).toMatchObject([
      { origin: 'https://cloud.test', model: 'big', headers: { authorization: 'Bearer key-1' } },
    ])
  })

  it('[EC 18] a model that cannot stream is told as one delta', async () => {
    models.script({ text: ['Hello ', 'there'] })
    const events = await eventsOf(await execute(routeTo('openai-compat:cloud/plain'), STREAM))
    expect(events.map(({ type }) => type)).toEqual(['text_delta', 'usage', 'turn_end'])
    expect(textOf(events)).toBe('Hello there')
  })

  it('[U39] calls come out the same, streamed or not', async () => {
    const calls = [{ id: 'p1', name: 'read_file', arguments: { path: 'größe.ts' } }]
    for (const model of ['openai-compat:cloud/big', 'openai-compat:cloud/plain', 'ollama/small']) {
      models.script({ calls })
      const turn = await turnAs(await execute(routeTo(model)), 'awaiting_tool')
      expect(turn.data.tool_requests).toMatchObject([
        { name: 'read_file', arguments: { path: 'größe.ts' }, requires_approval: 'allow' },
      ])
    }
  })

  it('[EC 21] an unpriced one has no cost, not a cost of zero', async () => {
    models.script({ text: ['x'] })
    const turn = await turnAs(await execute(routeTo('openai-compat:lan/desk')), 'completed')
    expect(turn.data.usage).toEqual({ input_tokens: 100, output_tokens: 20, total_tokens: 120 })
  })

  it('[EC 6] one run may go over several providers, each with the whole conversation', async () => {
    const calls = [{ id: 'p1', name: 'read_file', arguments: { path: 'a' } }]
    models.script({ calls }, { text: ['Done.'] })
    const rules = [
      { name: 'first', intent: 'chat' as const, model: 'openai-compat:cloud/big' },
      { name: 'then', intent: 'review' as const, model: 'ollama/small' },
    ]
    const classification = { rules: [{ intent: 'review' as const, requires_any_context: ['tool_results'] }] }
    const turn = await turnAs(await execute({ routing: { rules }, classification }), 'awaiting_tool')
    const results = [{ call_id: turn.data.tool_requests[0]?.call_id ?? '', content: 'R' }]
    const done = await turnAs(
      await client.proceed(id, { type: 'tool_results', data: { results } }, CLOUD),
      'completed',
    )
    expect(done.data.routing).toMatchObject({ task_type: 'review', matched_rule: 'then', provider: 'ollama' })
    expect(models.chats.at(-1)?.messages.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
    ])
  })
})
