import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ExecuteRequest } from '../../src/protocol/execution/execute.ts'
import { ExecutePolicy } from '../../src/protocol/execution/policy.ts'
import type { TurnEvent } from '../../src/protocol/execution/stream.ts'
import { makeHoldPoint } from '../support/node/hold-point.ts'
import { type ScriptedModel, startScriptedModel } from '../support/node/model-scripts.ts'
import { framesOf, hasFrames, openRaw, type RawAnswer, sendRaw } from '../support/node/raw-request.ts'
import { makeAccount, must, type RouterAccount } from '../support/node/router-account.ts'
import { RouterProcess } from '../support/node/router-process.ts'
import { executeRequest, smallPolicy } from '../support/node/run-request.ts'
import { openAiStream } from '../support/node/scripted-upstream-dialects.ts'
import { startScriptedUpstream } from '../support/node/scripted-upstream-server.ts'
import { type StatefulFolder, statefulFolder } from '../support/node/stateful-folder.ts'

/** What only real sockets show: a router as `npm run dev` starts it, and clients that come and go. */

/** How soon a stop must reach the upstream call (U26). */
const STOP_REACHES_UPSTREAM_MS = 2_000

let folder: StatefulFolder
let model: ScriptedModel
let cloud: Awaited<ReturnType<typeof startScriptedUpstream>>
let router: RouterProcess
let account: RouterAccount

beforeAll(async () => {
  folder = statefulFolder()
  model = await startScriptedModel()
  cloud = await startScriptedUpstream(
    openAiStream({ text: ['Said by ', 'the cloud.'], usage: { input: 1200, output: 500 } }),
  )
  const cloudModel = {
    model: 'claude-sonnet',
    max_context_tokens: 200_000,
    input_cost_per_million_tokens: '25',
    output_cost_per_million_tokens: '100',
  }
  router = await RouterProcess.start({
    persistTo: folder.path,
    vars: {
      OLLAMA_BASE_URL: model.url,
      PROVIDERS: JSON.stringify([{ name: 'cloud', base_url: `${cloud.url}/v1`, models: [cloudModel] }]),
      ALLOWED_ORIGINS: 'https://app.example',
    },
  })
  account = await makeAccount(router.url)
})

afterAll(async () => {
  await router?.stop()
  await model?.close()
  await cloud?.close()
  folder?.remove()
})

const path = (session: string, verb: string) => `${router.url}/api/v1/sessions/${session}/${verb}`
const policy = smallPolicy({ routing: { default: { model: 'ollama/scripted' } } })
const task = (prompt: string): ExecuteRequest => ({ ...executeRequest(prompt), policy })
const streaming = (extra: Record<string, string> = {}) => ({
  ...account.headers,
  Accept: 'text/event-stream',
  ...extra,
})

const post = (session: string, verb: string, body: unknown, headers: Record<string, string>) =>
  openRaw(path(session, verb), { method: 'POST', headers, body })
const execute = (session: string, prompt: string) => post(session, 'execute', task(prompt), streaming())
const continueStreamed = (session: string, body: unknown) => post(session, 'continue', body, streaming())
const continueBuffered = async (session: string, body: unknown) =>
  jsonOf(await post(session, 'continue', body, account.headers))

const jsonOf = async (answer: RawAnswer): Promise<unknown> => JSON.parse(await answer.whole())
const eventsOf = (bytes: string): TurnEvent[] => framesOf(bytes).map(({ event }) => event)
const idsOf = (bytes: string): string[] => framesOf(bytes).map(({ id }) => id)

/** The ids that the events of one turn have, in order: `<turn>.1`, `<turn>.2`, … */
function numbered(ids: readonly string[]): string[] {
  const turn = ids[0]?.replace(/\.1$/, '')
  return ids.map((_, index) => `${turn}.${index + 1}`)
}

async function messagesOf(session: string) {
  const { messages } = must(await account.client.sessions.get(session))
  return messages.map(({ role, content, interrupted }) => ({
    role,
    text: 'plaintext' in content ? content.plaintext : '',
    ...(interrupted ? { interrupted } : {}),
  }))
}

const text = (delta: string): TurnEvent => ({ type: 'text_delta', delta })
const anId = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/)
const aTraceId = expect.stringMatching(/^trace:[0-9a-f-]{36}$/)

describe('the exchanges of the execution protocol', () => {
  /** The request of "Starting a run", with a policy that names models of this test. */
  const theTask = (changes: Record<string, unknown> = {}): ExecuteRequest => ({
    input: { text: 'refactor the auth middleware', command: 'edit', explicit_model: null },
    workspace: {
      root: '/Users/christian/project',
      git_branch: 'main',
      git_diff: 'diff --git a/src/auth/middleware.rs b/src/auth/middleware.rs',
      referenced_paths: ['src/auth/middleware.rs'],
      active_file: null,
    },
    attachments: {
      files: [
        {
          path: 'src/auth/middleware.rs',
          content: 'pub fn middleware() {}',
          content_hash: 'sha256:00',
          required: true,
        },
        { path: '.env', content: 'KEY=do-not-tell', content_hash: 'sha256:01', required: false },
      ],
      instructions: [{ source: 'AGENTS.md', content: 'Be brief.' }],
      invoked_skills: [],
      available_skills: [],
    },
    policy: ExecutePolicy.parse({
      version: 1,
      source: 'merged',
      classification: {},
      routing: {
        rules: [
          {
            name: 'edit + src/auth/** -> the cloud',
            intent: 'edit',
            paths: ['src/auth/**'],
            model: 'openai-compat:cloud/claude-sonnet',
          },
        ],
        default: { model: 'ollama/scripted' },
      },
      tools: { permissions: { read_file: 'allow', shell: 'ask', write_file: 'deny' } },
      privacy: { restricted_paths: ['.env'], remote: { mode: 'allow' } },
      ...changes,
    }),
    local_preferences: { auto_apply: false, local_only: false, no_network: false },
  })

  test('[EC 28] one turn without tools is answered by one completed envelope', async () => {
    const session = await account.newSession()
    const answer = await post(session, 'execute', theTask(), account.headers)
    expect(await jsonOf(answer)).toEqual({
      status: 'completed',
      data: {
        message: {
          role: 'assistant',
          content: 'Said by the cloud.',
          provider: 'openai-compat:cloud',
          model: 'claude-sonnet',
        },
        classification: expect.objectContaining({ intent: 'edit', source: 'explicit' }),
        routing: {
          task_type: 'edit',
          provider: 'openai-compat:cloud',
          model: 'claude-sonnet',
          matched_rule: 'edit + src/auth/** -> the cloud',
          fallback_used: false,
          override_used: false,
        },
        context: {
          included: ['src/auth/middleware.rs', 'AGENTS.md', 'current git diff'],
          excluded: ['.env'],
          exclusions: [
            {
              item: '.env',
              reason: 'only local models may see it: `.env` matches `.env` of restricted_paths',
            },
          ],
        },
        usage: {
          input_tokens: 1200,
          output_tokens: 500,
          total_tokens: 1700,
          actual_cost: '0.08',
          currency: 'USD',
        },
        trace_id: aTraceId,
      },
    })
    expect(JSON.stringify(cloud.requests)).not.toContain('do-not-tell')
  })

  test('[EC 12, 28] tool requests go to the client, its results come back, another model may serve the next turn', async () => {
    const session = await account.newSession()
    model.script(
      '<tools>',
      {
        pieces: ['Let me look.'],
        calls: [
          { name: 'read_file', arguments: { path: 'src/auth/middleware.rs' } },
          { name: 'shell', arguments: { command: 'cargo test' } },
          { name: 'write_file', arguments: { path: 'x', content: 'y' } },
        ],
      },
      { pieces: ['All ', 'is well.'] },
    )
    const paused = await post(session, 'execute', { ...theTask(), input: { text: '<tools>' } }, streaming())
    const events = eventsOf(await paused.whole())
    const read = { call_id: anId, name: 'read_file', arguments: { path: 'src/auth/middleware.rs' } }
    const shell = { call_id: anId, name: 'shell', arguments: { command: 'cargo test' } }
    expect(events).toEqual([
      text('Let me look.'),
      { type: 'tool_call_started', call_id: anId, name: 'read_file' },
      { type: 'tool_call_requested', ...read, requires_approval: 'allow' },
      { type: 'tool_call_started', call_id: anId, name: 'shell' },
      { type: 'tool_call_requested', ...shell, requires_approval: 'ask' },
      {
        type: 'turn_end',
        status: 'awaiting_tool',
        data: {
          tool_requests: [
            { ...read, requires_approval: 'allow', driver_epoch: 1 },
            { ...shell, requires_approval: 'ask', driver_epoch: 1 },
          ],
          trace_id: aTraceId,
        },
        allowed_continuations: ['tool_results', 'inject', 'break'],
      },
    ])
    const calls = events.flatMap((event) => (event.type === 'tool_call_requested' ? [event.call_id] : []))
    const [c1, c2] = calls
    const resumed = await continueStreamed(session, {
      type: 'tool_results',
      data: {
        results: [
          { call_id: c1, content: 'pub fn middleware() { ... }', is_error: false },
          { call_id: c2, content: 'test result: ok', is_error: false, decision: 'approved' },
        ],
      },
    })
    expect(eventsOf(await resumed.whole())).toEqual([
      text('All '),
      text('is well.'),
      expect.objectContaining({ type: 'usage', total_tokens: 120 }),
      expect.objectContaining({ type: 'turn_end', status: 'completed' }),
    ])
    const [, second] = model.asked('<tools>')
    const results = second?.messages.filter(({ role }) => role === 'tool').map(({ content }) => content)
    expect(results?.slice(0, 2)).toEqual(['pub fn middleware() { ... }', 'test result: ok'])
  })

  test('[EC 13, 28] a disclosure is asked for with the paths that would be sent, and the decision resumes the run', async () => {
    const session = await account.newSession()
    const asking = theTask({ privacy: { restricted_paths: ['.env'], remote: { mode: 'ask' } } })
    const before = cloud.requests.length
    const gate = await jsonOf(await post(session, 'execute', asking, account.headers))
    expect(gate).toEqual({
      status: 'awaiting_approval',
      data: {
        approval: {
          approval_id: anId,
          kind: 'remote_disclosure',
          detail: {
            provider: 'openai-compat:cloud',
            model: 'claude-sonnet',
            paths: ['src/auth/middleware.rs', 'AGENTS.md'],
          },
        },
        trace_id: aTraceId,
      },
      allowed_continuations: ['approval_decisions', 'break'],
    })
    expect(cloud.requests.length).toBe(before)
    const { approval_id } = (gate as { data: { approval: { approval_id: string } } }).data.approval
    const decisions = [{ approval_id, decision: 'approved' }]
    const done = await continueBuffered(session, { type: 'approval_decisions', data: { decisions } })
    expect(done).toMatchObject({ status: 'completed', data: { message: { content: 'Said by the cloud.' } } })
    expect(cloud.requests.length).toBe(before + 1)
  })

  test('[EC 15, 28] a break at a pause answers idle, and the cancelled call is answered for the next model', async () => {
    const session = await account.newSession()
    model.script('<give up>', { calls: [{ name: 'read_file', arguments: { path: 'a.ts' } }] })
    model.script('<go on>', { pieces: ['Gone on.'] })
    expect(eventsOf(await (await execute(session, '<give up>')).whole()).at(-1)).toMatchObject({
      status: 'awaiting_tool',
    })
    expect(await continueBuffered(session, { type: 'break' })).toEqual({
      status: 'idle',
      data: {
        trace_id: aTraceId,
        ended: { run_id: expect.any(String), interrupted: false, tool_calls: [expect.any(String)] },
      },
    })
    expect(eventsOf(await (await execute(session, '<go on>')).whole()).at(-1)).toMatchObject({
      status: 'completed',
    })
    const roles = model.asked('<go on>')[0]?.messages.map(({ role }) => role)
    expect(roles).toEqual(['system', 'user', 'assistant', 'tool', 'user'])
  })
})

describe('a stream', () => {
  test('[EC 18, D19] arrives piece by piece while the model speaks, each event an id line and a data line', async () => {
    const session = await account.newSession()
    const pause = makeHoldPoint()
    model.script('<pieces>', { pieces: ['one ', 'two '], hold: pause.hold, after: ['three'] })
    const answer = await execute(session, '<pieces>')
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/event-stream'])
    // The model is silent until it is released: what has come did not wait for the end.
    await answer.until(hasFrames(2))
    expect(eventsOf(answer.text)).toEqual([text('one '), text('two ')])
    pause.release()
    const bytes = await answer.whole()
    expect(eventsOf(bytes).slice(2)).toEqual([
      text('three'),
      expect.objectContaining({ type: 'usage', input_tokens: 100, output_tokens: 20, total_tokens: 120 }),
      expect.objectContaining({ type: 'turn_end', status: 'completed' }),
    ])
    expect(idsOf(bytes)).toEqual(numbered(idsOf(bytes)))
    const turn = idsOf(bytes)[0]?.replace(/\.1$/, '')
    expect(bytes.startsWith(`id: ${turn}.1\ndata: {"type":"text_delta","delta":"one "}\n\n`)).toBe(true)
    expect(bytes.endsWith('}\n\n')).toBe(true)
  })

  test('[D24] of a model that breaks off ends with turn_end of status error, and the partial is kept as interrupted', async () => {
    const session = await account.newSession()
    const pause = makeHoldPoint()
    model.script('<broken>', { pieces: ['so far'], hold: pause.hold, breaks: true })
    const answer = await execute(session, '<broken>')
    await answer.until(hasFrames(1))
    pause.release()
    expect(eventsOf(await answer.whole())).toEqual([
      text('so far'),
      {
        type: 'turn_end',
        status: 'error',
        data: { error: expect.objectContaining({ code: 'provider_unavailable' }) },
      },
    ])
    expect(await messagesOf(session)).toEqual([
      { role: 'user', text: '<broken>' },
      { role: 'assistant', text: 'so far', interrupted: true },
    ])
  })
})

describe('a turn that is superseded', () => {
  /** Resolves when the router closes the model's connection, rejects when that is not in time. */
  const upstreamClosed = () =>
    new Promise<void>((resolve, reject) => {
      const late = setTimeout(
        () => reject(new Error('the upstream connection is still open')),
        STOP_REACHES_UPSTREAM_MS,
      )
      model.onAbort(() => {
        clearTimeout(late)
        resolve()
      })
    })

  test('[U26, EC 15] a break answers idle, closes the upstream connection within 2 s and keeps the partial', async () => {
    const session = await account.newSession()
    const never = makeHoldPoint()
    model.script('<endless>', { pieces: ['half a ', 'thought'], hold: never.hold })
    const stream = await execute(session, '<endless>')
    await stream.until(hasFrames(2))
    const closed = upstreamClosed()
    expect(await continueBuffered(session, { type: 'break' })).toEqual({
      status: 'idle',
      data: {
        trace_id: aTraceId,
        ended: { run_id: expect.any(String), interrupted: true, tool_calls: [] },
      },
    })
    await closed
    expect(eventsOf(await stream.whole()).at(-1)).toEqual({
      type: 'turn_end',
      status: 'idle',
      data: { trace_id: aTraceId },
    })
    expect(await messagesOf(session)).toEqual([
      { role: 'user', text: '<endless>' },
      { role: 'assistant', text: 'half a thought', interrupted: true },
    ])
  })

  test('[U26, EC 15] an inject cuts the model the same way, keeps the partial and goes on with the new words', async () => {
    const session = await account.newSession()
    const never = makeHoldPoint()
    model.script('<wrong way>', { pieces: ['I will do X'], hold: never.hold })
    model.script('<rather Y>', { pieces: ['Y it is'] })
    const first = await execute(session, '<wrong way>')
    await first.until(hasFrames(1))
    const closed = upstreamClosed()
    const second = await continueStreamed(session, {
      type: 'inject',
      data: { messages: [{ text: '<rather Y>' }] },
    })
    await closed
    expect(eventsOf(await second.whole())).toMatchObject([
      text('Y it is'),
      { type: 'usage' },
      { type: 'turn_end', status: 'completed', data: { message: { content: 'Y it is' } } },
    ])
    expect(eventsOf(await first.whole()).at(-1)).toMatchObject({ type: 'turn_end', status: 'idle' })
    expect(await messagesOf(session)).toEqual([
      { role: 'user', text: '<wrong way>' },
      { role: 'assistant', text: 'I will do X', interrupted: true },
      { role: 'user', text: '<rather Y>' },
      { role: 'assistant', text: 'Y it is' },
    ])
  })
})

describe('a client that goes away', () => {
  test('[D19, D21, U01] in mid-stream comes back with Last-Event-ID and has had every event exactly once', async () => {
    const session = await account.newSession()
    const pause = makeHoldPoint()
    model.script('<tunnel>', { pieces: ['a', 'b', 'c'], hold: pause.hold, after: ['d', 'e'] })
    const first = await execute(session, '<tunnel>')
    await first.until(hasFrames(2))
    const seen = framesOf(first.text).slice(0, 2)
    first.cut()
    const second = await openRaw(path(session, 'run'), {
      headers: streaming({ 'Last-Event-ID': seen[1]?.id ?? '' }),
    })
    await second.until(hasFrames(1))
    pause.release()
    const frames = [...seen, ...framesOf(await second.whole())]
    expect(frames.map(({ event }) => event)).toMatchObject([
      ...['a', 'b', 'c', 'd', 'e'].map(text),
      { type: 'usage' },
      { type: 'turn_end', status: 'completed', data: { message: { content: 'abcde' } } },
    ])
    const ids = frames.map(({ id }) => id)
    expect(ids).toEqual(numbered(ids))
    expect(await messagesOf(session)).toEqual([
      { role: 'user', text: '<tunnel>' },
      { role: 'assistant', text: 'abcde' },
    ])
    expect(model.asked('<tunnel>')).toHaveLength(1)
  })

  test('[D21, U02] from a stream that nobody else reads leaves a turn that runs to its end', async () => {
    const session = await account.newSession()
    const pause = makeHoldPoint()
    model.script('<left alone>', { pieces: ['x'], hold: pause.hold, after: ['y'] })
    const first = await execute(session, '<left alone>')
    await first.until(hasFrames(1))
    first.cut()
    pause.release()
    // Attached only now: the events are those of a turn that did not wait for a reader.
    const bytes = await (await openRaw(path(session, 'run'), { headers: streaming() })).whole()
    expect(eventsOf(bytes).at(-1)).toMatchObject({
      status: 'completed',
      data: { message: { content: 'xy' } },
    })
    expect(await messagesOf(session)).toHaveLength(2)
  })

  test('[D21, U02] before a buffered answer finds the outcome at GET …/run', async () => {
    const session = await account.newSession()
    const pause = makeHoldPoint()
    model.script('<hung up>', { hold: pause.hold, after: ['finished anyway'] })
    const request = sendRaw(path(session, 'execute'), {
      method: 'POST',
      headers: account.headers,
      body: task('<hung up>'),
    })
    await pause.reached()
    request.cut()
    expect(await jsonOf(await openRaw(path(session, 'run'), { headers: account.headers }))).toEqual({
      status: 'running',
      data: { trace_id: aTraceId, run_id: expect.any(String) },
      allowed_continuations: ['inject', 'break'],
    })
    const attached = await openRaw(path(session, 'run'), { headers: streaming() })
    pause.release()
    expect(eventsOf(await attached.whole()).at(-1)).toMatchObject({ status: 'completed' })
    expect(await jsonOf(await openRaw(path(session, 'run'), { headers: account.headers }))).toMatchObject({
      status: 'completed',
      data: { message: { content: 'finished anyway' } },
    })
    expect(model.asked('<hung up>')).toHaveLength(1)
  })
})

describe('the edge', () => {
  test('[D43] a local router answers to loopback names and to no other', async () => {
    const asked = (host: string) => openRaw(`${router.url}/status`, { headers: { Host: host } })
    const { port } = new URL(router.url)
    expect((await asked(`localhost:${port}`)).status).toBe(200)
    for (const host of ['evil.example', `evil.example:${port}`, '127.0.0.1.evil.example']) {
      const refused = await asked(host)
      expect([host, refused.status, await jsonOf(refused)]).toEqual([
        host,
        403,
        { error: expect.objectContaining({ code: 'forbidden' }) },
      ])
    }
  })

  test('[U34, EC 1.5] a web page is served from a configured origin only', async () => {
    const preflight = (origin: string) =>
      openRaw(`${router.url}/api/v1/sessions`, {
        method: 'OPTIONS',
        headers: {
          Origin: origin,
          'Access-Control-Request-Method': 'POST',
          'Access-Control-Request-Headers': 'authorization,content-type',
        },
      })
    const allowed = await preflight('https://app.example')
    expect(allowed.headers['access-control-allow-origin']).toBe('https://app.example')
    expect(allowed.headers['access-control-allow-headers']).toMatch(/authorization/i)
    const foreign = await preflight('https://evil.example')
    expect(foreign.headers['access-control-allow-origin']).toBeUndefined()
    const bootstrap = await openRaw(`${router.url}/api/v1/auth/bootstrap`, {
      method: 'POST',
      headers: { Origin: 'https://evil.example' },
    })
    expect(bootstrap.status).toBe(403)
  })

  test('[EC 1.5] a body of 10 MiB is read, one byte more is refused with 413', async () => {
    const session = await account.newSession()
    model.script('<large>', { pieces: ['read'] })
    const bare = JSON.stringify(task('<large>')).length
    const sized = (bytes: number) =>
      post(session, 'execute', task(`<large>${'x'.repeat(bytes - bare)}`), account.headers)
    const limit = 10 * 1024 * 1024
    const over = await sized(limit + 1)
    expect([over.status, await jsonOf(over)]).toEqual([
      413,
      { error: expect.objectContaining({ code: 'invalid_request', details: { max_bytes: limit } }) },
    ])
    // Read whole, and then too long for the model: the refusal is the turn's own.
    const exact = await sized(limit)
    expect(exact.status).not.toBe(413)
    expect(await jsonOf(exact)).toMatchObject({ error: { code: 'context_window_exceeded' } })
  })
})
