/** Turns that are valid by the wire's schemas and as strange as those allow: nothing in them may make the router throw. */

import type { Lookup } from '../../../src/core/select.ts'
import type { TranscriptMessage } from '../../../src/core/transcript.ts'
import type { TurnView } from '../../../src/core/turn-view.ts'
import { failure } from '../../../src/protocol/execution/errors.ts'
import type { ModelDescriptor } from '../../../src/protocol/execution/models.ts'
import {
  makeCall,
  makeFact,
  makeFile,
  makeModel,
  makeRequest,
  makeView,
  modelSays,
  type RequestParts,
  RUN,
  userSays,
} from './builders.ts'
import type { Random } from './random.ts'

const TEXTS = [
  '',
  ' ',
  'fix the parser',
  'reviwe refactro summarise',
  'constructor __proto__ toString',
  'ÄÖÜ ß İ ﬁ 日本語 😀',
  '\ud83d half a pair \ude00',
  '\0\u0007\u2028\n\r\t',
  'x'.repeat(3000),
  '"quoted" \\ {braces} [class] *?',
]

const PATHS = [
  '',
  '.',
  '..',
  '/',
  '//',
  'src/a.ts',
  './src/../src/a.ts',
  '../../../etc/passwd',
  'C:\\work\\a.ts',
  'C:',
  '"src/a.ts"',
  '"',
  'a'.repeat(5000),
  'emoji/😀.ts',
  'cafe\u0301/x',
  '\ud83d',
  'a\nb',
  ' ',
  '__proto__',
  'constructor',
]

const GLOBS = [
  '',
  '*',
  '**',
  '**/**',
  'src/**',
  '[',
  '[a',
  '{',
  '{a,b',
  '}',
  '\\',
  '[z-a]',
  '{a,{b,c}}',
  '?'.repeat(17),
  'x'.repeat(300),
  '**/.env',
  '*'.repeat(16),
  '{,}'.repeat(10),
  '😀*',
  '/',
  './',
]

const DIFFS = [
  '',
  'diff --git ',
  'diff --git a/x b/x',
  'diff --git "a/\\303" "b/\\303"',
  'diff --git a b c d e',
  'rename from ',
  '--- \n+++ ',
  'no diff at all',
  `diff --git a/${'x '.repeat(200)}b/y`,
]

const REFERENCES = [
  'ollama/local-model',
  'anthropic/remote-model',
  'OpenAI/GPT',
  'openai-compat:x/y/z',
  'gemini/ ',
  'openai-compat:nobody/a',
]

const INTENTS = ['chat', 'plan', 'edit', 'review', 'summarize', 'prompt', 'skill'] as const
const KINDS = [
  'git_diff',
  'git_branch',
  'active_file',
  'referenced_paths',
  'tool_results',
  'tool_error',
  'pull_request',
  '',
  '__proto__',
]
const PRIORITIES = [0, 1, 1000, Number.MAX_SAFE_INTEGER, null]
const NAMES = ['', 'rule', 'rule', 'rule', '😀', '__proto__']
const TOOL_NAMES = ['read_file', 'shell', 'memory', 'constructor', '__proto__', 'toString', 'a-b', 'A_9']
const MODES = ['allow', 'ask', 'deny'] as const
const MONEY = ['0', '0.000000000000000001', '999999999999999999', '0.10', null]

export function makeWeirdTurn(random: Random): {
  view: TurnView
  models: ModelDescriptor[]
  lookups: Record<string, Lookup>
  without: string[]
} {
  const text = () => random.pick(TEXTS)
  const path = () => random.pick(PATHS)
  const globs = () =>
    random.list(2, () =>
      random.chance(0.2) ? random.pick(GLOBS) : random.pick(['src/**', '**/.env', 'docs/**']),
    )
  const permissions = () =>
    Object.fromEntries(
      random.list(4, () => [random.pick([...TOOL_NAMES, 'file_write', 'git', '']), random.pick(MODES)]),
    )
  const references = () => random.list(3, () => random.pick(REFERENCES))
  const skill = () => ({ name: random.pick([...TOOL_NAMES, '', 'my skill', '日本']), content: text() })

  const parts: RequestParts = {
    text: text(),
    ...(random.chance(0.3) ? { command: random.pick([...INTENTS, null]) } : {}),
    ...(random.chance(0.2) ? { explicitModel: random.pick(REFERENCES) } : {}),
    workspace: {
      root: random.pick(['/code', '', '/', '.', 'C:\\work', ...PATHS]),
      referenced_paths: random.list(3, path),
      ...(random.chance(0.3) ? { active_file: random.pick([...PATHS, null]) } : {}),
      ...(random.chance(0.5) ? { git_diff: random.pick([...DIFFS, null]) } : {}),
      ...(random.chance(0.3) ? { git_branch: random.pick(['', 'main', null]) } : {}),
    },
    classification: {
      ...(random.chance(0.5) ? { default_intent: random.pick(INTENTS) } : {}),
      rules: random.list(4, () => ({
        intent: random.pick(INTENTS),
        priority: random.pick(PRIORITIES),
        keywords: random.list(3, text),
        requires_any_context: random.list(2, () => random.pick(KINDS)),
      })),
    },
    rules: random.list(5, () => ({
      name: random.pick(NAMES),
      priority: random.pick(PRIORITIES),
      effort: random.pick(['low', 'medium', 'high', 'xhigh', null] as const),
      intent: random.pick([...INTENTS, null]),
      paths: globs(),
      local_only: random.pick([true, false, null]),
      requires_capabilities: random.pick([null, {}, { tools: true }, { images: true, memory: false }]),
      model: random.pick(REFERENCES),
      fallbacks: references(),
      required_permissions: random.chance(0.08) ? { permissions: permissions() } : null,
      cost_limit: random.pick(MONEY),
    })),
    defaultRoute: random.chance(0.1) ? null : { model: random.pick(REFERENCES), fallbacks: references() },
    permissions: permissions(),
    privacy: {
      restricted_paths: globs(),
      remote: random.pick([null, {}, { mode: 'deny' }, { mode: null, blocked_paths: globs() }]),
      local: random.pick([null, { mode: 'deny' }]),
    },
    preferences: {
      local_only: random.chance(0.2),
      no_network: random.chance(0.1),
      auto_apply: random.chance(0.5),
    },
    attachments: {
      files: random.list(4, () => makeFile(path(), text(), random.chance(0.3))),
      instructions: random.list(2, () => ({ source: path(), content: text() })),
      invoked_skills: random.list(2, skill),
      available_skills: random.list(3, skill),
      tools: random.chance(0.1)
        ? random.list(2, () => ({
            name: random.pick(TOOL_NAMES),
            description: random.pick(['', 'Does things.', null]),
            parameters: random.pick([
              {},
              { required: 7 },
              { required: ['a', 3] },
              { type: 'object', nested: { deep: [null] } },
            ]),
            permission: random.pick([...MODES, null]),
            changes_files: random.pick([true, false, null]),
          }))
        : null,
    },
  }
  const view = makeView(makeRequest(parts), {
    said: makeSaid(random, text, path),
    firstTurn: random.chance(0.5),
    planning: random.chance(0.2),
    planApproved: random.chance(0.3),
    remoteDeclined: random.chance(0.1),
    olderMessages: random.pick([0, 0, 1, 5000]),
    memories: random.list(random.chance(0.05) ? 45 : 2, (index) =>
      makeFact({
        scope: random.pick(['user', 'session'] as const),
        id: `fact-${index}`,
        ...(random.chance(0.5) ? { key: text() } : {}),
        content: text(),
        ...(random.chance(0.2) ? { localOnly: true } : {}),
        updatedAtMs: random.int(5),
      }),
    ),
  })
  const lookups: Record<string, Lookup> = {}
  for (const reference of random.list(1, () => random.pick(REFERENCES)))
    lookups[reference.toLowerCase()] = random.pick<Lookup>([
      { k: 'absent' },
      { k: 'unavailable', failure: failure('provider_unavailable', 'down') },
    ])
  return {
    view,
    models: makeModels(random),
    lookups,
    without: random.list(2, () => random.pick(['anthropic', 'openai', 'gemini'])),
  }
}

const makeModels = (random: Random): ModelDescriptor[] =>
  ['ollama/local-model', 'anthropic/remote-model', 'openai/GPT', 'openai-compat:x/y/z', 'gemini/ '].map(
    (reference) =>
      makeModel(reference, {
        local: random.chance(0.7),
        capabilities: random.pick([{}, { tools: true }, { tools: true, images: true, reasoning: false }]),
        max_context_tokens: random.pick([0, 900, 8000, 1_000_000, 1_000_000, 1_000_000]),
        max_output_tokens: random.pick([null, 0, 500, 500, 500, 2_000_000]),
        ...(random.chance(0.5)
          ? {
              input_cost_per_million_tokens: '0.000000000000000001',
              output_cost_per_million_tokens: '999999',
            }
          : {}),
      }),
  )

function makeSaid(random: Random, text: () => string, path: () => string): Omit<TranscriptMessage, 'seq'>[] {
  const value = () =>
    random.pick<unknown>([path(), text(), null, 7, true, [path(), null, 3], { path: path() }])
  const call = () =>
    makeCall(
      {
        name: random.pick([...TOOL_NAMES, '']),
        id: `call-${random.int(1000)}`,
        arguments: Object.fromEntries(
          random.list(3, () => [
            random.pick(['path', 'paths', 'file', 'command', 'constructor', '']),
            value(),
          ]),
        ),
        isError: random.chance(0.3),
        changesFiles: random.chance(0.3),
        ...(random.chance(0.3) ? { providerCallId: random.pick(['', 'p1']) } : {}),
        ...(random.chance(0.2) ? { opaque: { signature: text() } } : {}),
      },
      random.chance(0.9) ? text() : null,
    )
  const message = (runId: string) =>
    random.chance(0.4)
      ? userSays(text(), { runId })
      : modelSays(text(), {
          runId,
          provider: random.pick(['ollama', 'anthropic', 'openai']),
          interrupted: random.chance(0.2),
          calls: random.list(2, call),
        })
  return [
    ...random.list(4, () => message(random.pick(['before', 'earlier']))),
    // A run begins with its prompt.
    ...(random.chance(0.95) ? [userSays(text())] : []),
    ...random.list(4, () => message(RUN)),
  ]
}
