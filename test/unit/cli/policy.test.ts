import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../../src/cli/config-file.ts'
import { configTemplate } from '../../../src/cli/config-template.ts'
import {
  type ConfigFailure,
  DEFAULT_RESTRICTED_PATHS,
  loadConfig,
  policyOf as policyOfLoaded,
} from '../../../src/cli/policy.ts'
import { lineOf } from '../../../src/cli/toml-position.ts'
import { ExecutePolicy } from '../../../src/protocol/execution/policy.ts'
import { configHome } from '../../support/node/config-home.ts'

const ROUTE = '[routing.default]\nmodel = "ollama/small"\n'

/** What a run from this folder would send. */
function buildPolicy({ cwd, defaultModel }: { cwd: string; defaultModel?: string }) {
  const loaded = loadConfig({ cwd })
  return loaded.ok ? policyOfLoaded(loaded.value, defaultModel) : loaded
}

function policyOf(options: { global?: string; project?: string; defaultModel?: string }): ExecutePolicy {
  const { cwd } = configHome(options)
  const policy = buildPolicy({ cwd, ...(options.defaultModel ? { defaultModel: options.defaultModel } : {}) })
  if (!policy.ok) throw new Error(policy.error.message)
  return policy.value
}

function failureOf(options: { global?: string; project?: string }): ConfigFailure & { short: string[] } {
  const { cwd } = configHome(options)
  const policy = buildPolicy({ cwd })
  if (policy.ok) throw new Error('the policy was accepted')
  const short = policy.error.findings.map(
    ({ file, line, message }) => `${path.basename(path.dirname(file))}:${line ?? '-'}: ${message}`,
  )
  return { ...policy.error, short }
}

describe('defaults', () => {
  test('[EC 24.1] without any file: reading is allowed, changing asks, remote asks, secrets are restricted', () => {
    expect(policyOf({ defaultModel: 'ollama/small' })).toEqual({
      version: 1,
      source: 'merged',
      classification: { default_intent: 'chat', rules: [] },
      routing: { rules: [], default: { model: 'ollama/small', fallbacks: [] } },
      tools: {
        permissions: {
          read_file: 'allow',
          read_lines: 'allow',
          list_files: 'allow',
          search_files: 'allow',
          show_changes: 'allow',
          write_file: 'ask',
          edit_file: 'ask',
          shell: 'ask',
        },
      },
      privacy: {
        restricted_paths: DEFAULT_RESTRICTED_PATHS,
        remote: { mode: 'ask', blocked_paths: [] },
        local: {},
      },
    })
  })

  test('without a default route the message says how to set one', () => {
    const failure = failureOf({})
    expect(failure.kind).toBe('no_default_route')
    expect(failure.message).toContain('--model')
    expect(failure.message).toContain('[routing.default]')
  })

  test('a configured default route beats the caller’s', () => {
    const { routing } = policyOf({ global: ROUTE, defaultModel: 'ollama/other' })
    expect(routing.default?.model).toBe('ollama/small')
  })

  test('a default that is no model reference is refused', () => {
    const { cwd } = configHome()
    expect(buildPolicy({ cwd, defaultModel: 'gpt' })).toMatchObject({ error: { kind: 'invalid_config' } })
  })

  test('[EC 12.2] a group key replaces the defaults of its tools; of several settings the strictest holds', () => {
    const { tools } = policyOf({
      global: `${ROUTE}[tools.permissions]\nfile_write = "allow"\nfile_read = "ask"\nlist_files = "deny"\n`,
    })
    expect(tools.permissions).toEqual({
      file_write: 'allow',
      file_read: 'ask',
      read_file: 'ask',
      read_lines: 'ask',
      list_files: 'deny',
      search_files: 'ask',
      show_changes: 'ask',
      write_file: 'allow',
      edit_file: 'allow',
      shell: 'ask',
    })
  })

  test('the file that `config init` writes is valid and changes no default', () => {
    const written = policyOf({ global: configTemplate() })
    expect(written.routing.default?.model).toBe('ollama/qwen3:8b')
    const bare = policyOf({ defaultModel: 'ollama/qwen3:8b' })
    expect(written).toEqual(bare)
  })

  test('the examples in that file are valid, too', () => {
    const uncommented = configTemplate().replace(
      /^# (?=\[|fallbacks|name|intent|priority|paths|local_only|model|cost|keywords|requires)/gm,
      '',
    )
    expect(parseConfig('f', uncommented)).toMatchObject({ ok: true })
    expect(policyOf({ global: uncommented }).routing.rules).toHaveLength(2)
  })
})

describe('merging', () => {
  test('[EC 24.1] a project value replaces the global one, unset keys keep theirs, path lists are united', () => {
    const policy = policyOf({
      global: `${ROUTE}
[classification]
default_intent = "edit"
[[routing.rules]]
name = "global rule"
intent = "plan"
model = "ollama/big"
[privacy]
restricted_paths = ["a/**", "b/**"]
[privacy.remote]
mode = "allow"
blocked_paths = ["x/**"]
`,
      project: `
[[routing.rules]]
name = "project rule"
intent = "review"
model = "ollama/mid"
[privacy]
restricted_paths = ["b/**", "c/**"]
[privacy.remote]
mode = "deny"
blocked_paths = ["y/**"]
`,
    })
    expect(policy.classification.default_intent).toBe('edit')
    expect(policy.routing.default?.model).toBe('ollama/small')
    expect(policy.routing.rules.map(({ name }) => name)).toEqual(['project rule'])
    expect(policy.privacy.restricted_paths.slice(-3)).toEqual(['a/**', 'b/**', 'c/**'])
    expect(policy.privacy.restricted_paths).toEqual(expect.arrayContaining([...DEFAULT_RESTRICTED_PATHS]))
    expect(policy.privacy.remote).toEqual({ mode: 'deny', blocked_paths: ['x/**', 'y/**'] })
    expect(ExecutePolicy.parse(policy)).toEqual(policy)
  })

  test('[EC 24.1] a project replaces the rules, but not those that keep paths at home', () => {
    const rule = (name: string, more = '') =>
      `[[routing.rules]]\nname = "${name}"\npaths = ["${name}/**"]\nmodel = "ollama/small"\n${more}`
    const policy = policyOf({
      global: `${ROUTE}${rule('free')}${rule('home', 'local_only = true\n')}`,
      project: rule('project'),
    })
    expect(policy.routing.rules.map(({ name }) => name)).toEqual(['project', 'home'])
  })

  test.each([
    ['tools.permissions.shell', '[tools.permissions]\nshell = "deny"', '[tools.permissions]\nshell = "ask"'],
    ['privacy.remote.mode', '[privacy.remote]\nmode = "ask"', '[privacy.remote]\nmode = "allow"'],
    ['privacy.local.mode', '[privacy.local]\nmode = "deny"', '[privacy.local]\nmode = "allow"'],
    [
      'local_preferences.local_only',
      '[local_preferences]\nlocal_only = true',
      '[local_preferences]\nlocal_only = false',
    ],
    [
      'local_preferences.auto_apply',
      '[local_preferences]\nauto_apply = false',
      '[local_preferences]\nauto_apply = true',
    ],
  ])('[EC 24.1] a project may tighten %s and not loosen it', (key, strict, loose) => {
    const failure = failureOf({ global: `${ROUTE}${strict}\n`, project: `${loose}\n` })
    expect(failure.short).toEqual([
      expect.stringMatching(new RegExp(`^\\.switchyard:2: ${key}: a project may not`)),
    ])
    expect(() => policyOf({ global: `${ROUTE}${loose}\n`, project: `${strict}\n` })).not.toThrow()
  })

  test('a project frees nothing beyond the built-in defaults, unless the global file does', () => {
    const project = '[tools.permissions]\nshell = "allow"\n[privacy.remote]\nmode = "allow"\n'
    const held = policyOf({ global: ROUTE, project })
    expect(held.tools.permissions.shell).toBe('ask')
    expect(held.privacy.remote?.mode).toBe('ask')
    const freed = policyOf({ global: `${ROUTE}${project}`, project })
    expect(freed.tools.permissions.shell).toBe('allow')
    expect(freed.privacy.remote?.mode).toBe('allow')
  })

  test('what a project asked for and may not have is a notice', () => {
    const project = '[tools.permissions]\nshell = "allow"\n'
    const loaded = loadConfig({ cwd: configHome({ global: ROUTE, project }).cwd })
    expect(loaded).toMatchObject({
      value: { notices: [expect.stringContaining('shell = "allow" has no effect')] },
    })
    const same = loadConfig({ cwd: configHome({ global: `${ROUTE}${project}`, project }).cwd })
    expect(same).toMatchObject({ value: { notices: [] } })
  })

  test('a project does not switch auto_apply on, unless the global file does', () => {
    const project = '[local_preferences]\nauto_apply = true\n'
    expect(loadConfig({ cwd: configHome({ global: ROUTE, project }).cwd })).toMatchObject({
      value: {
        preferences: { auto_apply: false },
        notices: [expect.stringContaining('auto_apply = true has no effect')],
      },
    })
    expect(loadConfig({ cwd: configHome({ global: `${ROUTE}${project}`, project }).cwd })).toMatchObject({
      value: { preferences: { auto_apply: true }, notices: [] },
    })
  })

  test('preferences are off unless set', () => {
    const { cwd } = configHome({ global: `${ROUTE}[local_preferences]\nlocal_only = true\n` })
    expect(loadConfig({ cwd })).toMatchObject({
      value: { preferences: { auto_apply: false, local_only: true, no_network: false } },
    })
  })
})

describe('findings', () => {
  test('[EC 24.2] all findings of both files come together, each with its line', () => {
    const failure = failureOf({
      global: `# comment
[classification]
default_intent = "chatt"

[privacy]
restricted = ["x"]
`,
      project: `[[routing.rules]]
name = "one"
model = "anthropic"

[[routing.rules]]
name = "two"
model = "ollama/x"
cost_limit = 0.5
required_permissions = { shell = "deny" }
`,
    })
    expect(failure.short).toEqual([
      expect.stringMatching(/^switchyard:3: classification\.default_intent: .*"chat"/),
      'switchyard:6: privacy.restricted: no such setting; did you mean `restricted_paths`?',
      expect.stringMatching(/^\.switchyard:3: routing\.rules\[0\]\.model: not a model reference/),
      '.switchyard:8: routing.rules[1].cost_limit: write the amount as text, such as "0.50"',
      '.switchyard:9: routing.rules[1].required_permissions.shell: permissions have a table of their own: write `required_permissions = { permissions = { shell = "deny" } }`',
    ])
    expect(failure.message.split('\n')).toHaveLength(5)
  })

  test('a syntax error tells line and column', () => {
    expect(failureOf({ global: '[routing.default]\nmodel = ollama\n' }).short).toEqual([
      expect.stringMatching(/^switchyard:2: .*\(column \d+\)$/),
    ])
  })

  test('[EC 24.2] a key written into the file is refused, without repeating it', () => {
    const failure = failureOf({ global: `${ROUTE}[providers.anthropic]\napi_key = "sk-ant-secret"\n` })
    expect(failure.message).toContain('ANTHROPIC_API_KEY')
    expect(failure.message).not.toContain('sk-ant-secret')
  })

  test.each([
    ['an invalid glob', '[privacy]\nrestricted_paths = ["a[b"]', 'the pattern "a[b" is invalid'],
    [
      'a duplicate rule name',
      '[[routing.rules]]\nname = "r"\nintent = "plan"\nmodel = "ollama/a"\n[[routing.rules]]\nname = "r"\nintent = "edit"\nmodel = "ollama/a"',
      'the name "r" is taken',
    ],
    [
      'a fallback that repeats its primary',
      '[[routing.rules]]\nname = "r"\nmodel = "ollama/a"\nfallbacks = ["Ollama/a"]',
      'ollama/a is named twice',
    ],
    [
      'rules that only their order tells apart',
      '[[routing.rules]]\nname = "r"\nintent = "plan"\nmodel = "ollama/a"\n[[routing.rules]]\nname = "s"\nintent = "plan"\nmodel = "ollama/b"',
      'ambiguous with "r"',
    ],
    [
      'a rule that widens a permission',
      '[tools.permissions]\nshell = "deny"\n[[routing.rules]]\nname = "r"\nmodel = "ollama/a"\nrequired_permissions = { permissions = { shell = "allow" } }',
      'loosens `shell` from deny to allow; write `deny`',
    ],
  ])('[EC 24.2] %s is a finding with a line', (_what, text, message) => {
    const failure = failureOf({ global: `${ROUTE}${text}\n` })
    expect(failure.short).toHaveLength(1)
    expect(failure.short[0]).toContain(message)
    expect(failure.findings[0]?.line).toEqual(expect.any(Number))
  })

  test('rules with other priorities, paths or intents are not ambiguous', () => {
    const rule = (name: string, rest: string) =>
      `[[routing.rules]]\nname = "${name}"\nmodel = "ollama/a"\n${rest}\n`
    const { routing } = policyOf({
      global:
        ROUTE +
        rule('a', 'intent = "plan"') +
        rule('b', 'intent = "plan"\npriority = 5') +
        rule('c', 'paths = ["x/**"]') +
        rule('d', 'paths = ["y/**"]') +
        rule('e', 'intent = "plan"\npaths = ["x/**"]'),
    })
    expect(routing.rules).toHaveLength(5)
  })
})

describe('lineOf', () => {
  const toml = `title = "x"
[a]
b.c = 1
text = """
b = 9
[z]
"""
"odd key" = 2
[[list]]
x = 1
[[list]]
x = 2
[list.inner]
y = { k = 1 }
z = [
  "a", # "not, this"
  'b]', [
    1,
    2],
  { q = """
[no]
""", r.s = 3 },
]
# [no] = 1
after = 1979-05-27 07:32:00
[[list]]
[[list.deep]]
x = 1
`
  test.each([
    [['title'], 1],
    [['a', 'b', 'c'], 3],
    [['a', 'b', 'missing'], 3],
    [['a', 'text'], 4],
    [['a', 'odd key'], 8],
    [['list', 0, 'x'], 10],
    [['list', 1, 'x'], 12],
    [['list', 1, 'inner', 'y', 'k'], 14],
    [['z'], undefined],
    [['list', 1, 'inner', 'z', 0], 16],
    [['list', 1, 'inner', 'z', 1], 17],
    [['list', 1, 'inner', 'z', 2, 0], 18],
    [['list', 1, 'inner', 'z', 2, 1], 19],
    [['list', 1, 'inner', 'z', 3, 'q'], 20],
    [['list', 1, 'inner', 'z', 3, 'r', 's'], 22],
    [['list', 1, 'inner', 'z', 9], 15],
    [['list', 1, 'inner', 'after'], 25],
    [['list', 2, 'deep', 0, 'x'], 28],
    [['no'], undefined],
  ])('%j is on line %s', (at, line) => {
    expect(lineOf(toml, at)).toBe(line)
  })
})
