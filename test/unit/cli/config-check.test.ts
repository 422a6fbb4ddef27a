import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { policyAdvice } from '../../../src/cli/config-check.ts'
import { type Finding, parseConfig } from '../../../src/cli/config-file.ts'
import { loadConfig, policyOf } from '../../../src/cli/policy.ts'
import { must } from '../../support/core/builders.ts'
import { configHome } from '../../support/node/config-home.ts'

const ROUTE = '[routing.default]\nmodel = "ollama/small"\n'

const short = ({ file, line, message }: Finding): string =>
  `${path.basename(path.dirname(file))}:${line ?? '-'}: ${message}`

/** What is wrong with the files, each with folder and line. */
function findingsOf(files: { global?: string; project?: string }): string[] {
  const loaded = must(loadConfig({ cwd: configHome(files).cwd }))
  const policy = policyOf(loaded, undefined)
  return policy.ok ? [] : policy.error.findings.map(short)
}

function adviceOf(files: { global?: string; project?: string }): string[] {
  const loaded = must(loadConfig({ cwd: configHome(files).cwd }))
  return policyAdvice(must(policyOf(loaded, undefined)), loaded.layers, loaded.origin).map(short)
}

describe('[EC 24.2] what is wrong with a policy is told with the file and the line that say so', () => {
  test.each<[says: string, text: string, line: number, message: string]>([
    [
      'a keyword that is found in no text',
      '[[classification.rules]]\nintent = "edit"\nkeywords = ["--"]',
      5,
      'classification.rules[0].keywords[0]: the keyword "--"',
    ],
    [
      'a kind of context that nobody knows',
      '[[classification.rules]]\nintent = "edit"\nrequires_any_context = ["git_dif"]',
      5,
      'did you mean `git_diff`?',
    ],
    [
      'a pattern with a root',
      '[[routing.rules]]\nname = "r"\nmodel = "ollama/a"\npaths = ["a/**", "/src/**"]',
      6,
      'write `src/**`',
    ],
    [
      'one of many patterns',
      '[privacy]\nrestricted_paths = [\n  "a/**", # first\n  "b[",\n]',
      6,
      'privacy.restricted_paths[1]: the pattern "b["',
    ],
    [
      'a rule behind a catch-all',
      '[[routing.rules]]\nname = "all"\npriority = 1\nmodel = "ollama/a"\n[[routing.rules]]\nname = "r"\nintent = "plan"\nmodel = "ollama/a"',
      7,
      'rule `r` is never reached',
    ],
    [
      'patterns that meet',
      '[[routing.rules]]\nname = "r"\nmodel = "ollama/a"\npaths = ["src/**"]\n[[routing.rules]]\nname = "s"\nmodel = "ollama/a"\npaths = ["**/*.ts"]',
      7,
      'ambiguous with "r"',
    ],
    [
      'a local rule without a local model',
      '[[routing.rules]]\nname = "r"\nintent = "plan"\nlocal_only = true\nmodel = "openai/a"',
      7,
      'models of clouds alone',
    ],
    [
      'local models denied',
      '[[routing.rules]]\nname = "r"\nintent = "plan"\nlocal_only = true\nmodel = "ollama/a"\n[privacy.local]\nmode = "deny"',
      9,
      'local models are denied',
    ],
    [
      'an invalid blocked path',
      '[privacy.remote]\nblocked_paths = ["ok/**", "a[b"]',
      4,
      'privacy.remote.blocked_paths[1]: the pattern "a[b"',
    ],
  ])('%s', (_says, text, line, message) => {
    const findings = findingsOf({ global: `${ROUTE}${text}\n` })
    expect(findings).toEqual([expect.stringMatching(new RegExp(`^switchyard:${line}: `))])
    expect(findings[0]).toContain(message)
  })

  test('of rules that a project leaves beside its own, the line is that of the global file', () => {
    const rule = (name: string, more: string) =>
      `[[routing.rules]]\nname = "${name}"\nmodel = "ollama/small"\n${more}`
    const findings = findingsOf({
      global: `${ROUTE}${rule('dropped', 'paths = ["/a/**"]\n')}${rule('kept', 'local_only = true\npaths = ["/b/**"]\n')}`,
      project: rule('own', 'paths = ["./c"]\n'),
    })
    expect(findings).toEqual([
      expect.stringMatching(/^\.switchyard:4: routing\.rules\[0\]\.paths\[0\]: the pattern "\.\/c"/),
      expect.stringMatching(/^switchyard:11: routing\.rules\[1\]\.paths\[0\]: the pattern "\/b\/\*\*"/),
    ])
  })

  test('a private path that stands in both files is told of both', () => {
    const list = '[privacy]\nrestricted_paths = ["a[b"]\n'
    expect(findingsOf({ global: `${ROUTE}${list}`, project: list })).toEqual([
      expect.stringMatching(/^switchyard:4: privacy\.restricted_paths\[0\]/),
      expect.stringMatching(/^\.switchyard:2: privacy\.restricted_paths\[0\]/),
    ])
  })
})

test('[EC 24.2] what is wrong is told in the order of the lines', () => {
  const findings = findingsOf({
    global: `[privacy]\nrestricted_paths = ["a["]\n${ROUTE}[[classification.rules]]\nintent = "edit"\nkeywords = ["--"]\n`,
  })
  expect(findings.map((finding) => finding.split(':')[1])).toEqual(['2', '7'])
  const parsed = parseConfig(
    'f',
    '[privacy]\nrestricted = []\n[routing]\ndefault = 1\n[privacy.remote]\nmode = 2\n',
  )
  expect(parsed.ok ? [] : parsed.error.map(({ line }) => line)).toEqual([2, 4, 6])
})

describe('what is only advice stops nothing', () => {
  test('[EC 12.2] a permission that looks like a misspelt one, wherever it stands', () => {
    const global = `${ROUTE}[tools.permissions]\nshel = "deny"\nbrowse = "ask"\n[[routing.rules]]\nname = "r"\nmodel = "ollama/a"\nrequired_permissions = { permissions = { read_files = "deny" } }\n`
    const project = '[tools.permissions]\nshell = "deny"\n'
    expect(findingsOf({ global, project })).toEqual([])
    expect(adviceOf({ global, project })).toEqual([
      expect.stringMatching(/^switchyard:4: tools\.permissions\.shel: .*did you mean `shell`\?$/),
      expect.stringMatching(
        /^switchyard:9: routing\.rules\[0\]\..*\.read_files: .*did you mean `read_file`\?$/,
      ),
    ])
  })

  test('[EC 8.2] a pattern that is to take something back', () => {
    const global = `${ROUTE}[privacy]\nrestricted_paths = ["!open/**"]\n`
    expect(findingsOf({ global })).toEqual([])
    expect(adviceOf({ global })).toEqual([
      expect.stringMatching(/^switchyard:4: .*the pattern "!open\/\*\*" frees nothing/),
    ])
  })

  test('[EC 9] a private path that is read more widely than it is written', () => {
    const global = `${ROUTE}[privacy]\nrestricted_paths = ["~/.ssh/**", "notes"]\n`
    expect(findingsOf({ global })).toEqual([])
    expect(adviceOf({ global })).toEqual([
      expect.stringMatching(/^switchyard:4: privacy\.restricted_paths\[0\]: .*write `\*\*\/\.ssh\/\*\*`$/),
      expect.stringMatching(
        /^switchyard:4: privacy\.restricted_paths\[1\]: .*write `\*\*\/\{notes,notes\/\*\*\}`$/,
      ),
    ])
  })

  test('a rule above another that would match as well', () => {
    const rule = (name: string, priority: number) =>
      `[[routing.rules]]\nname = "${name}"\nintent = "plan"\npriority = ${priority}\nmodel = "ollama/a"\n`
    const global = `${ROUTE}${rule('for today', 1)}${rule('always', 5)}`
    expect(findingsOf({ global })).toEqual([])
    expect(adviceOf({ global })).toEqual([
      expect.stringMatching(/^switchyard:8: routing\.rules\[1\]: rule `always` is never reached/),
    ])
  })
})

test.each<[text: string, message: string]>([
  ['[classification]\ndefault_intent = "reveiw"', 'did you mean "review"?'],
  ['[tools.permissions]\nshell = "alow"', 'did you mean "allow"?'],
  ['[routing.default]\nmodel = "antropic/x"', 'did you mean anthropic/x?'],
  ['[routing.default]\nmodel = "ollama:qwen3"', 'did you mean ollama/qwen3?'],
  ['[routing.default]\nmodel = "mistral/x"', 'there is no provider "mistral"'],
  ['[routing.default]\nmodel = "home/small"', 'did you mean openai-compat:home/small?'],
])('[EC 24.2] a name that nothing bears comes with what was meant: %s', (text, message) => {
  const parsed = parseConfig('config.toml', text)
  expect(parsed.ok ? [] : parsed.error.map((finding) => [finding.line, finding.message])).toEqual([
    [2, expect.stringContaining(message)],
  ])
})

describe('[EC 24.2] a key that nobody knows', () => {
  const errorsOf = (text: string) => {
    const parsed = parseConfig('config.toml', text)
    return parsed.ok ? [] : parsed.error.map(({ line, message }) => `${line ?? '-'}: ${message}`)
  }
  const RULE = '[[routing.rules]]\nname = "r"\n'

  test.each([
    ['[privcy]\nx = 1', '1: privcy: no such setting; did you mean `privacy`?'],
    [
      '[privacy]\nrestricted_path = []',
      '2: privacy.restricted_path: no such setting; did you mean `restricted_paths`?',
    ],
    ['[privacy.remote]\nmod = "ask"', '2: privacy.remote.mod: no such setting; did you mean `mode`?'],
    [
      '[tools.permission]\nshell = "ask"',
      '1: tools.permission: no such setting; did you mean `permissions`?',
    ],
    [
      '[local_preferences]\nlocal-only = true',
      '2: local_preferences.local-only: no such setting; did you mean `local_only`?',
    ],
    ['[classification]\nweather = 1', '2: classification.weather: no such setting'],
    [
      `${RULE}model = "ollama/a"\neffrt = "low"`,
      '4: routing.rules[0].effrt: no such setting; did you mean `effort`?',
    ],
    [
      `${RULE}model = "ollama/a"\nrequires_capabilities = { image = true }`,
      '4: routing.rules[0].requires_capabilities.image: no such setting; did you mean `images`?',
    ],
    [
      '[routing.default]\nmodel = "ollama/a"\nfallback = []',
      '3: routing.default.fallback: no such setting; did you mean `fallbacks`?',
    ],
    // What it was meant for is not told to be missing besides.
    [`${RULE}modle = "ollama/a"`, '3: routing.rules[0].modle: no such setting; did you mean `model`?'],
    [
      '[tools]\n"my tool" = "ask"\nshell = "deny"',
      '2: tools.my tool: permissions have a table of their own: write `tools = { permissions = { "my tool" = "ask", shell = "deny" } }`',
    ],
  ])('comes with the one that was meant: %s', (text, expected) => {
    expect(errorsOf(text)).toEqual([expected])
  })

  test('is another thing than one that is missing', () => {
    expect(errorsOf('[[routing.rules]]\npriority = 1\n[[classification.rules]]\nkeywords = ["a"]')).toEqual([
      '1: routing.rules[0].name: is missing',
      '1: routing.rules[0].model: is missing',
      expect.stringMatching(/^3: classification\.rules\[0\]\.intent: is missing: it is one of "chat", /),
    ])
  })
})
