import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type RunTaskOptions, type RunTaskResult, runTask } from '../../../src/cli/run-task.ts'
import { SwitchyardClient } from '../../../src/client/client.ts'
import { WordQueue } from '../../../src/client/words.ts'
import { ExecuteRequest } from '../../../src/protocol/execution/execute.ts'
import { configHome } from '../../support/node/config-home.ts'
import { NO_PREFERENCES, smallPolicy } from '../../support/node/run-request.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import {
  hangUp,
  json,
  numbered,
  openStream,
  refusal,
  type ScriptedRouter,
  startScriptedRouter,
  stream,
} from '../../support/node/scripted-router.ts'
import {
  awaitingApproval,
  awaitingTool,
  call,
  completed,
  failedTurn,
  idle,
  paths,
  SESSION,
  sessionSummary,
  text,
} from '../../support/node/scripted-router-turns.ts'
import { tempFolder } from '../../support/node/temp-folder.ts'

let router: ScriptedRouter
let io: ScriptedIo
let cwd: string

beforeEach(async () => {
  configHome()
  router = await startScriptedRouter()
  // Of a session that exists is asked whether it is encrypted.
  router.always('GET', '/api/v1/*', json({ sessions: [sessionSummary] }))
  io = scriptedIo({ isTty: true })
  cwd = tempFolder({ 'a.txt': 'one\ntwo\n', 'AGENTS.md': 'Be brief.\n' })
})
afterEach(async () => {
  expect(router.unexpected).toEqual([])
  await router.close()
})

/** Without a session and without preferences. */
const bare = (): RunTaskOptions => ({
  client: new SwitchyardClient({
    baseUrl: router.url,
    token: 'tok',
    backoff: { firstMs: 1, maxMs: 1, attempts: 1, openAttempts: 1 },
  }),
  cwd,
  prompt: 'do it',
  policy: smallPolicy(),
  approve: 'ask',
  io,
})

const run = (changes: Partial<RunTaskOptions> = {}): Promise<RunTaskResult> =>
  runTask({ ...bare(), sessionId: SESSION, localPreferences: NO_PREFERENCES, ...changes })

const executed = (): ExecuteRequest =>
  ExecuteRequest.parse(router.requests.find((one) => one.path === paths.execute)?.body)
const results = () =>
  router.requests
    .filter((one) => one.path === paths.continue)
    .map(({ body }) => (body as { data: { results: Record<string, unknown>[] } }).data.results)
const answer = (...events: unknown[]) => router.script('POST', paths.execute, stream(numbered(1, events)))
const then = (...events: unknown[]) => router.script('POST', paths.continue, stream(numbered(2, events)))

describe('a plain answer', () => {
  test('comes on stdout, and route, usage and session on stderr', async () => {
    router.script('POST', '/api/v1/sessions', json({ session: sessionSummary }, 201))
    answer(text('Hel'), text('lo.'), completed('Hello.'))
    const result = await runTask({ ...bare(), prompt: 'say\n  hello' })
    expect(result).toEqual({ sessionId: SESSION, status: 'completed', toolCalls: 0, unsent: [], exitCode: 0 })
    expect(io.stdout).toBe('Hello.\n')
    expect(io.stderr).toBe(
      [
        '→ ollama/small  (default route; intent chat, no rule matched)',
        'in 812 · out 44 tokens · $0.003096',
        `session ${SESSION}: go on with --session ${SESSION}`,
        '',
      ].join('\n'),
    )
    expect(router.requests[0]?.body).toEqual({ title: 'say hello', scope: cwd })
  })

  test('names the rule, a fallback and an explicit model', async () => {
    const routing = {
      task_type: 'review',
      provider: 'ollama',
      model: 'b',
      fallback_used: true,
      override_used: false,
    }
    answer(completed('x', { routing: { ...routing, matched_rule: 'reviews' } }))
    await run()
    expect(io.stderr).toContain('→ ollama/b  (rule "reviews", fallback; intent chat')
    answer(completed('x', { routing: { ...routing, fallback_used: false, override_used: true } }))
    await run({ explicitModel: 'Ollama/b' })
    expect(io.stderr).toContain('→ ollama/b  (chosen by you; intent chat')
    expect(router.requests.at(-1)?.body).toMatchObject({ input: { explicit_model: 'ollama/b' } })
  })

  test('[U43] unknown usage is said to be unknown', async () => {
    answer(completed('x', { usage: {} }))
    await run()
    expect(io.stderr).toContain('in ? · out ? tokens · cost unknown')
  })

  test('of which only the end came through a lost connection is still whole', async () => {
    router.script('POST', paths.execute, stream(numbered(1, [text('Hel')]), 'cut'))
    router.script('GET', paths.run, stream(numbered(1, [completed('Hello.')], 9)))
    await run()
    expect(io.stdout).toBe('Hello.\n')
    expect(io.stderr).toContain('connection lost')
  })

  test('cannot steer the terminal', async () => {
    io = scriptedIo({ isTty: true, outIsTty: true })
    answer(text('\u001b]52;c;ZXZpbA==\u0007ok\r\n'), completed('\u001b]52;c;ZXZpbA==\u0007ok\r\n'))
    await run()
    expect(io.stdout).toBe('\\u{1b}]52;c;ZXZpbA==\\u{7}ok\n')
  })
})

describe('what is sent', () => {
  test('[EC 25.3] workspace, attached files, instructions, skills and tools', async () => {
    const git = (...args: string[]) => execFileSync('git', args, { cwd, stdio: 'pipe' })
    git('init', '-q', '-b', 'trunk')
    answer(completed('x'))
    await run({ prompt: 'compare @a.txt, and ask @someone', files: ['AGENTS.md'], command: 'review' })
    const request = executed()
    expect(request.input).toEqual({ text: 'compare a.txt, and ask @someone', command: 'review' })
    expect(request.workspace).toEqual({
      root: cwd,
      git_branch: 'trunk',
      git_diff: 'diff --git a/AGENTS.md b/AGENTS.md\ndiff --git a/a.txt b/a.txt',
      referenced_paths: ['AGENTS.md', 'a.txt'],
    })
    expect(request.attachments.files[1]).toEqual({
      path: 'a.txt',
      content: 'one\ntwo\n',
      content_hash: `sha256:${createHash('sha256').update('one\ntwo\n').digest('hex')}`,
      required: true,
    })
    expect(request.attachments.instructions).toEqual([{ source: 'AGENTS.md', content: 'Be brief.\n' }])
    expect(request.attachments.tools?.map(({ name }) => name)).toEqual([
      'list_files',
      'read_lines',
      'search_files',
      'show_changes',
      'ask_user',
    ])
    expect(request.local_preferences).toEqual(NO_PREFERENCES)
  })

  test('outside a repository there is no diff, since an empty one would count', async () => {
    answer(completed('x'))
    await run()
    expect(executed().workspace).toEqual({ root: cwd, referenced_paths: [] })
  })

  test('preferences that the caller leaves out come from the configuration', async () => {
    const home = configHome({ global: '[local_preferences]\nlocal_only = true\n' })
    answer(completed('x'))
    await runTask({ ...bare(), sessionId: SESSION, cwd: home.cwd })
    expect(executed().local_preferences.local_only).toBe(true)
  })

  test('[EC 1.1] keys of the environment go only to providers that the policy or --model names', async () => {
    vi.stubEnv('ANTHROPIC_API_KEY', 'ka')
    vi.stubEnv('OPENAI_API_KEY', 'ko')
    vi.stubEnv('SWITCHYARD_PROVIDER_MY_LAB_API_KEY', 'kl')
    answer(completed('x'))
    const routing = { default: { model: 'openai-compat:my-lab/m' } }
    await run({ policy: smallPolicy({ routing }), explicitModel: 'anthropic/claude' })
    const headers = router.requests.find(({ path }) => path === paths.execute)?.headers ?? {}
    expect(Object.entries(headers).filter(([name]) => name.startsWith('x-smista-provider'))).toEqual([
      ['x-smista-provider-my-lab-api-key', 'kl'],
      ['x-smista-provider-anthropic-api-key', 'ka'],
    ])
  })
})

describe('tools', () => {
  test('run here and are shown in one line each', async () => {
    router.script(
      'GET',
      paths.usage,
      json({ total: { input_tokens: 9, output_tokens: 3 }, by_model: [], by_task_type: [] }),
    )
    answer(
      text('Let me look.'),
      awaitingTool(call('c1', 'read_file', { path: 'a.txt' }), call('c2', 'read_file', { path: 'no.txt' })),
    )
    then(text('Two lines.'), completed('Two lines.'))
    const result = await run()
    expect(result).toMatchObject({ status: 'completed', toolCalls: 2, exitCode: 0 })
    expect(io.stdout).toBe('Let me look.\nTwo lines.\n')
    expect(io.stderr.split('\n').slice(0, 2)).toEqual([
      '• read_file a.txt 2 lines, 8 B',
      '• read_file no.txt no.txt: no such file or folder',
    ])
    expect(io.stderr).toContain('session so far: in 9 · out 3 tokens · cost unknown')
    expect(results()).toEqual([
      [
        { call_id: 'c1', content: 'one\ntwo\n', is_error: false },
        { call_id: 'c2', content: 'no.txt: no such file or folder', is_error: true },
      ],
    ])
  })

  test('[EC 9] a search does not quote what the policy keeps from remote models', async () => {
    cwd = tempFolder({ '.env': 'TOKEN=1', 'pay/x.txt': 'TOKEN=2', 'open.txt': 'TOKEN=3' })
    answer(awaitingTool(call('c1', 'search_files', { query: 'token' })))
    then(completed('x'))
    router.script('GET', paths.usage, refusal(500, 'internal_error'))
    await run({
      policy: smallPolicy({
        privacy: { restricted_paths: ['**/.env'] },
        routing: {
          default: { model: 'ollama/small' },
          rules: [{ name: 'r', model: 'ollama/small', local_only: true, paths: ['pay/**'] }],
        },
      }),
    })
    expect(results()[0]?.[0]?.content).toBe(
      'open.txt:1: TOKEN=3\n[1 match in 1 of 1 file.]\n[2 restricted files not searched.]',
    )
  })
})

describe('approval', () => {
  const edit = call('c1', 'edit_file', { path: 'a.txt', old: 'two', new: 'zwei' }, 'ask')
  const shell = call('c1', 'shell', { command: 'echo hi > made.txt' }, 'ask')

  test('an edit is shown as a diff and done after a yes', async () => {
    answer(awaitingTool(edit))
    then(completed('x'))
    router.script('GET', paths.usage, refusal(500, 'internal_error'))
    io.confirmations.push(true)
    await run()
    expect(io.questions).toEqual(['Change a.txt?'])
    expect(io.stderr).toContain('--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+zwei\n')
    expect(readFileSync(path.join(cwd, 'a.txt'), 'utf8')).toBe('one\nzwei\n')
    expect(results()[0]?.[0]).toMatchObject({ decision: 'approved', is_error: false })
  })

  test('[EC 13] a no is reported as rejected, and nothing happens', async () => {
    answer(awaitingTool(shell))
    then(completed('x'))
    router.script('GET', paths.usage, refusal(500, 'internal_error'))
    io.confirmations.push(false)
    await run()
    expect(io.questions).toEqual(['Run this command?'])
    expect(io.stderr).toContain('$ echo hi > made.txt')
    expect(results()[0]).toEqual([
      { call_id: 'c1', content: 'The user declined.', is_error: true, decision: 'rejected' },
    ])
    expect(() => readFileSync(path.join(cwd, 'made.txt'))).toThrow()
  })

  test('without a terminal nothing is asked and everything that would be is declined', async () => {
    io = scriptedIo({ isTty: false })
    answer(awaitingTool(shell))
    then(completed('x'))
    router.script('GET', paths.usage, refusal(500, 'internal_error'))
    await run()
    expect(io.questions).toEqual([])
    expect(results()[0]?.[0]).toMatchObject({ decision: 'rejected', is_error: true })
    expect(() => readFileSync(path.join(cwd, 'made.txt'))).toThrow()
  })

  test.each([
    ['yes', 'approved'],
    ['deny', 'rejected'],
  ] as const)('--%s decides without asking', async (approve, decision) => {
    io = scriptedIo({ isTty: false })
    answer(awaitingTool(shell))
    then(awaitingApproval('a1', 'remote_disclosure', { provider: 'anthropic', model: 'm', paths: ['a.txt'] }))
    then(idle)
    await run({ approve })
    expect(results()[0]?.[0]).toMatchObject({ decision })
    expect(router.requests.at(-1)?.body).toMatchObject({
      data: { decisions: [{ approval_id: 'a1', decision }] },
    })
  })

  test.each([
    ['ask', false, 'add --yes, or set mode = "allow" under [privacy.remote] in /'],
    ['deny', false, 'the disclosure was declined: set mode = "allow" under [privacy.remote] in /'],
    ['ask', true, 'leave --model out'],
  ] as const)(
    'a run that fails for want of a disclosure says how to allow it (%s, terminal: %s)',
    async (approve, isTty, remedy) => {
      io = scriptedIo({ isTty })
      io.confirmations.push(false)
      answer(awaitingApproval('a1', 'remote_disclosure', { provider: 'anthropic', model: 'm', paths: [] }))
      then(failedTurn('override_not_allowed'))
      expect(await run({ approve })).toMatchObject({ status: 'error', exitCode: 1 })
      expect(io.stderr).toContain(remedy)
      // One remedy, not two that contradict each other.
      expect(io.stderr.includes('leave --model out')).toBe(isTty)
    },
  )

  test('a disclosure to a local model is told as one, and so is what allows it', async () => {
    io = scriptedIo({ isTty: false })
    const detail = { provider: 'ollama', model: 'm', paths: [], local: true }
    answer(awaitingApproval('a1', 'remote_disclosure', detail))
    then(failedTurn('no_route'))
    await run()
    expect(io.stderr).toContain('would be sent to ollama/m, which is local:')
    expect(io.stderr).toContain('set mode = "allow" under [privacy.local] in /')
  })

  test('[EC 13] a run that goes on with another model after a decline says how to approve', async () => {
    const NOTE = 'without a terminal, --yes approves what would be asked\n'
    const gate = awaitingApproval('a1', 'remote_disclosure', { provider: 'anthropic', model: 'm', paths: [] })
    for (const [isTty, told] of [
      [false, true],
      [true, false],
    ] as const) {
      io = scriptedIo({ isTty })
      io.confirmations.push(false)
      answer(gate)
      then(completed('x'))
      router.script('GET', paths.usage, refusal(500, 'internal_error'))
      expect(await run()).toMatchObject({ status: 'completed' })
      expect(io.stderr.includes(NOTE)).toBe(told)
    }
  })

  test.each([
    ['on one screen', { outIsTty: true }, {}, 1, 0],
    ['with the answer redirected', { outIsTty: false }, {}, 1, 1],
    ['as JSON', { outIsTty: true }, { json: true }, undefined, 1],
  ])('[EC 14] a plan is shown once to whoever decides on it: %s', async (_where, tty, options, out, err) => {
    io = scriptedIo({ isTty: true, ...tty })
    io.confirmations.push(true)
    const plan = { plan: 'p', content: '1. look\n2. act' }
    // Of the stream only a part came through.
    answer(text('1. look\n'), awaitingApproval('a1', 'plan', plan))
    then(completed('x'))
    router.script('GET', paths.usage, refusal(500, 'internal_error'))
    await run(options)
    const times = (where: string) => where.split(plan.content).length - 1
    if (out !== undefined) expect(times(io.stdout)).toBe(out)
    expect(times(io.stderr)).toBe(err)
  })

  test('[EC 14] a plan that hides something is shown again without what hides it', async () => {
    io = scriptedIo({ isTty: true, outIsTty: true })
    io.confirmations.push(false)
    answer(text('go \u202eback'), awaitingApproval('a1', 'plan', { plan: 'p', content: 'go \u202eback' }))
    then(idle)
    await run()
    expect(io.stderr).toContain('plan: \ngo \\u{202e}back')
  })

  test('auto_apply spares the question for file changes and for nothing else', async () => {
    io = scriptedIo({ isTty: false })
    answer(awaitingTool(edit, { ...shell, call_id: 'c2' }))
    then(completed('x'))
    router.script('GET', paths.usage, refusal(500, 'internal_error'))
    await run({ localPreferences: { ...NO_PREFERENCES, auto_apply: true } })
    expect(results()[0]).toMatchObject([{ decision: 'approved' }, { decision: 'rejected' }])
  })

  test('an edit that cannot be made is not asked about', async () => {
    answer(awaitingTool(call('c1', 'edit_file', { path: 'a.txt', old: 'none', new: 'x' }, 'ask')))
    then(completed('x'))
    router.script('GET', paths.usage, refusal(500, 'internal_error'))
    await run()
    expect(io.questions).toEqual([])
    expect(results()[0]?.[0]).toMatchObject({
      is_error: true,
      content: expect.stringContaining('does not occur'),
    })
  })

  test('what is approved hides nothing: control and direction characters are shown', async () => {
    answer(awaitingTool(call('c1', 'shell', { command: 'rm -rf ~\r\u202eecho harmless\u001b[2K' }, 'ask')))
    then(completed('x'))
    router.script('GET', paths.usage, refusal(500, 'internal_error'))
    io.confirmations.push(false)
    await run()
    expect(io.stderr).toContain('$ rm -rf ~\\u{d}\\u{202e}echo harmless\\u{1b}[2K\n')
  })

  test('gates tell what they are about', async () => {
    answer(
      awaitingApproval('a1', 'remote_disclosure', { provider: 'anthropic', model: 'm', paths: ['a.txt'] }),
    )
    then(
      awaitingApproval('a2', 'cost_limit', {
        limit: '0.50',
        estimated_min: '0.4',
        estimated_max: '1.2',
        provider: 'p',
        model: 'm',
      }),
    )
    then(
      awaitingApproval('a2b', 'cost_limit', {
        limit: '0.50',
        estimated_min: '0.4',
        estimated_max: '1.2',
        up_to: '2.4',
        provider: 'p',
        model: 'm',
      }),
    )
    then(
      awaitingApproval('a2c', 'cost_limit', {
        limit: '0.50',
        reason: 'price_unknown',
        provider: 'p',
        model: 'm',
      }),
    )
    then(awaitingApproval('a3', 'plan', { plan: 'p', content: '1. look\n2. act' }))
    then(idle)
    io.confirmations.push(true, true, true, true, false)
    const result = await run()
    expect(io.stderr).toContain('would be sent to anthropic/m, which is remote:\n  a.txt\n')
    expect(io.stderr).toContain('cost: p/m is estimated at 0.4 to 1.2 USD, above the limit of 0.50 USD\n')
    expect(io.stderr).toContain(
      'above the limit of 0.50 USD; a yes holds for calls of up to 2.4 USD in this run\n',
    )
    expect(io.stderr).toContain(
      'cost: the price of p/m is unknown, and may be above the limit of 0.50 USD; a yes holds for this run\n',
    )
    expect(io.stderr).toContain('1. look\n2. act')
    expect(result).toMatchObject({ status: 'idle', exitCode: 1 })
  })

  test('[U26] Ctrl-C at a question stops the run', async () => {
    answer(awaitingTool(shell))
    then(idle)
    expect(await run()).toMatchObject({ status: 'idle', exitCode: 130 })
    expect(router.requests.at(-1)?.body).toEqual({ type: 'break' })
    expect(io.stderr).toContain('stopped')
  })
})

describe('endings', () => {
  test('[U26] the signal breaks the run: exit 130', async () => {
    const stop = new AbortController()
    router.script(
      'POST',
      paths.execute,
      openStream(numbered(1, [text('one')]), () => setImmediate(() => stop.abort())),
    )
    then(idle)
    expect(await run({ signal: stop.signal })).toMatchObject({ status: 'idle', exitCode: 130 })
    expect(router.requests.at(-1)?.body).toEqual({ type: 'break' })
  })

  test.each([
    [
      'a failed turn',
      stream([{ event: failedTurn('missing_provider_credentials') }]),
      1,
      'set the key of that provider',
    ],
    ['a refusal', refusal(422, 'no_route'), 1, 'scripted no_route (no_route)'],
    [
      'a model that is not there',
      stream([{ event: failedTurn('fallback_exhausted') }]),
      1,
      '(fallback_exhausted)\n  `switchyard models` shows what there is\n',
    ],
    [
      'a session that is archived, or not there',
      refusal(404, 'session_not_found'),
      1,
      `\`switchyard sessions archive ${SESSION} --restore\` brings it back`,
    ],
    ['a token that is not valid', refusal(401, 'token_revoked'), 3, 'switchyard login'],
    [
      'another program',
      (response: import('node:http').ServerResponse) => void response.end('hello'),
      3,
      'cannot be understood',
    ],
  ])('%s has its exit code and a sentence', async (_what, reply, exitCode, sentence) => {
    router.script('POST', paths.execute, reply)
    expect(await run()).toMatchObject({ status: 'error', exitCode })
    expect(io.stderr).toContain(sentence)
    expect(io.stderr).not.toMatch(/\n\s+at /)
  })

  test('a router that goes away for good is exit 3', async () => {
    router.script('POST', paths.execute, stream(numbered(1, [text('a')]), 'cut'))
    router.always('GET', paths.run, (response) => void response.destroy())
    expect(await run()).toMatchObject({ status: 'error', exitCode: 3 })
  })

  test.each([
    ['an empty prompt', { prompt: ' \n' }, 'the prompt is empty'],
    ['a file that does not exist', { files: ['no.txt'] }, 'no.txt: no such file or folder'],
    ['a file outside the workspace', { files: ['../x'] }, '../x is outside the workspace'],
    ['a model without provider', { explicitModel: 'gpt' }, 'not a model reference'],
    ['a folder that does not exist', { cwd: '/no/such/folder' }, 'does not exist'],
  ])('%s is exit 2 before anything is sent', async (_what, changes, sentence) => {
    expect(await run(changes)).toEqual({
      sessionId: SESSION,
      status: 'error',
      toolCalls: 0,
      unsent: [],
      exitCode: 2,
    })
    expect(io.stderr).toContain(sentence)
    expect(router.requests).toEqual([])
  })
})

describe('--json', () => {
  test('every line of stdout is one event, from the session to the end', async () => {
    answer(text('Hi'), awaitingTool(call('c1', 'read_file', { path: 'a.txt' })))
    then(text('Two.'), completed('Two.'))
    await run({ json: true })
    const lines = io.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string })
    expect(lines.map(({ type }) => type)).toEqual([
      'session',
      'text_delta',
      'turn_end',
      'tool_started',
      'tool_finished',
      'text_delta',
      'turn_end',
      'run_ended',
    ])
    expect(lines[0]).toEqual({ type: 'session', session_id: SESSION })
    expect(lines.at(-1)).toEqual({
      type: 'run_ended',
      session_id: SESSION,
      status: 'completed',
      tool_calls: 1,
      exit_code: 0,
    })
  })

  test('a failure is in the last line', async () => {
    router.script('POST', paths.execute, refusal(422, 'no_route'))
    await run({ json: true })
    expect(JSON.parse(io.stdout.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({
      type: 'run_ended',
      status: 'error',
      failure: { kind: 'http', code: 'no_route' },
      exit_code: 1,
    })
  })
})

describe('[EC 15] new words', () => {
  /** Said whenever so much of the answer has been shown. */
  const saidAfter = (shown: string, line: string, words = new WordQueue()): WordQueue => {
    const { out } = io
    let waiting = true
    io.out = (written) => {
      out(written)
      if (!waiting || !io.stdout.includes(shown)) return
      waiting = false
      words.push(line)
    }
    return words
  }

  test('mark the answer that they cut, and the next answer is shown whole', async () => {
    router.script('POST', paths.execute, openStream(numbered(1, [text('Once upon')])))
    then(text('Twice.'), completed('Twice.'))
    const result = await run({ words: saidAfter('upon', 'say it\ttwice') })
    expect(io.stdout).toBe('Once upon\nTwice.\n')
    expect(io.stderr).toContain('the answer above was interrupted; sent: say it twice\n')
    expect(result).toMatchObject({ status: 'completed', unsent: [], exitCode: 0 })
  })

  test('that are refused are told of with the reason, and the answer goes on in its place', async () => {
    router.script('POST', paths.execute, openStream(numbered(1, [text('Once upon ')])))
    router.script('POST', paths.continue, refusal(422, 'invalid_request'))
    router.script('GET', paths.run, stream(numbered(1, [text('a time.'), completed('Once upon a time.')], 2)))
    await run({ words: saidAfter('upon', 'x') })
    expect(io.stdout).toBe('Once upon a time.\n')
    expect(io.stderr).toContain('not taken: x (')
  })

  test('whose arrival nobody confirmed are said to be perhaps not sent', async () => {
    router.script('POST', paths.execute, openStream(numbered(1, [text('Once upon ')])))
    router.script('POST', paths.continue, hangUp, hangUp)
    expect((await run({ words: saidAfter('upon', 'x') })).exitCode).toBe(3)
    expect(io.stderr).toContain('perhaps not sent: x (')
  })

  test('that come too late are given back, in JSON with the end of the run', async () => {
    answer(text('Done.'), completed('Done.'))
    const result = await run({ json: true, words: saidAfter('turn_end', 'and now?') })
    expect(result.unsent).toEqual(['and now?'])
    expect(JSON.parse(io.stdout.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({
      type: 'run_ended',
      unsent: ['and now?'],
    })
  })
})
