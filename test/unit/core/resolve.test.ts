import { describe, expect, test } from 'vitest'
import { isPrivate, planTurn, prepareCall } from '../../../src/core/resolve.ts'
import { chooseModel } from '../../../src/core/select.ts'
import {
  EARLIER_RUN,
  LOCAL,
  makeCall,
  makeCatalogue,
  makeFile,
  makeModel,
  makeRequest,
  makeView,
  modelSays,
  must,
  REMOTE,
  type RequestParts,
  userSays,
} from '../../support/core/builders.ts'

const plan = (parts: RequestParts = {}, fields: Parameters<typeof makeView>[1] = {}) =>
  must(planTurn(makeView(makeRequest(parts), fields)))

const reads = (path: string, fields: object = {}) =>
  modelSays('', { calls: [makeCall({ name: 'read_file', arguments: { path }, ...fields })] })

const secrets = { restricted_paths: ['secrets/**'], remote: { mode: 'allow' as const } }

describe('[EC 9] what binds a turn to local models', () => {
  const because = (parts: RequestParts, fields: Parameters<typeof makeView>[1] = {}) =>
    plan({ privacy: secrets, ...parts }, fields).demands.localBecause

  test.each<[string, RequestParts, string | null]>([
    ['nothing', {}, null],
    [
      'a constrained file that is required',
      { attachments: { files: [makeFile('secrets/a', 's', true)] } },
      'required_content',
    ],
    [
      'a constrained file that may be left out',
      { attachments: { files: [makeFile('secrets/a', 's')] } },
      null,
    ],
    [
      'a constrained file that the user named',
      {
        workspace: { referenced_paths: ['secrets/a'] },
        attachments: { files: [makeFile('/code/secrets/a', 's')] },
      },
      'required_content',
    ],
    [
      'a constrained path that the user named without attaching it',
      { workspace: { referenced_paths: ['secrets/a'] } },
      'required_content',
    ],
    ['a constrained active file', { workspace: { active_file: 'secrets/a' } }, 'required_content'],
    [
      'a constrained file that the winning rule names',
      {
        rules: [{ name: 'r', model: REMOTE, paths: ['secrets/**'] }],
        attachments: { files: [makeFile('secrets/a', 's')] },
      },
      'required_content',
    ],
    [
      'a constrained path that drove the route, though nothing of it is required by itself',
      {
        rules: [{ name: 'r', model: REMOTE, paths: ['secrets/**'] }],
        workspace: { git_diff: 'diff --git a/secrets/a b/secrets/a\n+s' },
      },
      'required_content',
    ],
    [
      'a constrained path in a diff that drove nothing',
      { workspace: { git_diff: 'diff --git a/secrets/a b/secrets/a\n+s' } },
      null,
    ],
    [
      'a constrained instruction',
      { attachments: { instructions: [{ source: 'secrets/AGENTS.md', content: 's' }] } },
      'required_content',
    ],
    ['the preference for local models', { preferences: { local_only: true } }, 'preference'],
    ['the preference for no network', { preferences: { no_network: true } }, 'preference'],
    ['a rule', { rules: [{ name: 'r', model: LOCAL, local_only: true }] }, 'rule'],
    [
      'a rule that does not win',
      { rules: [{ name: 'r', model: LOCAL, local_only: true, intent: 'plan' }] },
      null,
    ],
    ['a policy that denies remote models', { privacy: { remote: { mode: 'deny' } } }, 'remote_denied'],
  ])('%s: %#', (_, parts, expected) => {
    expect(because(parts)).toBe(expected)
  })

  test('that the user declined, or that a call of this run touched a constrained path', () => {
    expect(because({}, { remoteDeclined: true })).toBe('remote_declined')
    const said = [userSays('go'), reads('secrets/a'), reads('b'), reads('c')]
    expect(because({}, { said })).toBe('required_content')
    expect(
      because({}, { said: [userSays('go'), reads('a', { arguments: { paths: ['x', 'secrets/a'] } })] }),
    ).toBe('required_content')
  })

  test('[U37] that the newest round of this run was answered over content for local models', () => {
    const said = [userSays('go'), { ...reads('b'), localOnly: true as const }]
    expect(because({}, { said })).toBe('required_content')
    expect(because({}, { said: [...said, userSays('and now?')] })).toBe(null)
  })

  test('[EC 13] that the user declined, before the mark that the decline left on the answers of the run', () => {
    const said = [userSays('go'), { ...reads('b'), localOnly: true as const }]
    expect(because({}, { said, remoteDeclined: true })).toBe('remote_declined')
    expect(because({ preferences: { local_only: true } }, { said })).toBe('preference')
    expect(because({ rules: [{ name: 'r', model: LOCAL, local_only: true }] }, { said })).toBe('rule')
  })

  test('a call of an earlier run does not: what it read may be left out', () => {
    const said = [
      userSays('go', { runId: EARLIER_RUN }),
      { ...reads('secrets/a'), runId: EARLIER_RUN },
      userSays('now'),
    ]
    expect(because({}, { said })).toBe(null)
  })

  test('content before preference, preference before rule, rule before mode', () => {
    const all: RequestParts = {
      privacy: { restricted_paths: ['secrets/**'], remote: { mode: 'deny' } },
      rules: [{ name: 'r', model: LOCAL, local_only: true }],
      preferences: { local_only: true },
      workspace: { referenced_paths: ['secrets/a'] },
    }
    expect(because(all)).toBe('required_content')
    expect(because({ ...all, workspace: {} })).toBe('preference')
    expect(because({ ...all, workspace: {}, preferences: {} })).toBe('rule')
    expect(because({ ...all, workspace: {}, preferences: {}, rules: [] })).toBe('remote_denied')
  })

  test('[U37] a bound turn that is given a remote model stops', () => {
    const bound = plan({ preferences: { local_only: true } })
    expect(() => prepareCall(bound, makeModel(REMOTE))).toThrow('bound to local models')
    expect(prepareCall(bound, makeModel(LOCAL)).request.model.local).toBe(true)
  })
})

describe('[U37] what a model answers is for local models only when what it saw is', () => {
  const earlier = [userSays('go', { runId: EARLIER_RUN }), modelSays('It says 42.', { runId: EARLIER_RUN })]
  test.each<[string, RequestParts, Parameters<typeof makeView>[1], boolean]>([
    ['nothing constrained', { attachments: { files: [makeFile('a', 's')] } }, {}, false],
    ['a file that it had to see', { attachments: { files: [makeFile('secrets/a', 's', true)] } }, {}, true],
    ['a file that could be left out', { attachments: { files: [makeFile('secrets/a', 's')] } }, {}, true],
    ['a diff', { workspace: { git_diff: 'diff --git a/secrets/a b/secrets/a\n+s' } }, {}, true],
    [
      'an earlier answer of that kind',
      {},
      { said: [...earlier.map((message) => ({ ...message, localOnly: true as const })), userSays('now')] },
      true,
    ],
    ['an earlier answer of no kind', {}, { said: [...earlier, userSays('now')] }, false],
  ])('%s', (_, parts, fields, expected) => {
    const turn = plan({ privacy: secrets, ...parts }, fields)
    expect(isPrivate(turn, prepareCall(turn, makeModel(LOCAL, { local: true })))).toBe(expected)
  })

  test('a remote model sees none of it', () => {
    const turn = plan({ privacy: secrets, attachments: { files: [makeFile('secrets/a', 's')] } })
    expect(isPrivate(turn, prepareCall(turn, makeModel(REMOTE, { local: false })))).toBe(false)
  })
})

describe('[EC 8.5] what has to fit', () => {
  test('prompt, required context, tools and the newest round count; what may be dropped does not', () => {
    const base = plan({ text: 'x'.repeat(400) }).demands.requiredTokens
    const more = (parts: RequestParts, fields: Parameters<typeof makeView>[1] = {}) =>
      plan({ text: 'x'.repeat(400), ...parts }, fields).demands.requiredTokens - base
    expect(more({ text: 'x'.repeat(800) })).toBe(400)
    expect(more({ attachments: { files: [makeFile('a', 'y'.repeat(400), true)] } })).toBe(400)
    expect(more({ attachments: { files: [makeFile('a', 'y'.repeat(400))] } })).toBe(0)
    expect(more({ attachments: { instructions: [{ source: 'A', content: 'y'.repeat(400) }] } })).toBe(400)
    expect(more({ permissions: { shell: 'deny' } })).toBeLessThan(0)
    const prompt = userSays('x'.repeat(400))
    const big = modelSays('', { calls: [makeCall({ name: 'cat' }, 'z'.repeat(4000))] })
    const small = modelSays('', { calls: [makeCall({ name: 'cat' }, '')] })
    expect(more({}, { said: [prompt, big] })).toBeGreaterThan(1000)
    expect(more({}, { said: [prompt, big, small] })).toBeLessThan(20)
  })

  test('[EC 10.3] context that does not fit the first choice goes to a fallback with more room', () => {
    const turn = plan({
      defaultRoute: { model: LOCAL, fallbacks: [REMOTE] },
      attachments: { files: [makeFile('a', 'y'.repeat(40_000), true)] },
    })
    const catalogue = makeCatalogue([makeModel(LOCAL, { max_context_tokens: 4000 }), makeModel(REMOTE)])
    expect(chooseModel(turn.demands, catalogue)).toMatchObject({ reference: REMOTE, fallbackUsed: true })
  })

  test('what is left out to make room is in the report', () => {
    const turn = plan({
      attachments: { files: [makeFile('a', 'y'.repeat(400), true), makeFile('b', 'z'.repeat(40_000))] },
    })
    const { outcome, request } = prepareCall(turn, makeModel(LOCAL, { max_context_tokens: 4000 }))
    expect(outcome).toEqual({
      included: ['a'],
      excluded: ['b'],
      exclusions: [{ item: 'b', reason: 'does not fit the window' }],
    })
    expect(JSON.stringify(request.messages)).not.toContain('zzz')
  })
})

test('[D08] a declared tool whose name is taken fails the turn', () => {
  const view = makeView(makeRequest({ attachments: { tools: [{ name: 'memory', parameters: {} }] } }))
  expect(planTurn(view)).toMatchObject({ ok: false, error: { code: 'invalid_request' } })
})
