/** Requests of every kind for the naive routing, with what it has to be told of them: the one name of each path. */

import type { TurnView } from '../../../src/core/turn-view.ts'
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
import { absoluteOf, BROKEN, type Fence, FILES, fencesAt, PLACES, spelled } from './private-project.ts'
import type { Random } from './random.ts'

const INTENTS = ['chat', 'plan', 'edit', 'review', 'summarize', 'prompt', 'skill'] as const
const WORDS = [
  'fix',
  'Review',
  'reveiw',
  'refactor',
  'refactro',
  'summarise',
  'plan',
  'reviews',
  'naïve',
  'x_y',
  'a-b',
]
const KEYWORDS = ['fix', 'review', 'refactor', 'summarize', 'PLAN', 'naïve', 'a-b', 'two words', 'x']
/** A keyword with some letters left out, doubled, changed or swapped. */
function mistyped(keyword: string, random: Random): string {
  const letters = [...keyword]
  for (let left = random.int(4); left > 0; left--) {
    const at = random.int(letters.length)
    const [letter = '', next = ''] = letters.slice(at)
    const put: string[] = random.pick([[], [letter, letter], ['q'], [next, letter]])
    letters.splice(at, put[0] === next ? 2 : 1, ...put)
    if (letters.length === 0) return keyword
  }
  return letters.join('')
}

const KINDS = [
  'git_diff',
  'git_branch',
  'active_file',
  'referenced_paths',
  'pull_request',
  'tool_results',
  'tool_error',
  'file_changed',
  'plan_approved',
  'invoked_skill',
]
const REFERENCES = [
  'anthropic/a',
  'openai/c',
  'openai/c/with/slashes',
  'gemini/g',
  'ollama/b',
  'openai-compat:box/d',
  'ollama/nobody',
]
const GLOBS = [
  'src/**',
  '**/*.ts',
  'src/*.ts',
  '*.md',
  'docs/*',
  '**',
  'src/[ab].ts',
  '{src,docs}/**',
  'src/a.t?',
  'src',
]
const TOOLS = ['read_file', 'write_file', 'edit_file', 'shell', 'memory']
const MODES = ['allow', 'ask', 'deny'] as const
const INVALID = 'src/[a'

export type RoutingCase = {
  view: TurnView
  models: ModelDescriptor[]
  down: string[]
  without: string[]
  nameOf(path: string): string
  isPrivate(name: string): boolean
}

export function makeRoutingCase(random: Random): RoutingCase {
  const place = random.pick(PLACES.slice(0, 3))
  const fences = fencesAt(place)
  const names = new Map<string, string>()
  const nameOfFile = (file: string): string => (file.startsWith('../') ? absoluteOf(file, place) : file)
  const path = (): string => {
    const file = random.pick(FILES)
    const spelling = spelled(file, place, random)
    names.set(spelling, nameOfFile(file))
    return spelling
  }
  const fence = (): Fence => (random.chance(0.02) ? BROKEN : random.pick(fences))
  const patterns = (): Fence[] =>
    random.list(2, () =>
      random.chance(0.5)
        ? fence()
        : { pattern: random.chance(0.05) ? INVALID : random.pick(GLOBS), hits: () => false },
    )
  const fencing: Fence[] = []
  const rules = random.list(4, (index) => {
    const isLocal = random.chance(0.15)
    // What a local-only rule names is private: only patterns of which that is known.
    const paths = isLocal ? random.list(2, fence) : patterns()
    if (isLocal) fencing.push(...paths)
    return {
      name: `rule ${index}`,
      priority: random.pick([1, 2, null]),
      effort: random.pick(['low', 'medium', 'medium', 'medium', 'high', 'xhigh', null] as const),
      intent: random.pick([...INTENTS, null, null, null]),
      paths: paths.map(({ pattern }) => pattern),
      local_only: isLocal,
      requires_capabilities: random.pick([null, null, {}, { tools: true }, { images: true, memory: false }]),
      model: random.pick(REFERENCES),
      fallbacks: random.list(3, () => random.pick(REFERENCES)),
      ...(random.chance(0.1)
        ? { required_permissions: { permissions: { [random.pick(TOOLS)]: random.pick(MODES) } } }
        : {}),
    }
  })
  const listed = [random.list(1, fence), random.list(1, fence)]
  fencing.push(...listed.flat())
  const [restricted, blocked] = listed.map((list) => list.map(({ pattern }) => pattern))
  const word = () => (random.chance(0.4) ? mistyped(random.pick(KEYWORDS), random) : random.pick(WORDS))
  const text = () => random.list(4, word).join(random.pick([' ', ', ', '-']))
  const diff = diffAt(random, random.pick([0, 0, 1, 3]))
  const firstTurn = random.chance(0.4)

  const parts: RequestParts = {
    text: text(),
    ...(random.chance(0.2) ? { command: random.pick(INTENTS) } : {}),
    ...(random.chance(0.15) ? { explicitModel: random.pick(REFERENCES) } : {}),
    workspace: {
      root: place.root,
      referenced_paths: random.chance(0.3) ? random.list(2, path) : [],
      ...(random.chance(0.2) ? { active_file: path() } : {}),
      ...(random.chance(0.2) ? { git_branch: random.pick(['', 'main']) } : {}),
      ...(diff === null ? {} : { git_diff: diff }),
    },
    classification: {
      ...(random.chance(0.5) ? { default_intent: random.pick(INTENTS) } : {}),
      rules: random.list(4, () => ({
        intent: random.pick(INTENTS),
        priority: random.pick([1, 2, 1000, null]),
        keywords: random.list(2, () => random.pick(KEYWORDS)),
        requires_any_context: random.list(2, () => random.pick(KINDS)),
      })),
    },
    rules,
    defaultRoute: random.chance(0.15)
      ? null
      : { model: random.pick(REFERENCES), fallbacks: random.list(3, () => random.pick(REFERENCES)) },
    permissions: Object.fromEntries(random.list(2, () => [random.pick(TOOLS), random.pick(MODES)])),
    privacy: {
      restricted_paths: restricted ?? [],
      remote: {
        mode: random.pick(['allow', 'allow', 'ask', 'deny', null] as const),
        blocked_paths: blocked ?? [],
      },
      ...(random.chance(0.2) ? { local: { mode: random.pick(['allow', 'ask', 'deny'] as const) } } : {}),
    },
    preferences: { local_only: random.chance(0.08), no_network: random.chance(0.08) },
    attachments: {
      files: random.list(3, (index) =>
        makeFile(path(), `${index} `.repeat(random.pick([1, 40, 400])), random.chance(0.15)),
      ),
      instructions: random.list(1, () => ({ source: 'AGENTS.md', content: 'Be kind. '.repeat(9) })),
      invoked_skills: random.chance(0.1) ? [{ name: 'alpha', content: 'how to alpha' }] : [],
      available_skills: random.list(1, () => ({ name: 'beta', content: 'what beta is\nand more' })),
    },
  }
  const view = makeView(makeRequest(parts), {
    said: makeSaid(parts.text ?? '', firstTurn, text, path, place.root, random),
    firstTurn,
    planApproved: !firstTurn && random.chance(0.3),
    remoteDeclined: random.chance(0.06),
    memories: random.list(3, (index) =>
      makeFact({
        scope: random.pick(['user', 'session'] as const),
        key: `key ${index}`,
        content: `fact ${index}`,
        ...(random.chance(0.3) ? { localOnly: true } : {}),
        updatedAtMs: index,
      }),
    ),
  })
  return {
    view,
    models: makeModels(random),
    down: random.chance(0.15) ? [random.pick(['anthropic', 'openai', 'gemini', 'ollama'])] : [],
    without: random.list(2, () => random.pick(['anthropic', 'openai', 'gemini'])),
    nameOf: (spelling) => names.get(spelling) ?? spelling,
    isPrivate: (name) => fencing.some(({ hits }) => hits(trueName(name, place.parent))),
  }
}

/** Outside of the root a path is known by its absolute name; patterns are told of it as seen from the root. */
const trueName = (name: string, parent: string): string =>
  name.startsWith(`${parent}/outside/`) ? `..${name.slice(parent.length)}` : name

function diffAt(random: Random, files: number): string | null {
  if (files === 0) return random.chance(0.1) ? '' : null
  const inside = FILES.filter((file) => !file.startsWith('../'))
  return Array.from({ length: files }, (_, index) => {
    const file = random.pick(inside)
    return `diff --git a/${file} b/${file}\n--- a/${file}\n+++ b/${file}\n@@ -1 +1 @@\n+${`${index} `.repeat(random.pick([1, 200]))}\n`
  }).join('')
}

const makeModels = (random: Random): ModelDescriptor[] =>
  REFERENCES.filter((reference) => reference !== 'ollama/nobody' && random.chance(0.9)).map((reference) =>
    makeModel(reference, {
      local: reference.startsWith('ollama') || reference.startsWith('openai-compat'),
      auth: random.pick(['none', 'api_key', 'optional_api_key'] as const),
      capabilities: random.pick([
        {},
        { tools: true },
        { tools: true, reasoning: true },
        { tools: true, images: true, reasoning: true, memory: true },
      ]),
      max_context_tokens: random.pick([400, 1500, 2000, 3000, 100_000, 100_000]),
      max_output_tokens: random.pick([null, 300, 1000]),
    }),
  )

/** Earlier runs, and what this one has come to. */
function makeSaid(
  prompt: string,
  firstTurn: boolean,
  text: () => string,
  path: () => string,
  root: string,
  random: Random,
): NonNullable<NonNullable<Parameters<typeof makeView>[1]>['said']> {
  const call = (index: number) =>
    makeCall({
      name: random.pick(['read_file', 'write_file']),
      id: `call-${index}`,
      arguments: { path: path() },
      isError: random.chance(0.3),
      changesFiles: random.chance(0.3),
    })
  const rounds = (runId: string) =>
    random.list(2, (index) => modelSays(text(), { runId, calls: [call(index)] }))
  const earlier = random.list(2, (index) => {
    const runId = `earlier-${index}`
    const local = random.chance(0.1) ? { localOnly: true as const } : {}
    return [
      userSays(text(), { runId, ...local }),
      ...rounds(runId).map((message) => ({ ...message, ...local })),
      modelSays(text(), {
        runId,
        ...local,
        ...(random.chance(0.3) ? { seen: { under: 'an earlier policy', root, files: [path()] } } : {}),
      }),
    ]
  })
  const now = firstTurn ? [] : rounds(RUN)
  const injected = !firstTurn && random.chance(0.2) ? [userSays(text())] : []
  return [...earlier.flat(), userSays(prompt), ...now, ...injected]
}
