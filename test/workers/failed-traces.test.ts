import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { replayTurn } from '../../src/core/replay.ts'
import { ExecutePolicy } from '../../src/protocol/execution/policy.ts'
import { type Payload, TraceResponse } from '../../src/protocol/execution/trace.ts'
import { type BodyChanges, makeExecute, routeTo } from '../support/workers/bodies.ts'
import { type Client, makeClient, parsed, refused, turnAs } from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'

const models = scriptModels()

let client: Client
let id: string
beforeAll(async () => {
  client = await makeClient()
})
beforeEach(async () => {
  id = await client.newSession()
})

const CLOUD = { 'X-Smista-Provider-Cloud-Api-Key': 'k' }
const BIG = 'openai-compat:cloud/big'
type Policy = NonNullable<BodyChanges['policy']>
const privacy: Policy['privacy'] = { restricted_paths: ['**/.env'], remote: { mode: 'allow' } }
const execute = (policy: Policy) =>
  client.execute(id, makeExecute('hi', { policy: { privacy, ...policy } }), CLOUD)

type Routed = Extract<Payload, { type: 'routing_decision' }>

async function traceOf() {
  const { trace } = await parsed(await client.send('GET', `/api/v1/sessions/${id}/traces`), TraceResponse)
  const payloads = trace.events.flatMap(({ payload }) => ('plaintext' in payload ? [payload.plaintext] : []))
  const routes = payloads.filter((payload): payload is Routed => payload.type === 'routing_decision')
  return { trace, types: payloads.map(({ type }) => type), payloads, routes }
}
const verdicts = ({ inputs }: Routed) => inputs?.models.map(({ model, verdict }) => [model, verdict])

describe('[EC 19] a turn that ends without an answer is in the trace', () => {
  it('that no model of its route may serve, with what was known of each and why it is refused', async () => {
    models.script({ calls: [{ name: 'read_file', arguments: { path: '.env' } }] })
    const paused = await turnAs(await execute(routeTo(BIG)), 'awaiting_tool')
    const results = paused.data.tool_requests.map(({ call_id }) => ({ call_id, content: 'KEY=1' }))
    const answer = await client.proceed(id, { type: 'tool_results', data: { results } }, CLOUD)
    const { code, message } = await refused(answer)
    expect(code).toBe('no_route')
    const { trace, types, payloads, routes } = await traceOf()
    expect(types).toEqual([
      'classification',
      'routing_decision',
      'message',
      'message',
      'tool_call',
      'cost',
      'tool_call',
      'classification',
      'routing_decision',
    ])
    const route = routes.at(-1)
    if (route === undefined) throw new Error('no route')
    expect(route).toMatchObject({ provider: 'openai-compat:cloud', model: 'big', failure: { code, message } })
    expect(route.inputs?.local_because).toEqual([
      { cause: 'required_content', about: '`.env` matches `**/.env` of restricted_paths' },
    ])
    expect(verdicts(route)).toEqual([[BIG, 'remote']])
    const classification = payloads.findLast(({ type }) => type === 'classification')
    if (classification?.type !== 'classification') throw new Error('no classification')
    const policy = ExecutePolicy.parse(trace.policies?.[route.inputs?.policy ?? ''])
    expect(replayTurn({ classification, routing: route, taskType: 'chat', policy })).toEqual({
      classification: { k: 'same' },
      routing: { k: 'same' },
    })
  })

  it('in its first turn as well', async () => {
    await refused(await execute(routeTo('ollama/nobody-has-it')))
    const { types, routes } = await traceOf()
    expect(types).toEqual(['classification', 'routing_decision'])
    expect(routes[0]).toMatchObject({ failure: { code: 'fallback_exhausted' } })
  })

  it('whose model failed for good: it failed, and what was behind it was not tried', async () => {
    models.script({ status: 401, error: 'bad key' })
    await refused(await execute(routeTo(BIG, 'ollama/small')))
    const { types, routes } = await traceOf()
    expect(types).toEqual(['classification', 'routing_decision', 'message', 'routing_decision'])
    expect(routes[1]?.failure?.code).toBe('invalid_provider_credentials')
    expect(routes[1] && verdicts(routes[1])).toEqual([
      [BIG, 'failed'],
      ['ollama/small', 'not_reached'],
    ])
  })

  it('[U37] that goes on with a fallback tells what that one was shown, which is not the same', async () => {
    models.script({ status: 500, error: 'down' }, { text: ['done'] })
    const files = [{ path: '.env', content: 'KEY=1', content_hash: '', required: false }]
    const policy = { privacy, ...routeTo('ollama/small', BIG) }
    await turnAs(
      await client.execute(id, makeExecute('hi', { policy, attachments: { files } }), CLOUD),
      'completed',
    )
    const { trace } = await traceOf()
    const shown = trace.events.flatMap(({ payload, provider }) =>
      'plaintext' in payload && payload.plaintext.type === 'context_selection'
        ? [[provider, payload.plaintext.path, payload.plaintext.included]]
        : [],
    )
    expect(shown).toEqual([
      ['ollama', '.env', true],
      ['openai-compat:cloud', '.env', false],
    ])
  })

  it('whose last fallback failed', async () => {
    models.script({ status: 500, error: 'down' })
    await refused(await execute(routeTo(BIG, 'ollama/small')))
    const { routes } = await traceOf()
    expect(routes.map(verdicts)).toEqual([
      [
        [BIG, 'used'],
        ['ollama/small', 'not_reached'],
      ],
      [
        [BIG, 'failed'],
        ['ollama/small', 'used'],
      ],
      [
        [BIG, 'failed'],
        ['ollama/small', 'failed'],
      ],
    ])
  })
})
