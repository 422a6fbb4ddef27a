import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { CONTEXT_KINDS, NEVER_PRESENT_KIND } from '../../../src/core/context-kinds.ts'
import { MAX_WARNINGS, policyWarnings } from '../../../src/core/policy-check.ts'
import { makePrivacyGuard } from '../../../src/core/privacy/guard.ts'
import { planTurn } from '../../../src/core/resolve.ts'
import type { ExecutePolicy } from '../../../src/protocol/execution/policy.ts'
import {
  LOCAL,
  makeCall,
  makeFile,
  makePrivacy,
  makeRequest,
  makeView,
  modelSays,
  must,
  REMOTE,
  type RequestParts,
  userSays,
} from '../../support/core/builders.ts'

type RuleParts = Partial<NonNullable<RequestParts['rules']>[number]>
type Wire = z.input<typeof ExecutePolicy>

const warningsOf = (parts: RequestParts) => policyWarnings(makeRequest(parts).policy)

/** The warnings short: code, place within the policy, what to write instead. */
const short = (parts: RequestParts): string[] =>
  warningsOf(parts).map(({ code, path, suggestion }) =>
    [code, path.replace(/^policy\./, ''), ...(suggestion === undefined ? [] : [`→ ${suggestion}`])].join(' '),
  )

const rules = (...parts: RuleParts[]): RequestParts => ({
  rules: parts.map((part, index) => ({ name: `r${index}`, model: LOCAL, ...part })),
})

const restricted = (...restricted_paths: string[]): RequestParts => ({ privacy: { restricted_paths } })

const classified = (...parts: NonNullable<Wire['classification']['rules']>): RequestParts => ({
  classification: { rules: parts },
})

test('[EC 24.2] a policy with nothing amiss has no warning', () => {
  expect(
    warningsOf({
      classification: {
        rules: [
          {
            intent: 'review',
            priority: 1,
            keywords: ['review', 'code review'],
            requires_any_context: ['git_diff'],
          },
          { intent: 'edit' },
        ],
      },
      rules: [
        { name: 'pay', model: LOCAL, paths: ['payments/**'], local_only: true, priority: 5 },
        { name: 'edits', model: REMOTE, fallbacks: [LOCAL], intent: 'edit', paths: ['src/*.rs'] },
        { name: 'pages', model: LOCAL, paths: ['app/\\[id\\]/page.tsx'] },
        {
          name: 'rest',
          model: LOCAL,
          priority: 2000,
          required_permissions: { permissions: { shell: 'deny' } },
        },
      ],
      permissions: { shell: 'ask' },
      privacy: {
        restricted_paths: ['**/.env', '**/*.pem', 'secrets/**'],
        remote: { blocked_paths: ['internal/**'] },
      },
    }),
  ).toEqual([])
})

describe('[EC 24.2] routes', () => {
  test.each<[says: string, parts: RequestParts, expected: string[]]>([
    ['no default route', { defaultRoute: null }, ['missing_default_route routing.default']],
    [
      'a default route whose fallback is its model',
      { defaultRoute: { model: LOCAL, fallbacks: [REMOTE, LOCAL] } },
      ['repeated_fallback routing.default.fallbacks.1'],
    ],
    [
      'a fallback named twice, in another spelling of its provider',
      rules({ fallbacks: [REMOTE, 'Anthropic/remote-model'], intent: 'edit' }),
      ['repeated_fallback routing.rules.0.fallbacks.1'],
    ],
    [
      'a name that is taken',
      rules({ name: 'a', intent: 'edit' }, { name: 'b', intent: 'plan' }, { name: 'a', intent: 'chat' }),
      ['duplicate_rule_name routing.rules.2.name'],
    ],
    [
      'a rule that loosens permissions, and one that tightens them',
      {
        ...rules(
          {
            intent: 'edit',
            required_permissions: { permissions: { shell: 'allow', git: 'allow', read: 'deny' } },
          },
          { intent: 'plan', required_permissions: { permissions: { shell: 'deny' } } },
        ),
        permissions: { shell: 'ask', git: 'deny' },
      },
      [
        'permission_expansion routing.rules.0.required_permissions.permissions.shell → ask',
        'permission_expansion routing.rules.0.required_permissions.permissions.git → deny',
      ],
    ],
    [
      'a local rule with models of clouds alone',
      rules({ local_only: true, intent: 'edit', model: REMOTE, fallbacks: ['openai/x'] }),
      ['local_only_without_local_model routing.rules.0.model'],
    ],
    [
      'a local rule that falls back to what may be local',
      rules({ local_only: true, intent: 'edit', model: REMOTE, fallbacks: ['openai-compat:lab/x'] }),
      [],
    ],
    [
      'local models denied where a rule may use no others',
      { ...rules({ local_only: true, intent: 'edit' }), privacy: { local: { mode: 'deny' } } },
      ['local_models_denied privacy.local.mode'],
    ],
    [
      'local models denied where no rule asks for them',
      { ...rules({ intent: 'edit', model: REMOTE }), privacy: { local: { mode: 'deny' } } },
      [],
    ],
    [
      'all models denied',
      { privacy: { local: { mode: 'deny' }, remote: { mode: 'deny' } } },
      ['no_model_allowed privacy.local.mode'],
    ],
  ])('%s', (_says, parts, expected) => {
    expect(short(parts)).toEqual(expected)
  })
})

test('[EC 24.2] what to write instead stands in the message, too', () => {
  const warnings = warningsOf({
    ...rules(
      { intent: 'edit', required_permissions: { permissions: { shell: 'allow' } } },
      { paths: ['/src/**'] },
    ),
    ...classified({ intent: 'edit', requires_any_context: ['git_dif'] }),
    permissions: { shell: 'ask', shel: 'deny' },
    privacy: { restricted_paths: ['~/x'] },
  })
  expect(warnings.map(({ code }) => code)).toEqual([
    'unknown_context_kind',
    'permission_expansion',
    'unknown_permission',
    'pattern_never_matches',
    'private_pattern_widened',
  ])
  for (const { message, suggestion } of warnings) expect(message).toContain(`\`${suggestion}\``)
})

describe('[EC 12.2] keys of permissions', () => {
  test.each([
    ['shel', 'shell'],
    ['Shell', 'shell'],
    ['read-file', 'read_file'],
    ['files_read', 'file_read'],
    ['git_commit', undefined],
    ['create_file', undefined],
    ['browse', undefined],
    ['constructor', undefined],
    ['git', undefined],
  ])('%s', (key, meant) => {
    const expected = (at: string) =>
      meant === undefined ? [] : [`unknown_permission ${at}.${key} → ${meant}`]
    expect(short({ permissions: { [key]: 'deny' } })).toEqual(expected('tools.permissions'))
    expect(short(rules({ required_permissions: { permissions: { [key]: 'deny' } } }))).toEqual(
      expected('routing.rules.0.required_permissions.permissions'),
    )
  })
})

describe('[EC 8.3][EC 24.2] rules that stand in one another’s way', () => {
  test.each<[says: string, first: RuleParts, second: RuleParts, expected: string[]]>([
    ['same intent', { intent: 'edit' }, { intent: 'edit' }, ['ambiguous_rules routing.rules.1']],
    ['no condition in either', {}, {}, ['ambiguous_rules routing.rules.1']],
    [
      'a shared pattern',
      { paths: ['a/**', 'b/**'] },
      { paths: ['b/**'] },
      ['ambiguous_rules routing.rules.1'],
    ],
    [
      'patterns that meet',
      { paths: ['src/**'] },
      { paths: ['**/*.ts'] },
      ['ambiguous_rules routing.rules.1'],
    ],
    ['patterns that never meet', { paths: ['src/**'] }, { paths: ['docs/**'] }, []],
    ['other intents', { intent: 'edit' }, { intent: 'plan' }, []],
    ['an intent against a path: the path is stronger', { intent: 'edit' }, { paths: ['a/**'] }, []],
    ['no condition behind one', { intent: 'edit' }, {}, []],
    [
      'an invalid pattern never matches',
      { paths: ['[', 'a/**'] },
      { paths: ['a/**'] },
      ['invalid_glob routing.rules.0.paths.0'],
    ],
    ['a catch-all first', { priority: 1 }, { intent: 'edit' }, ['unreachable_rule routing.rules.1']],
    [
      'a catch-all that stands later but comes first',
      { intent: 'edit' },
      { priority: 1 },
      ['unreachable_rule routing.rules.0'],
    ],
    ['a catch-all of the same priority comes last', {}, { intent: 'edit' }, []],
    [
      'the intent alone first',
      { intent: 'edit', priority: 1 },
      { intent: 'edit', paths: ['a/**'] },
      ['shadowed_rule routing.rules.1'],
    ],
    [
      'every path first',
      { paths: ['**'], priority: 1 },
      { paths: ['a/**', 'b'] },
      ['shadowed_rule routing.rules.1'],
    ],
    ['every path first takes no turn without one', { paths: ['**'], priority: 1 }, { intent: 'edit' }, []],
    [
      'all its patterns first',
      { paths: ['a/**', 'b/**'], priority: 1 },
      { paths: ['b/**'], intent: 'plan' },
      ['shadowed_rule routing.rules.1'],
    ],
    ['a part of its patterns first', { paths: ['b/**'], priority: 1 }, { paths: ['a/**', 'b/**'] }, []],
    [
      'its patterns first, for one intent',
      { paths: ['b/**'], intent: 'plan', priority: 1 },
      { paths: ['b/**'] },
      [],
    ],
  ])('%s', (_says, first, second, expected) => {
    expect(short(rules(first, second))).toEqual(expected)
  })

  test('several rules together take all that another would', () => {
    const parts = rules(
      { paths: ['a/**'], priority: 1 },
      { paths: ['b/**'], priority: 2 },
      { paths: ['b/**', 'a/**'] },
    )
    expect(short(parts)).toEqual(['shadowed_rule routing.rules.2'])
  })

  test('[EC 9] of a rule that is never reached the paths stay private, and the warning says so', () => {
    const [warning] = warningsOf(rules({ priority: 1 }, { paths: ['pay/**'], local_only: true }))
    expect(warning).toMatchObject({
      code: 'unreachable_rule',
      message: expect.stringContaining('stay private'),
    })
  })

  test('[D17] thousands of rules of one priority are compared in bounded time', () => {
    const plain = Array.from({ length: 8000 }, (_, i) => ({ paths: [`src/module-${i}/**`] }))
    const braces = Array.from({ length: 20 }, (_, i) => ({
      paths: [`{a,b}{c,d}{e,f}{g,h}{i,j}${'x'.repeat(200)}${i}`],
    }))
    const before = performance.now()
    expect(warningsOf(rules(...plain, ...braces))).toEqual([])
    expect(performance.now() - before).toBeLessThan(8000)
  })
})

describe('[EC 8.2] patterns of routing rules', () => {
  test.each<[pattern: string, expected: string[]]>([
    ['a[b', ['invalid_glob routing.rules.0.paths.0']],
    ['x'.repeat(257), ['invalid_glob routing.rules.0.paths.0']],
    ['*a'.repeat(17), ['invalid_glob routing.rules.0.paths.0']],
    ['', ['pattern_never_matches routing.rules.0.paths.0']],
    ['/src/**', ['pattern_never_matches routing.rules.0.paths.0 → src/**']],
    ['C:/src/**', ['pattern_never_matches routing.rules.0.paths.0 → src/**']],
    ['./src/**', ['pattern_never_matches routing.rules.0.paths.0 → src/**']],
    ['src/./a', ['pattern_never_matches routing.rules.0.paths.0 → src/a']],
    ['src//a', ['pattern_never_matches routing.rules.0.paths.0 → src/a']],
    ['src/', ['pattern_never_matches routing.rules.0.paths.0 → src/**']],
    ['src\\app\\**', ['pattern_never_matches routing.rules.0.paths.0 → src/app/**']],
    ['src\\*.ts', ['pattern_never_matches routing.rules.0.paths.0 → src/*.ts']],
    ['src/../lib/**', ['pattern_never_matches routing.rules.0.paths.0 → lib/**']],
    ['*/../lib/**', ['pattern_never_matches routing.rules.0.paths.0']],
    ['../lib/**', ['pattern_never_matches routing.rules.0.paths.0']],
    ['~/lib/**', ['pattern_never_matches routing.rules.0.paths.0 → **/lib/**']],
    ['!src/gen/**', ['negated_pattern routing.rules.0.paths.0']],
    ['src/**', []],
    ['**', []],
    ['.env', []],
    ['.github/**', []],
    ['a..b/~c', []],
  ])('%s', (pattern, expected) => {
    expect(short(rules({ paths: [pattern] }))).toEqual(expected)
  })

  test('the warning says that the rule never matches', () => {
    const [warning] = warningsOf(rules({ paths: ['ok/**', '{a'] }))
    expect(warning).toEqual({
      code: 'invalid_glob',
      path: 'policy.routing.rules.0.paths.1',
      message: 'the pattern "{a" is invalid: a `{` without its `}`; rule `r0` never matches',
    })
  })

  test('[EC 9] an invalid pattern of a local rule makes every path private, and the warning says so', () => {
    const [warning] = warningsOf(rules({ paths: ['{a'], local_only: true }))
    expect(warning?.message).toContain('every path counts as private')
  })

  test('[EC 9] what is suggested for a local rule keeps all private that was', () => {
    expect(short(rules({ paths: ['/pay/**'], local_only: true }))).toEqual([
      'pattern_never_matches routing.rules.0.paths.0 → **/pay/**',
    ])
  })
})

describe('[EC 9] patterns of private paths', () => {
  test.each<[pattern: string, expected: string[]]>([
    ['a[b', ['invalid_glob privacy.restricted_paths.0']],
    ['/x/**', ['private_pattern_widened privacy.restricted_paths.0 → **/x/**']],
    ['/**/x', ['private_pattern_widened privacy.restricted_paths.0 → **/x']],
    ['C:\\x\\**', ['private_pattern_widened privacy.restricted_paths.0 → **/x/**']],
    ['~/.ssh/**', ['private_pattern_widened privacy.restricted_paths.0 → **/.ssh/**']],
    ['a\\**', ['private_pattern_widened privacy.restricted_paths.0 → a/**']],
    ['a/', ['private_pattern_widened privacy.restricted_paths.0 → **/{a,a/**}']],
    ['a\\b\\', ['invalid_glob privacy.restricted_paths.0']],
    ['a\\b/', ['private_pattern_widened privacy.restricted_paths.0 → {a/b,a/b/**}']],
    ['./a/**', ['private_pattern_widened privacy.restricted_paths.0 → a/**']],
    ['secrets', ['private_pattern_widened privacy.restricted_paths.0 → **/{secrets,secrets/**}']],
    ['.env', ['private_pattern_widened privacy.restricted_paths.0 → **/{.env,.env/**}']],
    ['conf/keys', ['private_pattern_widened privacy.restricted_paths.0 → {conf/keys,conf/keys/**}']],
    ['conf/keys.json', []],
    ['id_rsa*', ['private_pattern_widened privacy.restricted_paths.0 → **/id_rsa*']],
    ['{a,b}.key', ['private_pattern_widened privacy.restricted_paths.0 → **/{a,b}.key/**']],
    ['$HOME/x/', ['private_pattern_widened privacy.restricted_paths.0 → **/{x,x/**}']],
    ['a//b/**', ['private_pattern_widened privacy.restricted_paths.0 → a/b/**']],
    ['a/../b/**', ['private_pattern_widened privacy.restricted_paths.0 → b/**']],
    ['../b/**', ['private_pattern_widened privacy.restricted_paths.0']],
    ['', ['pattern_never_matches privacy.restricted_paths.0']],
    ['!open/**', ['negated_pattern privacy.restricted_paths.0']],
    ['!.env', ['negated_pattern privacy.restricted_paths.0']],
    ['**/.env', []],
    ['*.pem', []],
    ['secrets/**', []],
  ])('%s', (pattern, expected) => {
    expect(short(restricted(pattern))).toEqual(expected)
  })

  test.each([
    '/x/**',
    '/**/x',
    '~/.ssh/**',
    '$HOME/x/',
    'a\\**',
    'a/',
    './a/**',
    'secrets',
    '.env',
    'conf/keys',
    'id_rsa*',
    'a//b/**',
    'a/../b/**',
  ])('[U37] what is suggested for %s keeps all private that the pattern kept', (pattern) => {
    const [warning] = warningsOf(restricted(pattern))
    const guardOf = (one: string) =>
      makePrivacyGuard(makePrivacy({ restricted_paths: [one] }), [], '/home/me/code')
    const before = guardOf(pattern)
    const after = guardOf(warning?.suggestion ?? '')
    const names = ['x', 'a', 'b', 'secrets', '.env', 'conf/keys', '.ssh', 'id_rsa', 'id_rsa.pub', 'a/b']
    const paths = [
      '',
      'q/',
      '/',
      '/home/me/',
      '/home/me/code/',
      '/home/you/',
      '~/',
      '../',
      'a/../',
      './',
    ].flatMap((folder) =>
      names.flatMap((name) => [`${folder}${name}`, `${folder}${name}/f`, `${folder}${name}/f/g.ts`]),
    )
    const kept = paths.filter((path) => before.constraintOf(path) !== null)
    expect(kept).not.toEqual([])
    expect(kept.filter((path) => after.constraintOf(path) === null)).toEqual([])
  })

  test('of blocked paths the place is theirs', () => {
    expect(short({ privacy: { remote: { blocked_paths: ['ok/**', '~/x'] } } })).toEqual([
      'private_pattern_widened privacy.remote.blocked_paths.1 → **/x',
    ])
  })

  test('[EC 8.2] the warning about an invalid one says that every path counts as private', () => {
    const [warning] = warningsOf(restricted('a[b'))
    expect(warning?.message).toContain('every path counts as private')
  })
})

describe('[EC 7] classification rules', () => {
  test.each<[says: string, parts: RequestParts, expected: string[]]>([
    [
      'keywords without a letter or digit',
      classified({ intent: 'edit', keywords: ['fix', '', '--', '!?!?!?!?!?', 'c++', '日本'] }),
      [1, 2, 3].map((i) => `keyword_never_matches classification.rules.0.keywords.${i}`),
    ],
    [
      'a kind of context that is misspelt, one that nobody knows, one that is never there',
      classified({
        intent: 'edit',
        requires_any_context: ['git-diff', 'referenced_path', 'weather', 'pull_request', 'image'],
      }),
      [
        'unknown_context_kind classification.rules.0.requires_any_context.0 → git_diff',
        'unknown_context_kind classification.rules.0.requires_any_context.1 → referenced_paths',
        'unknown_context_kind classification.rules.0.requires_any_context.2',
        'unknown_context_kind classification.rules.0.requires_any_context.3',
      ],
    ],
    [
      'rules behind one without a condition',
      classified(
        { intent: 'edit', keywords: ['fix'] },
        { intent: 'plan' },
        { intent: 'review', priority: 1, keywords: ['audit'] },
        { intent: 'chat', keywords: ['hello'] },
        { intent: 'skill', priority: 2000 },
      ),
      ['unreachable_rule classification.rules.3', 'unreachable_rule classification.rules.4'],
    ],
  ])('%s', (_says, parts, expected) => {
    expect(short(parts)).toEqual(expected)
  })
})

test('[EC 7][D11] every kind that rules may name is one that a turn can have', () => {
  const call = makeCall({ name: 'edit_file', changesFiles: true, arguments: { path: 'a' } })
  const failed = makeCall({ name: 'shell', isError: true })
  const parts: RequestParts = {
    workspace: { git_diff: '', git_branch: 'main', active_file: 'a', referenced_paths: ['a'] },
    attachments: {
      files: [makeFile('a.png', 'data:image/png;base64,iVBORw0KGgoA')],
      invoked_skills: [{ name: 's', content: 'x' }],
    },
  }
  const said = [userSays('do it'), modelSays('', { calls: [call, failed] })]
  const present = (kind: string) => {
    const request = makeRequest({ ...parts, ...classified({ intent: 'edit', requires_any_context: [kind] }) })
    return must(planTurn(makeView(request, { said, planApproved: true }))).classification.intent === 'edit'
  }
  expect([...CONTEXT_KINDS, NEVER_PRESENT_KIND].filter(present)).toEqual(CONTEXT_KINDS)
})

describe('the list of warnings', () => {
  const bad = (count: number) => restricted(...Array.from({ length: count }, () => '['))

  test(`[EC 24.2] holds at most ${MAX_WARNINGS}, and the last says how many are left out`, () => {
    expect(warningsOf(bad(MAX_WARNINGS)).at(-1)?.code).toBe('invalid_glob')
    const many = warningsOf(bad(MAX_WARNINGS + 20))
    expect(many).toHaveLength(MAX_WARNINGS)
    expect(many.at(-1)).toEqual({
      code: 'more_warnings',
      path: 'policy',
      message: expect.stringMatching(/^21 more warnings/),
    })
  })

  test('repeats no long name whole', () => {
    const name = 'n'.repeat(100_000)
    const parts = rules(...Array.from({ length: 50 }, () => ({ name, paths: [`/${name}`] })))
    expect(JSON.stringify(warningsOf(parts)).length).toBeLessThan(100_000)
  })
})
