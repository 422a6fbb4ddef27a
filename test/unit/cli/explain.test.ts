import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { saveCredentials } from '../../../src/cli/credentials.ts'
import { warningsText } from '../../../src/cli/explain/view.ts'
import { makePaint } from '../../../src/cli/paint.ts'
import { runCli } from '../../../src/cli/program.ts'
import type { ExecutePolicy } from '../../../src/protocol/execution/policy.ts'
import type { Payload, TraceEvent } from '../../../src/protocol/execution/trace.ts'
import type { RunResponse } from '../../../src/protocol/execution/turn.ts'
import { configHome } from '../../support/node/config-home.ts'
import { type ScriptedIo, scriptedIo } from '../../support/node/scripted-io.ts'
import {
  json,
  refusal,
  type ScriptedRouter,
  startScriptedRouter,
} from '../../support/node/scripted-router.ts'
import { SESSION, sessionSummary } from '../../support/node/scripted-router-turns.ts'
import {
  considered,
  cost,
  keptPolicy,
  routed,
  routingInputs,
  says,
  selected,
  turnEvents,
} from '../../support/node/scripted-trace.ts'

let router: ScriptedRouter
let io: ScriptedIo

beforeEach(async () => {
  router = await startScriptedRouter()
  io = scriptedIo()
  configHome()
  vi.stubEnv('SWITCHYARD_URL', router.url)
  const token = { value: 't0', expires_at: '2099-01-01T00:00:00.000Z' }
  saveCredentials(router.url, { user_id: 'u1', api_key: 'sk-stored', token })
  router.always('GET', '/api/v1/auth/me', json({ user_id: 'u1' }))
  standing({ status: 'idle', data: { trace_id: 'trace:1' } })
})
afterEach(async () => {
  expect(router.unexpected).toEqual([])
  await router.close()
})

const explain = (...options: string[]) => runCli(['explain', SESSION, ...options], { makeIo: () => io })

/** Where the run of the session stands. */
const standing = (run: RunResponse) => router.always('GET', `/api/v1/sessions/${SESSION}/run`, json(run))

/** The trace of the session, whole in its first page. */
function tells(events: readonly TraceEvent[], policies: Record<string, ExecutePolicy> = {}) {
  const at = (offset: number) => `/api/v1/sessions/${SESSION}/traces?limit=1000&offset=${offset}`
  router.always('GET', at(0), json({ trace: { session_id: SESSION, events, policies } }))
  router.always('GET', at(events.length), json({ trace: { session_id: SESSION, events: [] } }))
}

const linesOut = () => io.stdout.split('\n').slice(0, -1)

const inferred = (
  intent: 'chat' | 'edit' | 'review',
  reason: string,
  inputs: object,
  rule?: number,
): Payload => ({
  type: 'classification',
  intent,
  source: 'inferred',
  reason,
  ...(rule === undefined ? {} : { matched_rule: rule }),
  inputs: { context: [], keywords: [], ...inputs },
})

const call = (tool_name: string, status: 'pending' | 'completed' | 'failed', fields = {}): Payload => ({
  type: 'tool_call',
  tool_name,
  status,
  ...fields,
})

describe('[EC 19] what happened and why, in words', () => {
  const three = keptPolicy({
    classification: {
      rules: [
        { intent: 'review', priority: 1, requires_any_context: ['file_changed'] },
        { intent: 'edit', priority: 2, requires_any_context: ['plan_approved'] },
      ],
    },
    routing: {
      rules: [
        { name: 'planning', intent: 'plan', model: 'ollama/planner' },
        {
          name: 'editing',
          intent: 'edit',
          effort: 'high',
          model: 'openai/gone',
          fallbacks: ['gemini/keyless', 'anthropic/coder', 'ollama/spare'],
          required_permissions: { permissions: { shell: 'deny', edit_file: 'allow' } },
        },
        { name: 'reviewing', intent: 'review', model: 'openai/reviewer' },
      ],
      default: { model: 'ollama/planner' },
    },
    tools: { permissions: { shell: 'ask', edit_file: 'allow' } },
    privacy: { remote: { mode: 'allow' } },
  })

  const planned = turnEvents({ turn: 1, intent: 'plan', model: 'ollama/planner', rule: 'planning' }, [
    {
      type: 'classification',
      intent: 'plan',
      source: 'explicit',
      reason: 'command `plan`',
      inputs: { command: 'plan', context: [], keywords: [] },
    },
    routed(
      'ollama/planner',
      'rule `planning` matched on intent `plan`',
      routingInputs(three.key, [considered('ollama/planner', 'used')]),
      { matched_rule: 'planning' },
    ),
    selected('file', true, 'required', 'src/parse.ts'),
    selected('instruction', true, 'required'),
    { type: 'message', role: 'user', provider: 'ollama', model: 'planner' },
    says('ollama/planner'),
    cost('ollama/planner', 812, 44, '0'),
    { type: 'approval', target_type: 'plan', target_id: 'p1', decision: 'approved' },
  ])
  const edited = turnEvents({ turn: 2, intent: 'edit', model: 'anthropic/coder', rule: 'editing' }, [
    inferred('edit', 'context `plan_approved` (rule 1)', { context: ['plan_approved'] }, 1),
    routed(
      'anthropic/coder',
      'rule `editing` matched on intent `edit`; an earlier choice was not usable, fallback',
      routingInputs(
        three.key,
        [
          { model: 'openai/gone', verdict: 'absent' },
          considered('gemini/keyless', 'credential', { has_credential: false }),
          considered('anthropic/coder', 'used', { capabilities: { tools: true, reasoning: true } }),
          considered('ollama/spare', 'not_reached'),
        ],
        { effort: 'high', needed_capabilities: { reasoning: true } },
      ),
      { matched_rule: 'editing', fallback_used: true },
    ),
    selected('file', true, 'required', 'src/parse.ts'),
    selected('message', true, 'relevant and fits the window'),
    selected('message', true, 'relevant and fits the window'),
    selected('file', false, 'does not fit the window', 'docs/all-of-it.md'),
    selected('message', false, '12 older messages'),
    says('anthropic/coder'),
    call('edit_file', 'pending', { arguments: '{}' }),
    call('edit_file', 'pending', { arguments: '{}' }),
    call('shell', 'failed', { arguments: '{}', error: 'the policy denies shell' }),
    cost('anthropic/coder', 2_000, 310, '0.01065'),
  ])
  const reviewed = turnEvents({ turn: 3, intent: 'review', model: 'openai/reviewer', rule: 'reviewing' }, [
    call('edit_file', 'completed'),
    inferred('review', 'context `file_changed` (rule 0)', { context: ['file_changed', 'plan_approved'] }, 0),
    routed(
      'openai/reviewer',
      'rule `reviewing` matched on intent `review`',
      routingInputs(three.key, [considered('openai/reviewer', 'used')]),
      { matched_rule: 'reviewing' },
    ),
    says('openai/reviewer'),
    cost('openai/reviewer', 0, 0),
  ])
  const session = [...planned, ...edited, ...reviewed]

  test('three models over one run', async () => {
    tells(session, { [three.key]: three.policy })
    expect(await explain()).toBe(0)
    expect(linesOut()).toEqual([
      'plan ollama/planner → edit anthropic/coder → review openai/reviewer',
      '',
      'Turn 1  2026-01-02 03:04:01  plan → ollama/planner',
      '  intent    plan: command `plan`',
      '  route     rule `planning` matched on intent `plan`',
      '            policy.routing.rules.0, effort medium',
      '  models    ollama/planner: chosen',
      '  context   src/parse.ts, instruction',
      '  asked     the plan was approved (p1)',
      '  used      ollama/planner: in 812 · out 44 tokens · $0',
      '  check     decided again from the trace: the same',
      '',
      'Turn 2  2026-01-02 03:04:02  edit → anthropic/coder',
      '  intent    edit: context `plan_approved` (rule 1)',
      '  route     rule `editing` matched on intent `edit`; an earlier choice was not usable, fallback',
      '            policy.routing.rules.1, effort high',
      '  models    openai/gone: passed over: its provider does not offer it',
      '            gemini/keyless: passed over: there is no key for its provider',
      '            anthropic/coder: chosen',
      '            ollama/spare: not tried',
      '  narrowed  shell: deny by the rule, ask in the policy',
      '  context   src/parse.ts, 2 earlier messages',
      '  left out  docs/all-of-it.md: does not fit the window',
      '            12 older messages',
      '  tools     edit_file: completed',
      '            edit_file: sent to the client',
      '            shell: failed: the policy denies shell',
      '  used      anthropic/coder: in 2000 · out 310 tokens · $0.01065',
      '  check     decided again from the trace: the same',
      '',
      'Turn 3  2026-01-02 03:04:03  review → openai/reviewer',
      '  intent    review: context `file_changed` (rule 0)',
      '  route     rule `reviewing` matched on intent `review`',
      '            policy.routing.rules.2, effort medium',
      '  models    openai/reviewer: chosen',
      '  used      openai/reviewer: in ? · out ? tokens · cost unknown',
      '  check     decided again from the trace: the same',
    ])
  })

  const careful = keptPolicy({
    routing: {
      default: { model: 'anthropic/large', fallbacks: ['ollama/small', 'ollama/home', 'openai/spare'] },
    },
    privacy: { restricted_paths: ['**/.env'], remote: { mode: 'ask' } },
  })
  const byDefault = inferred('chat', 'no rule matched, default intent `chat`', {})

  test('[U37] a turn that only local models could serve', async () => {
    const bound = routingInputs(
      careful.key,
      [
        considered('anthropic/large', 'remote'),
        considered('ollama/small', 'window', { max_context_tokens: 2_000, max_output_tokens: 500 }),
        considered('ollama/home', 'used'),
        { model: 'openai/spare', verdict: 'not_reached' },
      ],
      {
        required_tokens: 1_900,
        paths: ['app/.env'],
        local_because: [
          { cause: 'required_content', about: '`app/.env` matches `**/.env` of restricted_paths' },
          { cause: 'preference', about: 'no_network' },
        ],
      },
    )
    const reason = 'no rule matched, default route; an earlier choice was not usable, fallback'
    tells(
      turnEvents({ turn: 1, intent: 'chat', model: 'ollama/home' }, [
        byDefault,
        routed('ollama/home', `${reason}; local models only (required content)`, bound, {
          fallback_used: true,
        }),
        selected('file', true, 'required', 'app/.env'),
        says('ollama/home'),
        cost('ollama/home', 1_950, 20, '0'),
      ]),
      { [careful.key]: careful.policy },
    )
    expect(await explain()).toBe(0)
    expect(linesOut()).toEqual([
      'Turn 1  2026-01-02 03:04:01  chat → ollama/home',
      '  intent    chat: no rule matched, default intent `chat`',
      '  route     no rule matched, default route; an earlier choice was not usable, fallback; local models',
      '              only (required content)',
      '            effort medium',
      '  models    anthropic/large: passed over: it is remote',
      '            ollama/small: passed over: its window is too small (1500 tokens for a prompt, 1900',
      '              needed)',
      '            ollama/home: chosen',
      '            openai/spare: not tried',
      '  locality  only local models: content that cannot be left out: `app/.env` matches `**/.env` of',
      '              restricted_paths',
      '            only local models: the client asked for it (no_network)',
      '  context   app/.env',
      '  used      ollama/home: in 1950 · out 20 tokens · $0',
      '  check     decided again from the trace: the same',
    ])
  })

  test('[EC 8.6] a model that did not answer, and the one after it', async () => {
    const first = [considered('anthropic/large', 'used'), considered('ollama/small', 'not_reached')]
    const then = [considered('anthropic/large', 'failed'), considered('ollama/small', 'used')]
    const reason = 'no rule matched, default route'
    tells(
      turnEvents({ turn: 1, intent: 'chat', model: 'ollama/small' }, [
        byDefault,
        routed('anthropic/large', reason, routingInputs(careful.key, first)),
        selected(
          'git_diff',
          false,
          'only local models may see it: `.env` matches `**/.env` of restricted_paths',
        ),
        cost('anthropic/large', 900, 0, '0.0027'),
        routed(
          'ollama/small',
          `${reason}; an earlier choice was not usable, fallback`,
          routingInputs(careful.key, then),
          {
            fallback_used: true,
          },
        ),
        says('ollama/small'),
        cost('ollama/small', 900, 31, '0'),
      ]),
      { [careful.key]: careful.policy },
    )
    expect(await explain()).toBe(0)
    expect(linesOut()).toEqual([
      'Turn 1  2026-01-02 03:04:01  chat → ollama/small',
      '  intent    chat: no rule matched, default intent `chat`',
      '  route     no rule matched, default route',
      '            effort medium',
      '  models    anthropic/large: chosen',
      '            ollama/small: not tried',
      '  left out  git diff: only local models may see it: `.env` matches `**/.env` of restricted_paths',
      '  fallback  no rule matched, default route; an earlier choice was not usable, fallback',
      '            effort medium',
      '  models    anthropic/large: called, and did not answer',
      '            ollama/small: chosen',
      '  used      anthropic/large: in 900 · out 0 tokens · $0.0027',
      '            ollama/small: in 900 · out 31 tokens · $0',
      '  check     decided again from the trace: the same',
    ])
  })

  test('[EC 13] a disclosure that the user declined: the same turn goes on with a local model', async () => {
    const reason = 'no rule matched, default route'
    const asked = turnEvents({ turn: 1, intent: 'chat', model: 'anthropic/large' }, [
      byDefault,
      routed('anthropic/large', reason, routingInputs(careful.key, [considered('anthropic/large', 'used')])),
      selected('file', true, 'relevant and fits the window', 'src/a.ts'),
    ])
    // What follows the answer is served under an id of its own.
    const declined = turnEvents({ turn: 2, intent: 'chat', model: 'ollama/small' }, [
      {
        type: 'approval',
        target_type: 'gate',
        target_id: 'g1',
        decision: 'rejected',
        reason: 'not this one',
      },
      routed(
        'ollama/small',
        `${reason}; local models only (remote declined)`,
        routingInputs(
          careful.key,
          [considered('anthropic/large', 'remote'), considered('ollama/small', 'used')],
          { local_because: [{ cause: 'remote_declined' }] },
        ),
        { fallback_used: true },
      ),
      selected('file', true, 'relevant and fits the window', 'src/a.ts'),
      says('ollama/small'),
      cost('ollama/small', 900, 31, '0'),
    ])
    tells([...asked, ...declined], { [careful.key]: careful.policy })
    expect(await explain()).toBe(0)
    expect(linesOut()).toEqual([
      'Turn 1  2026-01-02 03:04:01  chat → ollama/small',
      '  intent    chat: no rule matched, default intent `chat`',
      '  route     no rule matched, default route',
      '            effort medium',
      '  models    anthropic/large: chosen',
      '  context   src/a.ts',
      '  asked     the question before the call was rejected: not this one (g1)',
      '  route     no rule matched, default route; local models only (remote declined)',
      '            effort medium',
      '  models    anthropic/large: passed over: it is remote',
      '            ollama/small: chosen',
      '  locality  only local models: the user declined to show it to a remote model',
      '  context   src/a.ts',
      '  used      ollama/small: in 900 · out 31 tokens · $0',
      '  check     decided again from the trace: the same',
    ])
  })

  test('[EC 19] a trace of an older release tells no inputs: it is shown, and not taken for wrong', async () => {
    const events = turnEvents({ turn: 1, intent: 'chat', model: 'ollama/small' }, [
      {
        type: 'classification',
        intent: 'chat',
        source: 'inferred',
        reason: 'no rule matched, default intent `chat`',
      },
      routed('ollama/small', 'no rule matched, default route', undefined),
      selected('memory', true, 'relevant and fits the window'),
      says('ollama/small'),
      {
        type: 'classification',
        intent: 'chat',
        source: 'inferred',
        reason: 'no rule matched, default intent `chat`',
      },
      routed('ollama/small', 'no rule matched, default route', undefined),
    ]).map(({ run_id: _run, turn_id: _turn, ...event }) => event)
    tells(events)
    expect(await explain()).toBe(0)
    expect(linesOut()).toEqual([
      'chat ollama/small (2 turns)',
      '',
      'Turn 1  2026-01-02 03:04:01  chat → ollama/small',
      '  intent    chat: no rule matched, default intent `chat`',
      '  route     no rule matched, default route',
      '  models    ollama/small',
      '  context   remembered fact',
      '  check     cannot be decided again: the trace does not tell what it was decided from',
      '',
      'Turn 2  2026-01-02 03:04:01  chat → ollama/small',
      '  intent    chat: no rule matched, default intent `chat`',
      '  route     no rule matched, default route',
      '  models    ollama/small',
      '  answer    none is told of',
      '  check     cannot be decided again: the trace does not tell what it was decided from',
    ])
  })

  test('[EC 17, U35] of a sealed trace what is clear, and which key opens the rest', async () => {
    const sealed = { version: 1, algorithm: 'a', key_id: 'k', nonce: 'n', ciphertext: 'c' }
    const session = { ...sessionSummary, encrypted: true, key_id: 'k' }
    router.always('GET', '/api/v1/sessions', json({ sessions: [session] }))
    tells(reviewed.map((event) => ({ ...event, payload: { encrypted: sealed } })))
    expect(await explain()).toBe(0)
    expect(linesOut()).toEqual([
      'review openai/reviewer (2 turns)',
      '',
      'Turn 1  2026-01-02 03:04:03  review → openai/reviewer',
      '  encrypted 1 tool call',
      '            locked: key k is needed',
      '  answer    none is told of',
      '  check     cannot be decided again: it is encrypted',
      '',
      'Turn 2  2026-01-02 03:04:03  review → openai/reviewer',
      '  intent    review (encrypted)',
      '  route     openai/reviewer, rule `reviewing` (encrypted)',
      '  encrypted 1 message, 1 cost',
      '            locked: key k is needed',
      '  check     cannot be decided again: it is encrypted',
    ])
  })

  test('[EC 19] a trace that was tampered with is found out, and ends with 1', async () => {
    const remote = turnEvents({ turn: 1, intent: 'chat', model: 'anthropic/large' }, [
      inferred('edit', 'keyword `fix` (rule 0)', { keywords: [{ keyword: 'fix', match: 'exact' }] }, 0),
      routed(
        'anthropic/large',
        'no rule matched, default route',
        routingInputs(
          careful.key,
          [considered('anthropic/large', 'used'), considered('ollama/small', 'not_reached')],
          { local_because: [{ cause: 'rule', about: 'x' }] },
        ),
      ),
    ])
    tells(remote, { [careful.key]: { ...careful.policy, version: 2 } })
    expect(await explain()).toBe(1)
    expect(linesOut()).toEqual([
      'Turn 1  2026-01-02 03:04:01  chat → anthropic/large',
      '  intent    edit: keyword `fix` (rule 0)',
      '  route     no rule matched, default route',
      '            effort medium',
      '  models    anthropic/large: chosen',
      '            ollama/small: not tried',
      '  locality  only local models: the rule `x` is local_only',
      '  answer    none is told of',
      '  check     decided again from the trace: NOT the same',
      '            the policy in the trace is not the one that the route names',
      '            intent: the trace says edit by rule 0, it is chat by default',
      '            route: the trace says anthropic/large by the default route, it is ollama/small by the',
      '              default route, as a fallback',
    ])
  })
})

describe('how much is told', () => {
  const policy = keptPolicy({
    routing: { default: { model: 'ollama/small' }, rules: [] },
    privacy: { restricted_paths: ['[oops'] },
  })
  const kept = { [policy.key]: policy.policy }
  const turn = (number: number, run = 1, model = 'ollama/small') =>
    turnEvents({ turn: number, run, intent: 'chat', model }, [
      inferred('chat', 'no rule matched, default intent `chat`', {}),
      routed(model, 'no rule matched, default route', routingInputs(policy.key, [considered(model, 'used')])),
      says(model),
    ])
  const heads = () => linesOut().filter((line) => line.startsWith('Turn '))
  const windowFrom = (offset: number) => `/api/v1/sessions/${SESSION}/traces?limit=1000&offset=${offset}`

  test('every turn, those of several runs with their run, under a line of the models in order', async () => {
    tells([...turn(1), ...turn(2), ...turn(3, 2)], kept)
    expect(await explain()).toBe(0)
    expect(linesOut()[0]).toBe('chat ollama/small (3 turns)')
    expect(heads()).toEqual([
      'Turn 1  run 1  2026-01-02 03:04:01  chat → ollama/small',
      'Turn 2  run 1  2026-01-02 03:04:02  chat → ollama/small',
      'Turn 3  run 2  2026-01-02 03:04:03  chat → ollama/small',
    ])
  })

  test('one turn with --turn or --last, without a line of models', async () => {
    tells([...turn(1), ...turn(2), ...turn(3)], kept)
    expect(await explain('--turn', '2')).toBe(0)
    expect(linesOut()[0]).toBe('Turn 2  2026-01-02 03:04:02  chat → ollama/small')
    expect(heads()).toHaveLength(1)
    io.stdout = ''
    expect(await explain('--last')).toBe(0)
    expect(heads()).toEqual(['Turn 3  2026-01-02 03:04:03  chat → ollama/small'])
  })

  test('what a turn asks for again under its own id is told within it', async () => {
    const [said, sent, ...rest] = turn(1)
    if (said === undefined || sent === undefined) throw new Error('a turn has events')
    tells([said, sent, ...rest, said, sent, ...rest], kept)
    expect(await explain()).toBe(0)
    expect(heads()).toHaveLength(1)
    expect(linesOut().filter((line) => line.startsWith('  models '))).toHaveLength(2)
  })

  test('only what is shown is checked', async () => {
    tells([...turn(1), ...turn(2, 1, 'ollama/other')], kept)
    expect(await explain('--turn', '1')).toBe(0)
    expect(await explain('--last')).toBe(1)
  })

  test('[EC 24.2] at the end what is amiss in the policy, once', async () => {
    tells([...turn(1), ...turn(2)], kept)
    await explain()
    const lines = linesOut()
    const warnings = lines.slice(lines.indexOf('Warnings about the policy'))
    expect(warnings[1]).toMatch(/^ {2}policy\.privacy\.restricted_paths\.0: .*\[oops/)
    expect(lines.filter((line) => line.includes('restricted_paths.0'))).toHaveLength(1)
  })

  test('[EC 24.2] what to write instead is said once', () => {
    const warning = { code: 'pattern_never_matches', path: 'p', message: 'odd; write `src/**`' }
    expect(
      warningsText([[{ ...warning, suggestion: 'src/**' }]], makePaint(false)).split('write'),
    ).toHaveLength(2)
  })

  test('--json: a turn on each line, its events as the router tells them, and what came of the check', async () => {
    const events = [...turn(1), ...turn(2, 1, 'ollama/other')]
    tells(events, kept)
    expect(await explain('--json')).toBe(1)
    expect(linesOut().map((line) => JSON.parse(line))).toEqual([
      {
        turn: 1,
        run: 1,
        check: 'same',
        decided_again: [{ classification: { k: 'same' }, routing: { k: 'same' } }],
        events: events.slice(0, 3),
      },
      {
        turn: 2,
        run: 1,
        check: 'differs',
        decided_again: [
          {
            classification: { k: 'same' },
            routing: {
              k: 'differs',
              was: { model: 'ollama/other', matched_rule: null, fallback_used: false, override_used: false },
              is: { needs: 'ollama/small', matched_rule: null },
            },
          },
        ],
        events: events.slice(3),
      },
    ])
  })

  test('[U44] a trace of several pages is read to the empty one, with the policies of each', async () => {
    const page = (events: TraceEvent[], policies = {}) =>
      json({ trace: { session_id: SESSION, events, policies } })
    const [said, sent, ...rest] = turn(1)
    if (said === undefined || sent === undefined) throw new Error('a turn has events')
    router.script('GET', windowFrom(0), page([said]))
    router.script('GET', windowFrom(1), page([sent, ...rest], kept))
    router.script('GET', windowFrom(3), page([]))
    expect(await explain()).toBe(0)
    expect(io.stdout).toContain('decided again from the trace: the same')
  })

  test('a route whose policy is not told, or is none, cannot be decided again', async () => {
    tells(turn(1))
    expect(await explain()).toBe(0)
    const told = '  check     cannot be decided again: the trace does not hold its policy'
    expect(linesOut().at(-1)).toBe(told)
    io.stdout = ''
    const none = json({ trace: { session_id: SESSION, events: turn(1), policies: { [policy.key]: {} } } })
    router.always('GET', windowFrom(0), none)
    expect(await explain()).toBe(0)
    expect(linesOut().at(-1)).toBe(told)
  })

  test('a session without turns says so, and as JSON says nothing', async () => {
    tells([])
    expect(await explain()).toBe(0)
    expect([io.stdout, io.stderr]).toEqual(['', 'no turns\n'])
    io.stderr = ''
    expect(await explain('--json')).toBe(0)
    expect([io.stdout, io.stderr]).toEqual(['', ''])
  })

  test('a turn that is not there is wrong usage', async () => {
    tells(turn(1))
    expect(await explain('--turn', '2')).toBe(2)
    expect(io.stderr).toBe('error: there is no turn 2: the trace holds 1\n')
  })

  test.each([[['--turn', '0']], [['--turn', 'x']], [['--turn', '1.5']], [['--turn', '1', '--last']]])(
    '%j is wrong usage',
    async (options) => {
      expect(await explain(...options)).toBe(2)
      expect(router.requests).toEqual([])
    },
  )

  test('an unknown session is exit 1; where a later page fails, nothing is told of a trace that is not whole', async () => {
    router.script('GET', windowFrom(0), refusal(404, 'session_not_found'))
    expect(await explain()).toBe(1)
    expect(io.stderr).toContain('error: scripted session_not_found (session_not_found)')
    io.stderr = ''
    router.script('GET', windowFrom(0), json({ trace: { session_id: SESSION, events: turn(1) } }))
    router.script('GET', windowFrom(3), refusal(500, 'internal_error'))
    expect(await explain()).toBe(1)
    expect([io.stdout, io.stderr]).toEqual([
      '',
      'error: the trace is not whole: scripted internal_error (internal_error)\n',
    ])
  })

  test('--help has examples', async () => {
    expect(await runCli(['explain', '--help'], { makeIo: () => io })).toBe(0)
    expect(io.stdout).toContain('Examples:\n  switchyard explain 0197')
  })
})

describe('on a terminal', () => {
  const hostile = `\u001b[2J\n\u202e\`${'x'.repeat(300)}`
  const model = `ollama/${hostile}`
  const policy = keptPolicy({
    routing: { rules: [{ name: hostile, model }] },
    privacy: { restricted_paths: [`[${hostile}`] },
  })
  const events = turnEvents({ turn: 1, intent: 'chat', model, rule: hostile }, [
    inferred('chat', hostile, {}),
    routed(model, hostile, routingInputs(policy.key, [considered(model, 'used')]), { matched_rule: hostile }),
    selected(hostile, true, hostile),
    selected('file', false, hostile, hostile),
    call(hostile, 'failed', { error: hostile }),
    { type: 'approval', target_type: hostile, target_id: hostile, decision: 'rejected', reason: hostile },
    cost(model, 1, 1),
  ])
  const show = async (outIsTty: boolean) => {
    tells(events, { [policy.key]: policy.policy })
    io = Object.assign(scriptedIo({ outIsTty }), { paint: makePaint(true) })
    await explain()
    return io.stdout
  }

  test('nothing in a trace moves the cursor, and no line is wider than 100 columns', async () => {
    const shown = await show(false)
    expect(shown.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    expect(shown).toContain('\\u{1b}[2J')
    expect(linesOut().filter((line) => Array.from(line).length > 100)).toEqual([])
  })

  test('colours are for a terminal alone', async () => {
    expect(await show(true)).toContain('\u001b[32mdecided again from the trace: the same\u001b[39m')
    expect(await show(false)).not.toContain('\u001b')
  })
})

describe('[U08] where the run stands is said at the end', () => {
  const approval = {
    approval_id: 'a1',
    kind: 'remote_disclosure' as const,
    detail: { provider: 'anthropic', model: 'big', paths: [] },
  }
  test.each<[string, RunResponse]>([
    [
      'it failed with no_route: this turn is bound to local models',
      {
        status: 'error',
        data: { error: { code: 'no_route', message: 'this turn is bound to local models' } },
      },
    ],
    [
      'it waits for a decision on a disclosure (anthropic/big)',
      { status: 'awaiting_approval', data: { approval, trace_id: 'trace:1' } },
    ],
    [
      'a turn is being served',
      { status: 'running', data: { trace_id: 'trace:1' }, allowed_continuations: ['break'] },
    ],
  ])('%s', async (line, run) => {
    tells([])
    standing(run)
    expect(await explain()).toBe(0)
    expect(io.stdout).toBe(`\nNow\n  run       ${line}\n`)
  })

  test('and of a run that is over nothing', async () => {
    tells([])
    expect([await explain(), io.stdout, io.stderr]).toEqual([0, '', 'no turns\n'])
  })
})

describe('[EC 19] a turn without an answer says what came instead', () => {
  const failure = { code: 'no_route', message: 'this turn is bound to local models' }

  test('one that no model could serve is refused, and refused again', async () => {
    const policy = keptPolicy({ routing: { default: { model: 'anthropic/big' } } })
    const inputs = routingInputs(policy.key, [considered('anthropic/big', 'remote')], {
      local_because: [{ cause: 'required_content', about: '`.env` matches `.env` of restricted_paths' }],
    })
    const reason = 'no rule matched, default route'
    tells(
      turnEvents({ turn: 1, intent: 'chat', model: 'anthropic/big' }, [
        inferred('chat', 'no rule matched', {}),
        routed('anthropic/big', reason, inputs, { failure }),
      ]),
      { [policy.key]: policy.policy },
    )
    expect(await explain()).toBe(0)
    expect(io.stdout).toContain('chat → nobody (no_route)\n')
    expect(io.stdout).toContain('  refused   no_route: this turn is bound to local models\n')
    expect(io.stdout).toContain('decided again from the trace: the same')
  })

  test('one whose model failed for good tells of it, and checks the decision before that alone', async () => {
    const policy = keptPolicy({
      routing: { default: { model: 'anthropic/big', fallbacks: ['ollama/home'] } },
    })
    const reason = 'no rule matched, default route'
    const bad = { code: 'invalid_provider_credentials', message: 'bad key' }
    const route = (verdict: 'used' | 'failed') =>
      routed(
        'anthropic/big',
        reason,
        routingInputs(policy.key, [
          considered('anthropic/big', verdict),
          considered('ollama/home', 'not_reached'),
        ]),
        verdict === 'failed' ? { failure: bad } : {},
      )
    tells(
      turnEvents({ turn: 1, intent: 'chat', model: 'anthropic/big' }, [
        inferred('chat', 'no rule matched', {}),
        route('used'),
        route('failed'),
      ]),
      { [policy.key]: policy.policy },
    )
    expect(await explain()).toBe(0)
    expect(io.stdout).toContain('  failed    invalid_provider_credentials: bad key\n')
    expect(io.stdout).toContain('decided again from the trace: the same')
  })
})
