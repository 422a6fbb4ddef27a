import { describe, expect, test } from 'vitest'
import { planTurn, prepareCall } from '../../../src/core/resolve.ts'
import { chooseModel, type Lookup } from '../../../src/core/select.ts'
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

type ViewFields = Parameters<typeof makeView>[1]
type Rule = NonNullable<RequestParts['rules']>[number]

const planned = (parts: RequestParts, fields: ViewFields = {}) =>
  planTurn(makeView(makeRequest(parts), fields))

/** A prompt that is classified as `edit`, about one file. */
const EDIT: RequestParts = {
  classification: { default_intent: 'edit' },
  workspace: { referenced_paths: ['src/a.ts'] },
}

const rule = (name: string, fields: Partial<Rule> = {}): Rule => ({ name, model: LOCAL, ...fields })

/** The name of the rule that wins; null for the default route. */
const winner = (parts: RequestParts, fields: ViewFields = {}): string | null =>
  must(planned(parts, fields)).route.rule?.name ?? null

const reads = (file: string, fields: object = {}) =>
  modelSays('', { calls: [makeCall({ name: 'read_file', arguments: { path: file } })], ...fields })

describe('[EC 8.1] candidate paths', () => {
  const hits = (paths: string[], parts: RequestParts, fields: ViewFields = {}) =>
    winner({ ...parts, rules: [rule('hit', { paths })] }, fields) === 'hit'
  const diff = (...names: string[]) => ({
    git_diff: names.map((name) => `diff --git a/${name} b/${name}`).join('\n'),
  })

  test.each<[says: string, glob: string, parts: RequestParts, fields: ViewFields, hits: boolean]>([
    ['a referenced path', 'src/x.ts', { workspace: { referenced_paths: ['src/x.ts'] } }, {}, true],
    ['any of several', 'src/x.ts', { workspace: { referenced_paths: ['a', 'src/x.ts'] } }, {}, true],
    ['the active file', 'src/x.ts', { workspace: { active_file: 'src/x.ts' } }, {}, true],
    ['a path of the diff', 'src/x.ts', { workspace: diff('a', 'src/x.ts') }, {}, true],
    [
      'the new name of a rename in the diff',
      'src/x.ts',
      { workspace: { git_diff: 'diff --git a/old.ts b/src/x.ts' } },
      {},
      true,
    ],
    ['not its old name', 'old.ts', { workspace: { git_diff: 'diff --git a/old.ts b/src/x.ts' } }, {}, false],
    [
      'not the content of a diff',
      'src/x.ts',
      { workspace: { git_diff: 'diff --git a/a b/a\n+src/x.ts' } },
      {},
      false,
    ],
    [
      'a quoted path of the diff',
      'src/é.ts',
      { workspace: { git_diff: 'diff --git "a/src/\\303\\251.ts" "b/src/\\303\\251.ts"' } },
      {},
      true,
    ],
    ['an attached file', 'src/x.ts', { attachments: { files: [makeFile('src/x.ts', '')] } }, {}, true],
    [
      'not a source of instructions',
      'AGENTS.md',
      { attachments: { instructions: [{ source: 'AGENTS.md', content: '' }] } },
      {},
      false,
    ],
    ['not a path in the prompt', 'src/x.ts', { text: 'look at src/x.ts' }, {}, false],
    [
      '[D11] a path that a call of this run named',
      'src/x.ts',
      {},
      { said: [userSays('go'), reads('src/x.ts')] },
      true,
    ],
    [
      '[D11] not one of an earlier run',
      'src/x.ts',
      {},
      { said: [reads('src/x.ts', { runId: EARLIER_RUN }), userSays('go')] },
      false,
    ],
    [
      '[D11] not a path in what a tool returned',
      'src/x.ts',
      {},
      {
        said: [
          userSays('go'),
          modelSays('', { calls: [makeCall({ name: 'shell', arguments: { command: 'ls' } }, 'src/x.ts')] }),
        ],
      },
      false,
    ],
    ['`./` in front means nothing', 'src/x.ts', { workspace: { active_file: './src/x.ts' } }, {}, true],
    ['nor do backslashes', 'src/x.ts', { workspace: { active_file: 'src\\x.ts' } }, {}, true],
    ['nor quotes', 'src/x.ts', { workspace: { active_file: '"src/x.ts"' } }, {}, true],
    ['nor a detour', 'src/x.ts', { workspace: { active_file: 'lib/../src/./x.ts' } }, {}, true],
    [
      '[EC 26.9] an absolute path under the root is the relative one',
      'src/x.ts',
      { workspace: { active_file: '/code/src/x.ts' } },
      {},
      true,
    ],
    [
      '[EC 26.9] one outside of it is none',
      'src/x.ts',
      { workspace: { active_file: '/other/src/x.ts' } },
      {},
      false,
    ],
    [
      'a path that leads out never looks as if it did not',
      'src/**',
      { workspace: { active_file: 'src/../../src/x.ts' } },
      {},
      false,
    ],
    [
      'the root is the one of the request',
      'src/x.ts',
      { workspace: { root: 'C:\\proj', active_file: 'c:\\proj\\src\\x.ts' } },
      {},
      true,
    ],
    [
      'letters in either form of Unicode',
      'caf\u00e9',
      { workspace: { active_file: 'cafe\u0301' } },
      {},
      true,
    ],
    ['without any path a rule with paths never matches', '**', {}, {}, false],
  ])('%s', (_, glob, parts, fields, expected) => {
    expect(hits([glob], parts, fields)).toBe(expected)
  })

  test('the reason names the first: referenced, then active, then the diff, then attached, then called', () => {
    const all = { said: [userSays('go'), reads('e')] }
    const parts: RequestParts = {
      workspace: { referenced_paths: ['a'], active_file: 'b', ...diff('c') },
      attachments: { files: [makeFile('d', '')] },
    }
    const because = (glob: string) =>
      must(planned({ ...parts, rules: [rule('hit', { paths: [glob] })] }, all)).route.reason
    expect(['*', '{b,c,d,e}', '{c,d,e}', '{d,e}', 'e'].map(because)).toEqual(
      ['a', 'b', 'c', 'd', 'e'].map((name) => `rule \`hit\` matched on path \`${name}\``),
    )
  })
})

describe('[EC 8.2] globs in a routing rule', () => {
  test.each<[says: string, paths: string[], intent: 'edit' | undefined, wins: boolean]>([
    ['any of several will do', ['docs/**', '*.ts'], undefined, true],
    ['`*` crosses folders', ['*.ts'], undefined, true],
    ['a name without wildcards is that path only', ['a.ts'], undefined, false],
    ['case counts', ['SRC/*'], undefined, false],
    ['an invalid one voids the path condition, valid ones beside it too', ['src/**', '[a'], undefined, false],
    ['and so the rule, although its intent matches', ['src/**', '[a'], 'edit', false],
  ])('%s', (_, paths, intent, wins) => {
    const made = rule('it', { paths, ...(intent === undefined ? {} : { intent }) })
    expect(winner({ ...EDIT, rules: [made] })).toBe(wins ? 'it' : null)
  })

  test('an invalid glob stands in no other rule’s way', () => {
    expect(winner({ ...EDIT, rules: [rule('broken', { paths: ['[a'] }), rule('next')] })).toBe('next')
  })
})

const none = rule('none')
const intent = rule('intent', { intent: 'edit' })
const path = rule('path', { paths: ['src/**'] })
const both = rule('both', { intent: 'edit', paths: ['src/**'] })

describe('[EC 8.3] which rule matches, and which of several wins', () => {
  test.each<[says: string, rules: Rule[], wins: string | null]>([
    ['a rule without conditions matches', [none], 'none'],
    ['one with its intent', [intent], 'intent'],
    ['not one with another', [rule('x', { intent: 'chat' })], null],
    ['one with its path', [path], 'path'],
    ['not one with another path', [rule('x', { paths: ['docs/**'] })], null],
    ['one with both', [both], 'both'],
    ['not intent without path', [rule('x', { intent: 'edit', paths: ['docs/**'] })], null],
    ['not path without intent', [rule('x', { intent: 'chat', paths: ['src/**'] })], null],
    ['path and intent before path, intent and none', [none, intent, path, both], 'both'],
    ['path before intent and none', [none, intent, path], 'path'],
    ['intent before none', [none, intent], 'intent'],
    ['wherever they stand', [both, path, intent, none], 'both'],
    ['a lower priority before specificity', [both, rule('early', { priority: 5 })], 'early'],
    [
      'the lowest priority of all, also 0',
      [rule('early', { priority: 5 }), rule('first', { priority: 0 }), both],
      'first',
    ],
    ['a rule without a priority is a late one', [none, rule('late', { priority: 1001 })], 'none'],
    ['and comes behind one that has any below', [both, rule('x', { priority: 999 })], 'x'],
    ['where all else is equal the first in the list', [rule('one'), rule('two')], 'one'],
    [
      'a better rule that does not match stands in no way',
      [rule('x', { priority: 0, intent: 'plan' }), none],
      'none',
    ],
    ['[EC 8.7] without a match the default route', [rule('x', { intent: 'plan' })], null],
  ])('%s', (_, rules, wins) => {
    expect(winner({ ...EDIT, rules })).toBe(wins)
  })

  test('two rules under one name are two', () => {
    const twins = [rule('twin', { model: REMOTE }), rule('twin', { model: LOCAL })]
    expect(must(planned({ ...EDIT, rules: twins })).demands.references).toEqual([REMOTE])
  })

  test('the intent is the one that was classified, a command too', () => {
    const rules = [rule('plans', { intent: 'plan' }), rule('edits', { intent: 'edit' })]
    expect(winner({ ...EDIT, rules })).toBe('edits')
    expect(winner({ ...EDIT, rules, command: 'plan' })).toBe('plans')
  })
})

describe('[EC 8.3][EC 8.7] what comes of it, and why', () => {
  const full = rule('edits', {
    intent: 'edit',
    paths: ['src/**'],
    model: REMOTE,
    fallbacks: [LOCAL, 'openai/x'],
  })
  type Came = { references: string[]; rule: string | null; overrideUsed: boolean; reason: string }

  test.each<[says: string, parts: RequestParts, came: Came]>([
    [
      'a rule: its models in order; on intent and path',
      { rules: [full] },
      {
        references: [REMOTE, LOCAL, 'openai/x'],
        rule: 'edits',
        overrideUsed: false,
        reason: 'rule `edits` matched on path `src/a.ts` and intent `edit`',
      },
    ],
    [
      'on path alone',
      { rules: [path] },
      {
        references: [LOCAL],
        rule: 'path',
        overrideUsed: false,
        reason: 'rule `path` matched on path `src/a.ts`',
      },
    ],
    [
      'on intent alone',
      { rules: [intent] },
      {
        references: [LOCAL],
        rule: 'intent',
        overrideUsed: false,
        reason: 'rule `intent` matched on intent `edit`',
      },
    ],
    [
      'a rule without conditions catches all',
      { rules: [none] },
      {
        references: [LOCAL],
        rule: 'none',
        overrideUsed: false,
        reason: 'rule `none` matched as a catch-all',
      },
    ],
    [
      'no rule: the default route with its fallbacks',
      { defaultRoute: { model: REMOTE, fallbacks: [LOCAL] } },
      {
        references: [REMOTE, LOCAL],
        rule: null,
        overrideUsed: false,
        reason: 'no rule matched, default route',
      },
    ],
    [
      'an explicit model bypasses every rule and has no fallback',
      { rules: [full, rule('first', { priority: 0 })], explicitModel: 'openai/o' },
      { references: ['openai/o'], rule: null, overrideUsed: true, reason: 'explicit model `openai/o`' },
    ],
    [
      'an explicit model needs no route at all',
      { rules: [], defaultRoute: null, explicitModel: 'openai/o' },
      { references: ['openai/o'], rule: null, overrideUsed: true, reason: 'explicit model `openai/o`' },
    ],
  ])('%s', (_, parts, came) => {
    const { references, rule: won, overrideUsed, reason } = must(planned({ ...EDIT, ...parts })).route
    expect({ references, rule: won?.name ?? null, overrideUsed, reason }).toEqual(came)
  })

  test('neither rule nor default: `no_route`, with the intent', () => {
    for (const defaultRoute of [null, undefined]) {
      const request = makeRequest({ ...EDIT, rules: [rule('x', { intent: 'plan' })] })
      const routing = { ...request.policy.routing, default: defaultRoute }
      expect(planTurn(makeView({ ...request, policy: { ...request.policy, routing } }))).toEqual({
        ok: false,
        error: {
          code: 'no_route',
          message: 'no routing rule matches intent `edit` and the policy has no default route',
          details: { reason: 'no_rule', intent: 'edit' },
        },
      })
    }
  })

  test('[EC 9] what the winning rule names is in focus; under an explicit model nothing is', () => {
    const { route } = must(planned({ ...EDIT, rules: [both] }))
    expect(['src/b.ts', 'docs/a.md'].map(route.inFocus)).toEqual([true, false])
    const explicit = must(planned({ ...EDIT, rules: [both], explicitModel: LOCAL }))
    expect(explicit.route.inFocus('src/a.ts')).toBe(false)
  })
})

describe('[EC 8.4][EC 26.6] what the winning rule carries takes effect', () => {
  const ruled = (fields: Partial<Rule>, permissions: RequestParts['permissions'] = { shell: 'ask' }) =>
    planned({ rules: [rule('r', fields), rule('loser', { effort: 'low', priority: 2000 })], permissions })
  const requires = (permissions: NonNullable<RequestParts['permissions']>): Partial<Rule> => ({
    required_permissions: { permissions },
  })

  test.each(['low', 'medium', 'high', 'xhigh'] as const)('its effort goes to the model: %s', (effort) => {
    const turn = must(ruled({ effort }))
    expect(prepareCall(turn, makeModel(LOCAL)).request.effort).toBe(effort)
  })

  test('without one, under the default route and under an explicit model the effort is medium', () => {
    const effort = (parts: RequestParts) => prepareCall(must(planned(parts)), makeModel(LOCAL)).request.effort
    expect([{ rules: [rule('r')] }, {}, { explicitModel: LOCAL }].map(effort)).toEqual([
      'medium',
      'medium',
      'medium',
    ])
  })

  test.each<[says: string, required: RequestParts['permissions'], permissions: object]>([
    ['it tightens one', { shell: 'deny' }, { shell: 'deny' }],
    ['it repeats one', { shell: 'ask' }, { shell: 'ask' }],
    ['it names one that the request does not', { write_file: 'deny' }, { shell: 'ask', write_file: 'deny' }],
  ])('permissions: %s', (_, required, permissions) => {
    expect(must(ruled(requires(required ?? {}))).permissions).toEqual(permissions)
  })

  test('a tool that it denies is not offered', () => {
    const names = must(ruled(requires({ shell: 'deny' }))).tools.map(({ name }) => name)
    expect(names).toContain('read_file')
    expect(names).not.toContain('shell')
  })

  test('loosening fails the turn and says what by how much', () => {
    expect(ruled(requires({ shell: 'allow' }))).toMatchObject({
      ok: false,
      error: { code: 'permission_expansion', details: { tool: 'shell', base: 'ask', requested: 'allow' } },
    })
  })

  test('a rule that loses tightens nothing', () => {
    const rules = [rule('r'), rule('loser', { ...requires({ shell: 'deny' }), priority: 2000 })]
    expect(must(planned({ rules, permissions: { shell: 'ask' } })).permissions).toEqual({ shell: 'ask' })
  })

  test('its capabilities and its locality go into the choice', () => {
    const { demands } = must(ruled({ requires_capabilities: { reasoning: true }, local_only: true }))
    expect(demands).toMatchObject({ capabilities: { reasoning: true }, localBecause: 'rule' })
  })
})

describe('[EC 8.5][EC 26.6] what a turn needs of its model without a rule that says so', () => {
  const picture = 'data:image/png;base64,iVBORw0KGgoA'
  const SEES = 'openai/sees'
  const THINKS = 'openai/thinks'
  const ACTS = 'openai/acts'
  const models = [
    makeModel(LOCAL, { auth: 'none', capabilities: {} }),
    makeModel(SEES, { auth: 'none', capabilities: { images: true, tools: true } }),
    makeModel(THINKS, { auth: 'none', capabilities: { reasoning: true, tools: true } }),
    makeModel(ACTS, { auth: 'none', capabilities: { tools: true } }),
  ]
  const NO_TOOLS: RequestParts = {
    permissions: { read_file: 'deny', write_file: 'deny', edit_file: 'deny', shell: 'deny' },
  }
  const along = (...references: string[]): RequestParts => {
    const [model = '', ...fallbacks] = references
    return { rules: [{ name: 'r', model, fallbacks }] }
  }
  const withEffort = (
    effort: 'low' | 'medium' | 'high' | 'xhigh',
    ...references: string[]
  ): RequestParts => ({
    rules: (along(...references).rules ?? []).map((one) => ({ ...one, effort })),
  })
  const seeing: RequestParts = { attachments: { files: [makeFile('a.png', picture, true)] } }

  test.each<[says: string, parts: RequestParts, comes: string]>([
    ['high effort passes over a model that cannot think', withEffort('high', ACTS, THINKS), THINKS],
    ['so does the highest', withEffort('xhigh', ACTS, THINKS), THINKS],
    ['medium effort does not', withEffort('medium', ACTS, THINKS), ACTS],
    ['nor does low', withEffort('low', ACTS, THINKS), ACTS],
    [
      'no model of the route can think: an error of its own',
      withEffort('high', ACTS),
      'routing_unsupported_capability',
    ],
    ['a picture that is required passes over a blind model', { ...along(ACTS, SEES), ...seeing }, SEES],
    [
      'a picture that may be left out does not',
      {
        ...along(ACTS, SEES),
        attachments: { files: [makeFile('a.png', picture)] },
      },
      ACTS,
    ],
    ['tools that may be called pass over a model that cannot call any', along(LOCAL, ACTS), ACTS],
    ['where there is no other it answers without them', along(LOCAL), LOCAL],
    ['where all tools are denied nothing is passed over', { ...along(LOCAL, ACTS), ...NO_TOOLS }, LOCAL],
  ])('%s', (_, parts, comes) => {
    const choice = chooseModel(must(planned(parts)).demands, makeCatalogue(models))
    expect(choice.k === 'use' ? choice.reference : choice.k === 'none' ? choice.failure.code : choice.k).toBe(
      comes,
    )
  })
})

describe('[EC 8.5][U37] what a walk asks for', () => {
  const unlisted = (remote: boolean): Lookup => ({
    k: 'unlisted',
    ...(remote ? { remote: true as const } : {}),
  })
  const route: RequestParts = { defaultRoute: { model: REMOTE, fallbacks: [LOCAL] } }
  const first = (parts: RequestParts, remote: boolean) =>
    chooseModel(
      must(planned({ ...route, ...parts })).demands,
      makeCatalogue([makeModel(LOCAL)], { lookups: { [REMOTE]: unlisted(remote) } }),
    )

  test.each<[says: string, parts: RequestParts, remote: boolean, comes: object]>([
    ['a free turn asks a remote provider what it offers', {}, true, { k: 'list', provider: 'anthropic' }],
    [
      'a bound one passes it over',
      { preferences: { local_only: true } },
      true,
      { k: 'use', reference: LOCAL, fallbackUsed: true },
    ],
    [
      'a bound one asks a provider that may be local',
      { preferences: { local_only: true } },
      false,
      { k: 'list', provider: 'anthropic' },
    ],
    [
      'an explicit model of a remote provider is refused unasked',
      { preferences: { no_network: true }, explicitModel: REMOTE },
      true,
      { k: 'none', failure: { code: 'override_not_allowed' } },
    ],
  ])('%s', (_, parts, remote, comes) => {
    expect(first(parts, remote)).toMatchObject(comes)
  })
})
