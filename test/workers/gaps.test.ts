import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { GetSessionResponse } from '../../src/protocol/execution/session.ts'
import { type Payload, TraceResponse } from '../../src/protocol/execution/trace.ts'
import { SessionUsageResponse } from '../../src/protocol/execution/usage.ts'
import { type BodyChanges, makeExecute, routeTo } from '../support/workers/bodies.ts'
import { type Client, makeClient, parsed, refused, turnAs } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { turnsOf } from '../support/workers/session-object.ts'

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
const NO_NETWORK = { no_network: true }
const BIG = 'openai-compat:cloud/big'

const execute = (changes: BodyChanges = {}, text = 'hi') =>
  client.execute(id, makeExecute(text, { ...changes, policy: { ...REMOTE, ...changes.policy } }), CLOUD)
const inSession = (rest = '') => client.send('GET', `/api/v1/sessions/${id}${rest}`)
/** What was traced, in order. */
const traced = async (): Promise<Payload[]> => {
  const { trace } = await parsed(await inSession('/traces'), TraceResponse)
  return trace.events.flatMap(({ payload }) => ('plaintext' in payload ? [payload.plaintext] : []))
}

describe('no network', () => {
  it('[EC 26.2] keeps the turn with local models, and nothing at all goes to a remote provider', async () => {
    models.script({ text: ['from home'] })
    const route = routeTo('openai-compat:cloud/plain', BIG, 'ollama/small')
    const turn = await turnAs(await execute({ policy: route, local_preferences: NO_NETWORK }), 'completed')
    expect(turn.data.message).toMatchObject({ provider: 'ollama', model: 'small' })
    const asked = [...models.chats.map(({ origin }) => origin), ...models.listings]
    expect(asked.filter((url) => url.includes('cloud.test'))).toEqual([])
  })

  it('[EC 26.2] without a local model the turn fails, and an explicit remote one is refused', async () => {
    const routed = await refused(await execute({ policy: routeTo(BIG), local_preferences: NO_NETWORK }))
    expect(routed).toMatchObject({ status: 422, code: 'no_route', details: { reason: 'no_local_model' } })
    const explicit = { input: { explicit_model: BIG }, local_preferences: NO_NETWORK }
    expect(await refused(await execute(explicit))).toMatchObject({
      status: 403,
      code: 'override_not_allowed',
    })
    expect(models.chats).toEqual([])
  })

  it('[EC 26.2] offers no tool that reaches out', async () => {
    models.script({ text: ['x'] })
    const tools = [{ name: 'fetch_page', parameters: { type: 'object' }, reaches_network: true }]
    await turnAs(await execute({ attachments: { tools } }), 'completed')
    expect(models.chats.at(-1)?.tools).toContain('fetch_page')
    await turnAs(await execute({ attachments: { tools }, local_preferences: NO_NETWORK }), 'completed')
    expect(models.chats.at(-1)?.tools).not.toContain('fetch_page')
    expect(models.chats.at(-1)?.tools).toContain('read_file')
  })
})

describe('after a fallback', () => {
  it('[EC 26.5] envelope, transcript, traces, usage and price name the model that answered', async () => {
    models.script({ status: 500 }, { text: ['from the cloud'], usage: { input: 1000, output: 100 } })
    const turn = await turnAs(await execute({ policy: routeTo('ollama/small', BIG) }), 'completed')
    const answered = { provider: 'openai-compat:cloud', model: 'big' }
    expect(turn.data).toMatchObject({
      message: answered,
      routing: { ...answered, fallback_used: true },
      // 1,000 tokens at 2 and 100 tokens at 10 per million.
      usage: { input_tokens: 1000, output_tokens: 100, actual_cost: '0.003' },
    })
    const { session } = await parsed(await inSession(), GetSessionResponse)
    expect(session.messages.at(-1)).toMatchObject({ role: 'assistant', ...answered })
    const payloads = await traced()
    expect(payloads.filter(({ type }) => type === 'routing_decision').at(-1)).toMatchObject({
      ...answered,
      fallback_used: true,
    })
    expect(payloads.filter(({ type }) => type === 'cost')).toMatchObject([{ ...answered, cost: '0.003' }])
    expect(payloads.filter(({ type }) => type === 'message').at(-1)).toMatchObject({
      role: 'assistant',
      ...answered,
    })
    const usage = await parsed(await inSession('/usage'), SessionUsageResponse)
    expect(usage.by_model).toMatchObject([
      { provider: 'ollama', model: 'small', request_count: 1 },
      { ...answered, request_count: 1, estimated_cost: '0.003' },
    ])
    expect(usage.by_model[0]).not.toHaveProperty('input_tokens')
  })
})

describe('a bound turn', () => {
  it('[EC 26.8] without a usable local model says so, and says not that fallbacks are exhausted', async () => {
    for (const route of [routeTo(BIG), routeTo('ollama/absent'), routeTo('ollama/absent', BIG)]) {
      const answer = await refused(await execute({ policy: route, local_preferences: { local_only: true } }))
      expect(answer).toMatchObject({
        status: 422,
        code: 'no_route',
        details: { reason: 'no_local_model', local_because: 'preference' },
      })
    }
    expect(models.chats).toEqual([])
  })
})

describe('the window of a model', () => {
  const NO_TOOLS = {
    read_file: 'deny',
    write_file: 'deny',
    edit_file: 'deny',
    shell: 'deny',
    memory: 'deny',
  } as const
  const onTiny = (text: string, changes: BodyChanges = {}) =>
    execute({ policy: { ...routeTo('ollama/tiny'), tools: { permissions: NO_TOOLS } }, ...changes }, text)

  it('[EC 26.21] history that does not fit is not sent, the newest of it is', async () => {
    models.script({ text: ['noted'] })
    await turnAs(await execute({}, `OLDEST ${'x'.repeat(3000)}`), 'completed')
    await turnAs(await execute({}, 'NEWEST'), 'completed')
    const turn = await turnAs(await onTiny('and now?'), 'completed')
    const sent = models.chats.at(-1)
    expect(sent?.model).toBe('tiny')
    const text = sent?.messages.map(({ content }) => content).join('\n') ?? ''
    expect(text).toContain('NEWEST')
    expect(text).toContain('and now?')
    expect(text).not.toContain('OLDEST')
    expect(text.length / 4).toBeLessThan(600)
    expect(turn.data.context.excluded).not.toEqual([])
  })

  it('[EC 26.21] the prompt counts against it', async () => {
    const answer = await refused(await onTiny('x'.repeat(4000)))
    expect(answer).toMatchObject({ code: 'context_window_exceeded', details: { max_context_tokens: 600 } })
    expect(models.chats).toEqual([])
  })

  it('[EC 26.21] so do the definitions of tools', async () => {
    models.script({ text: ['x'] })
    await turnAs(await onTiny('hi'), 'completed')
    const tools = [{ name: 'wordy', description: 'w'.repeat(2000), parameters: { type: 'object' } }]
    expect(await refused(await onTiny('hi', { attachments: { tools } }))).toMatchObject({
      code: 'context_window_exceeded',
    })
  })
})

describe('listings', () => {
  it('[EC 26.22] a turn asks only the provider whose model it needs, once, and none before a model that is known', async () => {
    models.script({ text: ['x'] })
    const route = routeTo('ollama/small', BIG, 'openai-compat:gone/any', 'openai-compat:lan/desk')
    await turnAs(await execute({ policy: route }), 'completed')
    expect(models.listings).not.toEqual([])
    expect(new Set(models.listings.map((url) => new URL(url).origin))).toEqual(
      new Set(['http://127.0.0.1:11434']),
    )
    const before = models.listings.length
    await turnAs(await execute({ policy: route }), 'completed')
    expect(models.listings).toHaveLength(before)
  })
})

describe('what a run costs', () => {
  it('[EC 26.26] is traced for turns that end in tools and in a plan, too, and every envelope names its trace', async () => {
    models.script(
      { calls: [{ id: 'p1', name: 'read_file', arguments: { path: 'a' } }] },
      { text: ['1. Do it.'] },
    )
    const paused = await turnAs(await execute({ input: { command: 'plan' } }), 'awaiting_tool')
    const results = paused.data.tool_requests.map(({ call_id }) => ({ call_id, content: 'ok' }))
    const planned = await turnAs(
      await client.proceed(id, { type: 'tool_results', data: { results } }, CLOUD),
      'awaiting_approval',
    )
    const costs = (await traced()).flatMap((payload) =>
      payload.type === 'cost' ? [payload.input_tokens] : [],
    )
    expect(costs).toEqual([100, 100])
    const newest = (await turnsOf(id)).map(({ trace }) => trace.at(-1)?.id)
    expect([paused, planned].map(({ data }) => data.trace_id)).toEqual(newest.map((one) => `trace:${one}`))
  })
})
