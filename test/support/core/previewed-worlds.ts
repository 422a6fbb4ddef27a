/**
 * Requests, and the sessions and deployments that they come to: whatever a preview may be asked about. Paths, patterns,
 * rules and models are few, so that they meet.
 */

import fc from 'fast-check'
import type { MemoryFact } from '../../../src/core/memory.ts'
import type { RunInput } from '../../../src/core/turn-view.ts'
import type { ModelDescriptor } from '../../../src/protocol/execution/models.ts'
import type { ProviderFailure } from '../../../src/providers/provider.ts'
import { makeFile, makeModel, makeRequest, type RequestParts } from './builders.ts'

/** A run that the session has had: what was asked, whom for, which file was read, and what was answered. */
export type EarlierRun = {
  text: string
  reference: string
  preferences: { local_only?: boolean }
  declines: boolean
  reads: string | null
  remembers: string | null
}

export type World = {
  earlier: EarlierRun[]
  body: RunInput
  facts: MemoryFact[]
  models: ModelDescriptor[]
  /** Providers that cannot be asked for their models, with why. */
  down: Record<string, ProviderFailure>
  /** Providers whose key comes with the request. */
  keys: string[]
  /** Whether the deployment's own local endpoints serve the caller (D14). */
  deploymentProviders: boolean
}

const LOCALS = ['ollama/small', 'openai-compat:lan/desk'] as const
const REMOTES = ['anthropic/big', 'openai/mid', 'openai-compat:cloud/far'] as const
const UNKNOWN = ['ollama/absent', 'gemini/none'] as const

const PATHS = [
  'src/a.ts',
  'src/deep/b.ts',
  './src/a.ts',
  '/code/src/c.ts',
  'docs/read me.md',
  'secrets/key',
  'app/.env',
  '.env',
  '../outside/x',
] as const
const GLOBS = [
  'src/**',
  'docs/*',
  '**/.env',
  'secrets/**',
  '*.ts',
  '/code/src/**',
  '[',
  '../outside/**',
] as const
const TEXTS = [
  'fix the parser',
  'plan the change',
  'please review this',
  'summarise it',
  'hello',
  'x'.repeat(4000),
] as const
const INTENTS = ['chat', 'plan', 'edit', 'review', 'summarize'] as const
const KINDS = [
  'git_diff',
  'active_file',
  'referenced_paths',
  'invoked_skill',
  'image',
  'tool_results',
] as const
const TOOLS = ['read_file', 'write_file', 'shell', 'memory', 'my_tool', 'network'] as const
const MODES = ['allow', 'ask', 'deny'] as const
/** What a call costs by the rates of the models: nothing, or around these limits. */
const LIMITS = ['0', '0.0001', '0.01', '100'] as const
/** The smallest PNG there is. */
const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='

const oneOf = <const T>(items: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...items)
const some = <T>(item: fc.Arbitrary<T>, maxLength = 2): fc.Arbitrary<T[]> => fc.array(item, { maxLength })
const rarely = <T, U>(item: fc.Arbitrary<T>, otherwise: U, freq = 4): fc.Arbitrary<T | U> =>
  fc.oneof({ weight: freq, arbitrary: fc.constant(otherwise) }, { weight: 1, arbitrary: item })

const reference = fc.oneof(
  { weight: 5, arbitrary: oneOf(LOCALS) },
  { weight: 6, arbitrary: oneOf(REMOTES) },
  { weight: 1, arbitrary: oneOf(UNKNOWN) },
)
const route = fc.record({ model: reference, fallbacks: some(reference, 3) })
const permissions = fc.dictionary(oneOf(TOOLS), oneOf(MODES), { minKeys: 1, maxKeys: 3 })
const skill = fc.record(
  {
    name: oneOf(['deploy', 'tidy up', 'read_file']),
    content: oneOf(['# How\nDo it.', 'y'.repeat(2000)]),
    path: oneOf([...PATHS, '.agents/skills/deploy/SKILL.md']),
  },
  { requiredKeys: ['name', 'content'] },
)

const rule = fc.record({
  name: oneOf(['first', 'second', 'third']),
  priority: oneOf([null, 1, 2]),
  effort: oneOf([null, 'low', 'high'] as const),
  intent: rarely(oneOf(INTENTS), null, 1),
  paths: rarely(some(oneOf(GLOBS)), [], 1),
  local_only: rarely(fc.constant(true), null, 6),
  requires_capabilities: rarely(oneOf([{ images: true }, { json_output: true }, { tools: true }]), null, 8),
  model: reference,
  fallbacks: some(reference),
  required_permissions: rarely(fc.record({ permissions }), null, 2),
  cost_limit: rarely(oneOf(LIMITS), null, 2),
})

const diff = oneOf(PATHS).map(
  (path) => `diff --git a/${path} b/${path}\n--- a/${path}\n+++ b/${path}\n@@ -1 +1 @@\n-old\n+new\n`,
)

const DECLARED: NonNullable<NonNullable<RequestParts['attachments']>['tools']> = [
  {
    name: 'my_tool',
    description: 'Does it.',
    parameters: { type: 'object' },
    permission: null,
    changes_files: false,
    reaches_network: true,
  },
]

const parts: fc.Arbitrary<RequestParts> = fc
  .record({
    text: oneOf(TEXTS),
    command: rarely(oneOf(['plan', ...INTENTS]), null, 2),
    explicitModel: rarely(reference, null, 8),
    referenced: rarely(some(oneOf(PATHS)), [], 2),
    activeFile: rarely(oneOf(PATHS), null, 3),
    diffs: rarely(some(diff), [], 2),
    root: oneOf(['/code', '/code', '/']),
    classification: rarely(
      some(
        fc.record({
          intent: oneOf(INTENTS),
          priority: oneOf([null, 1]),
          keywords: some(oneOf(['fix', 'review', 'plan', 'summarize'])),
          requires_any_context: some(oneOf(KINDS)),
        }),
        3,
      ),
      [],
      1,
    ),
    rules: some(rule, 3),
    defaultRoute: fc.oneof({ weight: 9, arbitrary: route }, { weight: 1, arbitrary: fc.constant(null) }),
    permissions,
    privacy: fc.record({
      restricted: rarely(some(oneOf(GLOBS)), ['secrets/**'], 1),
      blocked: rarely(some(oneOf(GLOBS)), []),
      remote: oneOf(['allow', 'allow', 'allow', 'ask', 'ask', 'deny', null] as const),
      local: rarely(oneOf(MODES), null, 6),
    }),
    preferences: fc.record({
      local_only: rarely(fc.constant(true), false, 6),
      no_network: rarely(fc.constant(true), false, 9),
      auto_apply: fc.boolean(),
    }),
    files: some(
      fc
        .record({
          path: oneOf(PATHS),
          content: oneOf(['text', 'z'.repeat(6000), PIXEL]),
          required: rarely(fc.constant(true), false, 3),
        })
        .map(({ path, content, required }) => makeFile(path, content, required)),
      3,
    ),
    instructions: rarely(
      some(fc.record({ source: oneOf(['AGENTS.md', ...PATHS]), content: fc.constant('be brief') })),
      [],
      2,
    ),
    invoked: rarely(some(skill, 1), [], 3),
    available: rarely(some(skill), [], 2),
    tools: rarely(fc.constant(DECLARED), [], 3),
  })
  .map((made) => ({
    text: made.text,
    ...(made.command === null ? {} : { command: made.command }),
    ...(made.explicitModel === null ? {} : { explicitModel: made.explicitModel }),
    workspace: {
      root: made.root,
      referenced_paths: made.referenced,
      active_file: made.activeFile,
      git_diff: made.diffs.length === 0 ? null : made.diffs.join(''),
    },
    classification: { rules: made.classification },
    rules: made.rules,
    defaultRoute: made.defaultRoute,
    permissions: made.permissions,
    privacy: {
      restricted_paths: made.privacy.restricted,
      remote: { mode: made.privacy.remote, blocked_paths: made.privacy.blocked },
      local: { mode: made.privacy.local },
    },
    preferences: made.preferences,
    attachments: {
      files: made.files,
      instructions: made.instructions,
      invoked_skills: made.invoked,
      available_skills: made.available,
      tools: made.tools,
    },
  }))

const CAPABILITIES = [
  {},
  { tools: true },
  { tools: true, images: true, reasoning: true, memory: true },
] as const

const models: fc.Arbitrary<ModelDescriptor[]> = fc.tuple(
  ...[...LOCALS, ...REMOTES].map((name) =>
    fc
      .record({
        auth: oneOf(['none', 'none', 'optional_api_key', 'api_key'] as const),
        capabilities: oneOf([...CAPABILITIES, CAPABILITIES[2], CAPABILITIES[2], CAPABILITIES[2]]),
        max_context_tokens: oneOf([1200, 3000, 100_000, 100_000, 100_000, 100_000]),
        max_output_tokens: oneOf([null, 100]),
        rate: oneOf([null, '0', '3', '15']),
      })
      .map(({ rate, ...fields }) => {
        const {
          input_cost_per_million_tokens: _,
          output_cost_per_million_tokens: __,
          ...model
        } = makeModel(name, { ...fields, local: LOCALS.some((local) => local === name) })
        return rate === null
          ? model
          : { ...model, input_cost_per_million_tokens: rate, output_cost_per_million_tokens: rate }
      }),
  ),
)

const PROVIDERS = ['ollama', 'openai-compat:lan', 'anthropic', 'openai', 'openai-compat:cloud'] as const

const earlier: fc.Arbitrary<EarlierRun> = fc.record({
  text: oneOf(TEXTS),
  reference: oneOf([...LOCALS, ...REMOTES]),
  preferences: oneOf([{}, {}, { local_only: true }]),
  declines: rarely(fc.constant(true), false),
  reads: rarely(oneOf(PATHS), null, 1),
  remembers: rarely(oneOf(['the port is 8080', 'w'.repeat(700)]), null, 2),
})

const fact: fc.Arbitrary<Omit<MemoryFact, 'id'>> = fc.record({
  scope: fc.constant('user' as const),
  key: oneOf(['port', 'style']),
  content: oneOf(['8080', 'v'.repeat(600)]),
  updatedAtMs: oneOf([1, 2]),
})

export const world: fc.Arbitrary<World> = fc
  .record({
    earlier: some(earlier),
    parts,
    facts: some(fc.tuple(fact, fc.boolean())),
    models,
    down: fc.dictionary(
      rarely(oneOf(PROVIDERS), 'gemini', 2),
      oneOf<ProviderFailure>([
        { category: 'provider_unavailable', message: 'down' },
        { category: 'authentication', message: 'no' },
        { category: 'invalid_configuration', message: 'contradictory' },
      ]),
      { maxKeys: 1 },
    ),
    keys: fc.subarray([...PROVIDERS], { minLength: 4 }),
    deploymentProviders: rarely(fc.constant(false), true, 9),
  })
  .map(({ parts: made, facts, ...rest }) => ({
    ...rest,
    body: makeRequest(made),
    facts: facts.map(([fields, isLocal], index) => ({
      ...fields,
      id: `fact-${index}`,
      ...(isLocal ? { localOnly: true as const } : {}),
    })),
  }))
