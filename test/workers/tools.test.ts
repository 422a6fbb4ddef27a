import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { PreviewResponse } from '../../src/protocol/execution/preview.ts'
import { TraceResponse } from '../../src/protocol/execution/trace.ts'
import { type BodyChanges, makeExecute } from '../support/workers/bodies.ts'
import { eachCase } from '../support/workers/each-case.ts'
import {
  type Client,
  type Headers,
  makeClient,
  parsed,
  refused,
  turnAs,
  turnOf,
} from '../support/workers/router.ts'
import { scriptModels } from '../support/workers/scripted-models.ts'
import { inside, messagesOf, transcriptOf } from '../support/workers/session-object.ts'
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

const READ = { id: 'p1', name: 'read_file', arguments: { path: 'a' } }
const WRITE = { id: 'p2', name: 'write_file', arguments: { path: 'a', content: 'x' } }
const SHELL = { id: 'p3', name: 'shell', arguments: { command: 'ls' } }
const UNKNOWN = { id: 'p4', name: 'fly', arguments: {} }

const execute = (changes: BodyChanges = {}, text = 'do it', headers = {}) =>
  client.execute(id, makeExecute(text, changes), headers)
const permitting = (permissions: Record<string, 'allow' | 'ask' | 'deny'>): BodyChanges => ({
  policy: { tools: { permissions } },
})
const offered = () => models.chats.at(-1)?.tools ?? []
const said = () => models.chats.at(-1)?.messages ?? []
const toolTexts = () => said().flatMap(({ role, content }) => (role === 'tool' ? [content] : []))

describe('what the model is offered', () => {
  it('[EC 12.1] the tools of the contract, and a skill under its name', async () => {
    models.script({ text: ['x'] })
    const skill = { name: 'release notes', content: '# How to write them\nShort.' }
    await turnOf(await execute({ attachments: { available_skills: [skill] } }))
    expect(offered()).toEqual(['read_file', 'write_file', 'edit_file', 'shell', 'memory', 'release_notes'])
    expect(JSON.stringify(said())).toContain('How to write them')
    expect(JSON.stringify(said())).not.toContain('Short.')
  })

  eachCase(
    [
      { permissions: { shell: 'deny' as const }, gone: ['shell'] },
      { permissions: { file_write: 'deny' as const }, gone: ['write_file', 'edit_file'] },
      { permissions: { file_read: 'deny' as const, read_file: 'allow' as const }, gone: ['read_file'] },
      { permissions: { read_file: 'deny' as const, file_read: 'allow' as const }, gone: ['read_file'] },
    ],
    ({ permissions, gone }) => `[EC 12.2] under ${JSON.stringify(permissions)} not ${gone.join(', ')}`,
    async ({ permissions, gone }) => {
      models.script({ text: ['x'] })
      await turnOf(await execute(permitting(permissions)))
      const all = ['read_file', 'write_file', 'edit_file', 'shell', 'memory']
      expect(offered()).toEqual(all.filter((name) => !gone.includes(name)))
    },
  )

  it('[D08] a declared tool, under the stricter of policy and declaration', async () => {
    const parameters = { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] }
    const tools = [
      { name: 'search_files', description: 'Searches.', parameters, permission: 'allow' as const },
      { name: 'careful', parameters, permission: 'ask' as const },
      { name: 'denied', parameters },
    ]
    models.script({
      calls: [
        { name: 'search_files', arguments: { q: 'x' } },
        { name: 'careful', arguments: { q: 'y' } },
      ],
    })
    const changes = { attachments: { tools }, ...permitting({ careful: 'allow', denied: 'deny' }) }
    const turn = await turnAs(await execute(changes), 'awaiting_tool')
    expect(offered()).toEqual([
      'read_file',
      'write_file',
      'edit_file',
      'shell',
      'memory',
      'search_files',
      'careful',
    ])
    expect(turn.data.tool_requests).toMatchObject([
      { name: 'search_files', arguments: { q: 'x' }, requires_approval: 'allow' },
      { name: 'careful', arguments: { q: 'y' }, requires_approval: 'ask' },
    ])
  })

  it.each(['read_file', 'shell', 'memory', 'my_skill', 'twice'])(
    '[D08] a declaration of `%s`, which is taken, is refused',
    async (name) => {
      const parameters = { type: 'object' }
      const attachments = {
        tools: [{ name, parameters }, ...(name === 'twice' ? [{ name, parameters }] : [])],
        available_skills: [{ name: 'my skill', content: 'x' }],
      }
      expect(await refused(await execute({ attachments }))).toMatchObject({
        status: 422,
        code: 'invalid_request',
      })
      expect(models.chats).toHaveLength(0)
    },
  )
})

describe('what becomes of a call', () => {
  const modes = {
    'allow, by its own name': [{ read_file: 'allow' as const }, 'allow'],
    'ask, when unset': [{}, 'ask'],
    'the strictest of both spellings': [{ read_file: 'allow' as const, file_read: 'ask' as const }, 'ask'],
    'the group key alone': [{ file_read: 'allow' as const }, 'allow'],
  } as const
  for (const [name, [permissions, mode]] of Object.entries(modes)) {
    it(`[EC 12.2] mode of a tool: ${name}`, async () => {
      models.script({ calls: [READ] })
      const turn = await turnAs(await execute(permitting(permissions)), 'awaiting_tool')
      expect(turn.data.tool_requests).toMatchObject([{ name: 'read_file', requires_approval: mode }])
    })
  }

  it('[EC 12.2] a git command is governed by `git` as well', async () => {
    models.script({
      calls: [
        { name: 'shell', arguments: { command: 'git push' } },
        { name: 'shell', arguments: { command: 'ls' } },
      ],
    })
    const turn = await turnAs(await execute(permitting({ shell: 'allow', git: 'ask' })), 'awaiting_tool')
    expect(turn.data.tool_requests.map(({ requires_approval }) => requires_approval)).toEqual([
      'ask',
      'allow',
    ])
    models.script({ calls: [{ name: 'shell', arguments: { command: 'git push' } }] }, { text: ['Not then.'] })
    const denied = await turnAs(await execute(permitting({ shell: 'allow', git: 'deny' })), 'completed')
    expect(denied.data.message.content).toBe('Not then.')
    expect(toolTexts().at(-1)).toMatch(/polic/i)
  })

  it('[EC 12.3] when every call is refused the model is asked again in the same turn, without the client', async () => {
    models.script({ text: ['Trying. '], calls: [UNKNOWN, SHELL] }, { text: ['Then not.'] })
    const events = await eventsOf(await execute(permitting({ shell: 'deny' }), 'do it', STREAM))
    expect(endOf(events)).toMatchObject({ status: 'completed', data: { message: { content: 'Then not.' } } })
    expect(events.some(({ type }) => type.startsWith('tool_call'))).toBe(false)
    expect(textOf(events)).toBe('Trying. \n\nThen not.')
    expect(models.chats).toHaveLength(2)
    expect(toolTexts()).toEqual([expect.stringContaining('fly'), expect.stringContaining('shell')])
    expect(await transcriptOf(id)).toMatchObject([
      { role: 'user' },
      {
        text: 'Trying. ',
        calls: [
          { name: 'fly', isError: true },
          { name: 'shell', isError: true },
        ],
      },
      { text: 'Then not.' },
    ])
  })

  it('[EC 20.2] the usage of a turn that asked the model twice is that of both calls', async () => {
    models.script({ calls: [UNKNOWN] }, { text: ['Then not.'] })
    const turn = await turnAs(await execute(), 'completed')
    expect(turn.data.usage).toMatchObject({ input_tokens: 200, output_tokens: 40, total_tokens: 240 })
  })

  it('[EC 6] a model that only asks for what it may not use is stopped after 8 rounds', async () => {
    models.script({ calls: [UNKNOWN] })
    const answer = await refused(await execute())
    expect(answer).toMatchObject({ status: 502, code: 'provider_error', details: { rounds: 8 } })
    expect(models.chats).toHaveLength(8)
    models.script({ text: ['fine'] })
    await turnAs(await execute(), 'completed')
  })

  it('[EC 12.3] of a mixed round only the client’s calls go out, and the refusals reach the model with its results', async () => {
    models.script({ calls: [UNKNOWN, READ, { ...READ, id: 'p5', arguments: {} }] }, { text: ['Done.'] })
    const turn = await turnAs(await execute(), 'awaiting_tool')
    expect(turn.data.tool_requests).toMatchObject([{ name: 'read_file', arguments: { path: 'a' } }])
    const callId = turn.data.tool_requests[0]?.call_id ?? ''
    const results = { type: 'tool_results' as const, data: { results: [{ call_id: callId, content: 'R' }] } }
    await turnAs(await client.proceed(id, results), 'completed')
    expect(toolTexts()).toEqual([expect.stringContaining('fly'), 'R', expect.stringContaining('path')])
  })

  it('[EC 19] refused calls are traced as failed, argument names and sizes only', async () => {
    models.script({ calls: [{ name: 'fly', arguments: { where: 'SECRET' } }] }, { text: ['x'] })
    await turnOf(await execute())
    const { trace } = await parsed(await client.send('GET', `/api/v1/sessions/${id}/traces`), TraceResponse)
    const payloads = trace.events.flatMap(({ payload }) =>
      'plaintext' in payload ? [payload.plaintext] : [],
    )
    const calls = payloads.filter(({ type }) => type === 'tool_call')
    expect(calls).toMatchObject([{ tool_name: 'fly', status: 'failed', error: expect.any(String) }])
    expect(JSON.stringify(calls)).toContain('where')
    expect(JSON.stringify(calls)).not.toContain('SECRET')
  })

  it('[EC 12.5] a skill is answered by the router with its body', async () => {
    const skill = { name: 'release notes', content: 'First line.\nBe short.' }
    models.script({ calls: [{ name: 'release_notes', arguments: {} }] }, { text: ['Done.'] })
    const attachments = { available_skills: [skill] }
    const turn = await turnAs(await execute({ attachments }), 'completed')
    expect(turn.data.message.content).toBe('Done.')
    expect(toolTexts()).toEqual([skill.content])
  })

  it('[EC 12.5] an invoked skill is in the prompt from the start', async () => {
    models.script({ text: ['x'] })
    await turnOf(await execute({ attachments: { invoked_skills: [{ name: 's', content: 'BODY OF IT' }] } }))
    expect(said()[0]).toMatchObject({ role: 'system', content: expect.stringContaining('BODY OF IT') })
  })

  it('[EC 12.4] a file change leaves a proposed diff, which the result applies or rejects', async () => {
    models.script({ calls: [WRITE] })
    const turn = await turnAs(await execute(), 'awaiting_tool')
    const status = () => inside(id, (sql) => sql.rows('SELECT status, diff_status FROM tool_calls'))
    expect(await status()).toEqual([{ status: 'pending', diff_status: 'proposed' }])
    models.script({ text: ['x'] })
    const call_id = turn.data.tool_requests[0]?.call_id ?? ''
    const results = [
      { call_id, content: 'denied by the user', is_error: true, decision: 'rejected' as const },
    ]
    await turnOf(await client.proceed(id, { type: 'tool_results', data: { results } }))
    expect(await status()).toEqual([{ status: 'failed', diff_status: 'rejected' }])
    expect(
      await inside(id, (sql) => sql.rows('SELECT target_type, target_id, decision FROM approvals')),
    ).toEqual([{ target_type: 'tool_call', target_id: call_id, decision: 'rejected' }])
  })
})

describe('permissions of a rule', () => {
  const ruled = (required: Record<string, 'allow' | 'ask' | 'deny'>): BodyChanges => ({
    policy: {
      routing: {
        rules: [{ name: 'careful', model: 'ollama/small', required_permissions: { permissions: required } }],
      },
      tools: { permissions: { shell: 'ask', read_file: 'allow' } },
    },
  })

  it('[EC 8.4] narrow those of the request', async () => {
    models.script({ calls: [READ, SHELL] }, { text: ['x'] })
    const turn = await turnAs(await execute(ruled({ read_file: 'ask', shell: 'deny' })), 'awaiting_tool')
    expect(turn.data.tool_requests).toMatchObject([{ name: 'read_file', requires_approval: 'ask' }])
    expect(offered()).not.toContain('shell')
  })

  it('[EC 8.4] may not loosen them: that is an error before anything leaves', async () => {
    const answer = await refused(await execute(ruled({ shell: 'allow' }), 'do it', STREAM))
    expect(answer).toMatchObject({
      status: 422,
      code: 'permission_expansion',
      details: { tool: 'shell', base: 'ask', requested: 'allow' },
    })
    expect(models.chats).toHaveLength(0)
  })

  it('[EC 2.13] a preview of such a turn shows the permissions of the request, and says that execute refuses it', async () => {
    const preview = await parsed(
      await client.send(
        'POST',
        `/api/v1/sessions/${id}/preview`,
        makeExecute('do it', ruled({ shell: 'allow' })),
      ),
      PreviewResponse,
    )
    expect(preview.required_permissions).toContainEqual({ permission: 'shell', mode: 'ask' })
    expect(preview.routing.reason).toContain('execute refuses this policy')
  })
})

describe('plan mode', () => {
  const plan = async () => {
    models.script({ text: ['1. First ', '2. Then'] })
    const turn = await turnAs(await execute({ input: { command: 'plan' } }), 'awaiting_approval')
    return turn
  }
  const decide = (approval_id: string, decision: 'approved' | 'rejected', reason?: string) =>
    client.proceed(id, {
      type: 'approval_decisions',
      data: { decisions: [{ approval_id, decision, ...(reason === undefined ? {} : { reason }) }] },
    })

  it('[EC 14] ends with a plan to approve, and offers nothing that changes files', async () => {
    const turn = await plan()
    expect(turn).toEqual({
      status: 'awaiting_approval',
      data: {
        approval: {
          approval_id: expect.any(String),
          kind: 'plan',
          detail: { plan: expect.any(String), version: 1, content: '1. First 2. Then' },
        },
        trace_id: expect.stringMatching(/^trace:/),
      },
      allowed_continuations: ['approval_decisions', 'break'],
    })
    expect(offered()).toEqual(['read_file', 'shell', 'memory'])
  })

  it('[EC 14] approved, the next turn runs at once, sees the plan and may change files', async () => {
    const { data } = await plan()
    models.script({ text: ['Doing it.'] })
    const turn = await turnAs(await decide(data.approval.approval_id, 'approved'), 'completed')
    expect(turn.data.classification.source).toBe('inferred')
    expect(said().map(({ content }) => content)).toContain('1. First 2. Then')
    expect(offered()).toContain('write_file')
    expect(await inside(id, (sql) => sql.rows('SELECT status FROM plans'))).toEqual([{ status: 'approved' }])
  })

  it('[EC 14] rejected, the run is idle', async () => {
    const { data } = await plan()
    const asked = models.chats.length
    await turnAs(await decide(data.approval.approval_id, 'rejected', 'not like this'), 'idle')
    expect(models.chats).toHaveLength(asked)
    expect(await inside(id, (sql) => sql.rows('SELECT status FROM plans'))).toEqual([{ status: 'rejected' }])
    expect(await inside(id, (sql) => sql.rows('SELECT decision, reason FROM approvals'))).toEqual([
      { decision: 'rejected', reason: 'not like this' },
    ])
  })

  it('[EC 13] a decision on another approval does not fit, and the plan still waits', async () => {
    const { data } = await plan()
    expect(await refused(await decide('01890000-0000-7000-8000-000000000000', 'approved'))).toMatchObject({
      status: 422,
      details: { approval_id: data.approval.approval_id },
    })
    expect(await turnOf(await client.run(id))).toMatchObject({ status: 'awaiting_approval' })
  })
})

describe('gates before a remote model', () => {
  const cloud = { 'X-Smista-Provider-Cloud-Api-Key': 'key-1' }
  const file = { path: 'src/a.ts', content: 'x', content_hash: 'sha256:0', required: true }
  const toCloud = (more: BodyChanges['policy'] = {}): BodyChanges => ({
    attachments: { files: [file] },
    policy: {
      routing: { default: { model: 'openai-compat:cloud/big', fallbacks: ['ollama/small'] } },
      ...more,
    },
  })
  const decide = (approval_id: string, decision: 'approved' | 'rejected', headers: Headers = cloud) =>
    client.proceed(
      id,
      { type: 'approval_decisions', data: { decisions: [{ approval_id, decision }] } },
      headers,
    )

  it('[EC 9] mode `ask`, the default, asks before a byte leaves, and names what would be shown', async () => {
    models.script({ text: ['x'] })
    const turn = await turnAs(await execute(toCloud(), 'do it', cloud), 'awaiting_approval')
    expect(turn.data.approval).toEqual({
      approval_id: expect.any(String),
      kind: 'remote_disclosure',
      detail: { provider: 'openai-compat:cloud', model: 'big', paths: ['src/a.ts'] },
    })
    expect(models.chats).toHaveLength(0)
    const done = await turnAs(await decide(turn.data.approval.approval_id, 'approved'), 'completed')
    expect(done.data.message).toMatchObject({ provider: 'openai-compat:cloud', model: 'big' })
    expect(models.chats).toMatchObject([
      { origin: 'https://cloud.test', headers: { authorization: 'Bearer key-1' } },
    ])
  })

  it('[EC 19] a decision is traced once, however long the gate stood before its call', async () => {
    models.script({ text: ['x'] })
    const asked = await turnAs(await execute(toCloud(), 'do it', cloud), 'awaiting_approval')
    await turnAs(await decide(asked.data.approval.approval_id, 'approved'), 'completed')
    const { trace } = await parsed(await client.send('GET', `/api/v1/sessions/${id}/traces`), TraceResponse)
    const types = trace.events.map(({ event_type }) => event_type)
    for (const once of ['classification', 'routing_decision', 'context_selection', 'approval'] as const)
      expect([once, types.filter((type) => type === once)]).toEqual([once, [once]])
  })

  it('[EC 8.6] a model that did not answer is not asked again when the gate of the next one is passed', async () => {
    models.script({ status: 503 }, { text: ['from the cloud'] })
    const route = { routing: { default: { model: 'ollama/small', fallbacks: ['openai-compat:cloud/big'] } } }
    const asked = await turnAs(await execute(toCloud(route), 'do it', cloud), 'awaiting_approval')
    const turn = await turnAs(await decide(asked.data.approval.approval_id, 'approved'), 'completed')
    expect(turn.data.routing).toMatchObject({ provider: 'openai-compat:cloud', fallback_used: true })
    expect(models.chats.map(({ origin }) => origin)).toEqual(['http://127.0.0.1:11434', 'https://cloud.test'])
  })

  it('[EC 13] declined for an explicit model, the run has no route: nothing was bound to local models', async () => {
    const explicit = { ...toCloud(), input: { explicit_model: 'openai-compat:cloud/big' } }
    const asked = await turnAs(await execute(explicit, 'do it', cloud), 'awaiting_approval')
    expect(await refused(await decide(asked.data.approval.approval_id, 'rejected'))).toMatchObject({
      status: 422,
      code: 'no_route',
    })
  })

  it('[EC 13] what was approved is not asked again in the run, but in the next one', async () => {
    models.script({ calls: [SHELL] }, { text: ['Done.'] })
    const asked = await turnAs(await execute(toCloud(), 'do it', cloud), 'awaiting_approval')
    const turn = await turnAs(await decide(asked.data.approval.approval_id, 'approved'), 'awaiting_tool')
    const results = [{ call_id: turn.data.tool_requests[0]?.call_id ?? '', content: 'ok' }]
    await turnAs(await client.proceed(id, { type: 'tool_results', data: { results } }, cloud), 'completed')
    await turnAs(await execute(toCloud(), 'do it', cloud), 'awaiting_approval')
  })

  it('[EC 13] declined, a local model serves the turn', async () => {
    models.script({ text: ['local'] })
    const asked = await turnAs(await execute(toCloud(), 'do it', cloud), 'awaiting_approval')
    const turn = await turnAs(await decide(asked.data.approval.approval_id, 'rejected'), 'completed')
    expect(turn.data.routing).toMatchObject({ provider: 'ollama', fallback_used: true })
    expect(models.chats.map(({ origin }) => origin)).toEqual(['http://127.0.0.1:11434'])
  })

  it('[EC 13] declined without a local model, the run fails and nothing leaves', async () => {
    const only = { routing: { default: { model: 'openai-compat:cloud/big' } } }
    const asked = await turnAs(await execute(toCloud(only), 'do it', cloud), 'awaiting_approval')
    expect(await refused(await decide(asked.data.approval.approval_id, 'rejected'))).toMatchObject({
      status: 422,
      code: 'no_route',
      details: { reason: 'no_local_model' },
    })
    expect(models.chats).toHaveLength(0)
  })

  eachCase(
    [
      { mode: 'allow' as const, provider: 'openai-compat:cloud' },
      { mode: 'deny' as const, provider: 'ollama' },
    ],
    ({ mode, provider }) => `[EC 9] mode \`${mode}\` does not ask: ${provider} serves`,
    async ({ mode, provider }) => {
      models.script({ text: ['x'] })
      const privacy = { remote: { mode } }
      const turn = await turnAs(await execute(toCloud({ privacy }), 'do it', cloud), 'completed')
      expect(turn.data.message.provider).toBe(provider)
    },
  )

  it('[U37] required content that may not leave is seen by local models only, also as a fallback', async () => {
    models.script({ text: ['x'] })
    const privacy = { remote: { mode: 'allow' as const }, restricted_paths: ['src/**'] }
    const turn = await turnAs(await execute(toCloud({ privacy }), 'do it', cloud), 'completed')
    expect(turn.data.message.provider).toBe('ollama')
    const only = { routing: { default: { model: 'openai-compat:cloud/big' } }, privacy }
    expect(await refused(await execute(toCloud(only), 'do it', cloud))).toMatchObject({ code: 'no_route' })
    const forced = { ...toCloud(only), input: { explicit_model: 'openai-compat:cloud/big' } }
    expect(await refused(await execute(forced, 'do it', cloud))).toMatchObject({
      status: 403,
      code: 'override_not_allowed',
    })
    expect(models.chats.map(({ origin }) => origin)).toEqual(['http://127.0.0.1:11434'])
  })

  it('[EC 13] a call that may cost more than its rule allows is asked for, once', async () => {
    const rules = [{ name: 'cheap', model: 'openai-compat:cloud/big', cost_limit: '0.001' }]
    const policy = { routing: { rules }, privacy: { remote: { mode: 'allow' as const } } }
    models.script({ text: ['x'] })
    const asked = await turnAs(await execute({ policy }, 'do it', cloud), 'awaiting_approval')
    expect(asked.data.approval).toMatchObject({
      kind: 'cost_limit',
      detail: { limit: '0.001', currency: 'USD', provider: 'openai-compat:cloud', model: 'big' },
    })
    const turn = await turnAs(await decide(asked.data.approval.approval_id, 'approved'), 'completed')
    expect(turn.data.usage).toMatchObject({ actual_cost: '0.0004', currency: 'USD' })
    const again = await turnAs(await execute({ policy }, 'do it', cloud), 'awaiting_approval')
    await turnAs(await decide(again.data.approval.approval_id, 'rejected'), 'idle')
  })

  it('[EC 1.1] a key serves the request that brought it: without it the next one goes to the fallback', async () => {
    models.script({ text: ['x'] })
    const asked = await turnAs(await execute(toCloud(), 'do it', cloud), 'awaiting_approval')
    const turn = await turnAs(await decide(asked.data.approval.approval_id, 'approved', {}), 'completed')
    expect(turn.data.message.provider).toBe('ollama')
    expect(models.chats.map(({ origin }) => origin)).toEqual(['http://127.0.0.1:11434'])
  })

  it('[EC 22] no key of a request is ever stored', async () => {
    models.script({ calls: [READ] })
    const privacy = { remote: { mode: 'allow' as const } }
    await turnAs(await execute(toCloud({ privacy }), 'do it', cloud), 'awaiting_tool')
    const stored = await inside(id, (sql) =>
      sql
        .rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'")
        .map(({ name }) => JSON.stringify(sql.rows(`SELECT * FROM ${name}`)))
        .join(),
    )
    expect(stored).toContain('src/a.ts')
    expect(stored).not.toContain('key-1')
  })
})

describe('preview', () => {
  const preview = async (changes: BodyChanges = {}) =>
    parsed(
      await client.send('POST', `/api/v1/sessions/${id}/preview`, makeExecute('hi', changes)),
      PreviewResponse,
    )

  it('[EC 2.13] shows what execute decides, asks no model and stores nothing', async () => {
    const shown = await preview({ policy: { tools: { permissions: { shell: 'ask', read_file: 'allow' } } } })
    expect(shown).toEqual({
      classification: expect.objectContaining({ intent: 'chat' }),
      routing: expect.objectContaining({ intent: 'chat', provider: 'ollama', model: 'small' }),
      included_context: [],
      excluded_context: [],
      estimated_cost: { min: '0', max: '0', currency: 'USD' },
      required_permissions: [
        { permission: 'read_file', mode: 'allow' },
        { permission: 'shell', mode: 'ask' },
      ],
      effort: 'medium',
    })
    expect(
      await preview({ policy: { tools: { permissions: { shell: 'ask', read_file: 'allow' } } } }),
    ).toEqual(shown)
    expect(models.chats).toHaveLength(0)
    expect(await messagesOf(id)).toEqual([])
    models.script({ text: ['x'] })
    const turn = await turnAs(await execute({}, 'hi'), 'completed')
    const { task_type, ...route } = turn.data.routing
    expect(shown.routing).toMatchObject({ ...route, intent: task_type })
    expect(shown.classification).toEqual(turn.data.classification)
  })

  it('[EC 2.13] fails as execute would', async () => {
    const routing = { rules: [{ name: 'r', intent: 'edit' as const, model: 'ollama/small' }] }
    const answer = await client.send(
      'POST',
      `/api/v1/sessions/${id}/preview`,
      makeExecute('hi', { policy: { routing } }),
    )
    expect(await refused(answer)).toMatchObject({ status: 422, code: 'no_route' })
  })
})
