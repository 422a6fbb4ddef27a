/**
 * Turns that hold secrets, with the truth about them. Every piece of content carries a marker of its own; which markers
 * only local models may see is decided here from a file's one true name, whatever spelling the request gives it, and
 * without any of the router's own code for paths and patterns.
 */

import type { MemoryFact } from '../../../src/core/memory.ts'
import type { TranscriptCall, TranscriptMessage } from '../../../src/core/transcript.ts'
import type { TurnView } from '../../../src/core/turn-view.ts'
import type { ModelDescriptor } from '../../../src/protocol/execution/models.ts'
import {
  EARLIER_RUN,
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

const ROOT = '/home/u/code'

/** True names, relative to the root. */
const FILES = [
  'src/a.ts',
  'src/lib/b.ts',
  'docs/read me.md',
  'secrets/key',
  'secrets/deep/er/key.txt',
  'app/.env',
  '.env',
  'certs/server.pem',
  'privé/notes.md',
  '../outside/x.ts',
]

const baseOf = (file: string): string => file.split('/').at(-1) ?? ''

/** Patterns as people write them, each with what it means. */
const PATTERNS: { pattern: string; hits: (file: string) => boolean }[] = [
  { pattern: 'secrets/**', hits: (file) => file.startsWith('secrets/') },
  { pattern: './secrets/**', hits: (file) => file.startsWith('secrets/') },
  { pattern: 'secrets/', hits: (file) => file.startsWith('secrets/') },
  { pattern: `${ROOT}/secrets/**`, hits: (file) => file.startsWith('secrets/') },
  { pattern: '**/.env', hits: (file) => baseOf(file) === '.env' },
  { pattern: '.env', hits: (file) => baseOf(file) === '.env' },
  { pattern: '*.pem', hits: (file) => file.endsWith('.pem') },
  { pattern: '{app,certs}/**', hits: (file) => /^(app|certs)\//.test(file) },
  { pattern: 'prive\u0301/**', hits: (file) => file.startsWith('privé/') },
  { pattern: '../outside/**', hits: (file) => file.startsWith('../outside/') },
  { pattern: '/home/u/outside/**', hits: (file) => file.startsWith('../outside/') },
  { pattern: 'nowhere/**', hits: () => false },
]
/** Fails closed: everything. */
const BROKEN = { pattern: 'secrets/[**', hits: () => true }

/** One of the ways in which a client or a model may write a file's name. */
function spelled(file: string, random: Random): string {
  const absolute = file.startsWith('../') ? `/home/u/${file.slice(3)}` : `${ROOT}/${file}`
  const [first = '', ...rest] = file.split('/')
  return random.pick([
    file,
    file,
    `./${file}`,
    absolute,
    `"${file}"`,
    file.replaceAll('/', '\\'),
    file.normalize('NFD'),
    `x/../${file}`,
    [first, '.', ...rest].join('/'),
    absolute.replace('/home/', '/home/./v/../'),
  ])
}

/** What git prints about a file, in one of its forms. */
function diffOf(file: string, marker: string, random: Random): string {
  const quoted = (side: string) =>
    `"${side}/${Array.from(new TextEncoder().encode(file), (byte) => (byte > 126 ? `\\${byte.toString(8).padStart(3, '0')}` : String.fromCharCode(byte))).join('')}"`
  const header = random.pick([
    `diff --git a/${file} b/${file}`,
    `diff --git ${quoted('a')} ${quoted('b')}`,
    `diff --git ${file} ${file}`,
    `diff --git i/${file} w/${file}`,
    `diff --git a/${file} b/other.ts`,
    `diff --git a/other.ts b/${file}`,
    `diff --git a/one.ts b/two.ts\nrename from ${file}\nrename to two.ts`,
    `diff --cc ${file}`,
    `--- a/${file}\n+++ b/${file}`,
    `--- a/${file}\t2026-01-01\n+++ /dev/null`,
  ])
  return `${header}\n@@ -1 +1 @@\n-${marker}\n`
}

export type PrivateTurn = {
  view: TurnView
  models: ModelDescriptor[]
  /** Markers of content that only local models may see. */
  secret: string[]
  /** All other markers. */
  open: string[]
  /** Something constrained cannot be left out. */
  bound: boolean
}

export function makePrivateTurn(random: Random): PrivateTurn {
  const rules = random.list(3, () => random.pick(PATTERNS))
  if (random.chance(0.05)) rules.push(BROKEN)
  const isSecret = (file: string): boolean => rules.some(({ hits }) => hits(file))
  const [restricted, blocked, localOnly] = splitInThree(
    rules.map(({ pattern }) => pattern),
    random,
  )
  const secret: string[] = []
  const open: string[] = []
  let markers = 0
  const mark = (isHidden: boolean): string => {
    const marker = `<<${++markers}>>`
    ;(isHidden ? secret : open).push(marker)
    return marker
  }

  const referenced = random.chance(0.3) ? random.list(2, () => random.pick(FILES)) : []
  const active = random.chance(0.15) ? random.pick(FILES) : null
  const focus = random.chance(0.2) ? random.pick(FILES) : null
  const files = random.list(4, () => ({ file: random.pick(FILES), required: random.chance(0.2) }))
  const instruction = random.chance(0.3) ? random.pick(FILES) : null
  const diffed = random.chance(0.6) ? [random.pick(FILES), ...random.list(1, () => random.pick(FILES))] : []

  const attached = files.map(({ file, required }) =>
    makeFile(spelled(file, random), `text ${mark(isSecret(file))} text`, required),
  )
  const diffHidden = diffed.some(isSecret)
  const diff = diffed.map((file) => diffOf(file, mark(diffHidden), random)).join('')
  const parts: RequestParts = {
    text: `prompt ${mark(false)}`,
    workspace: {
      root: ROOT,
      referenced_paths: referenced.map((file) => spelled(file, random)),
      ...(active === null ? {} : { active_file: spelled(active, random) }),
      ...(diff === '' ? {} : { git_diff: diff }),
    },
    attachments: {
      files: attached,
      instructions:
        instruction === null
          ? []
          : [{ source: spelled(instruction, random), content: `rule ${mark(isSecret(instruction))}` }],
      available_skills: [{ name: 'skill', content: `skill ${mark(false)}` }],
    },
    rules: [
      ...(focus === null
        ? []
        : [
            {
              name: 'focus',
              priority: 1,
              paths: [escaped(focus)],
              model: 'anthropic/a',
              fallbacks: ['ollama/b'],
            },
          ]),
      // What it makes local-only is part of the policy whether or not it wins.
      ...(localOnly.length === 0
        ? []
        : [
            {
              name: 'local',
              priority: 9,
              intent: 'skill' as const,
              paths: localOnly,
              local_only: true,
              model: 'ollama/b',
            },
          ]),
    ],
    defaultRoute: {
      model: random.pick(['openai/c', 'anthropic/a', 'ollama/b']),
      fallbacks: ['ollama/b', 'openai/c'],
    },
    ...(random.chance(0.15) ? { explicitModel: random.pick(['openai/c', 'ollama/b']) } : {}),
    privacy: {
      restricted_paths: restricted,
      remote: { mode: random.pick(['allow', 'ask', 'deny', null] as const), blocked_paths: blocked },
    },
    preferences: { local_only: random.chance(0.1), no_network: random.chance(0.1) },
  }

  const conversation = new Conversation(random, isSecret, mark)
  const said = [
    ...random.list(2, (index) => conversation.run(`${EARLIER_RUN}-${index}`)).flat(),
    userSays(parts.text ?? ''),
    ...conversation.rounds(RUN),
  ]
  const request = makeRequest(parts)
  const view = makeView(request, {
    said,
    memories: makeFacts(random, mark),
    remoteDeclined: random.chance(0.05),
  })
  const candidates = [
    ...referenced,
    ...(active === null ? [] : [active]),
    ...files.map(({ file }) => file),
    ...conversation.touchedNow,
  ]
  const overridden = parts.explicitModel !== undefined
  const wins =
    focus !== null && !overridden && (candidates.includes(focus) || diffNames(diff).includes(focus))
  const required = [
    ...referenced,
    ...(active === null ? [] : [active]),
    ...files.filter(({ file, required }) => required || (wins && file === focus)).map(({ file }) => file),
    ...(instruction === null ? [] : [instruction]),
    ...conversation.touchedNow,
  ]
  return { view, models: makeModels(random), secret, open, bound: required.some(isSecret) }
}

/** What was remembered, now and then more than is shown; some of it by turns that were bound to local models. */
function makeFacts(random: Random, mark: (isHidden: boolean) => string): MemoryFact[] {
  const someHidden = random.chance(0.6)
  return random.list(random.chance(0.05) ? 50 : 4, (index) => {
    const hidden = someHidden && random.chance(0.5)
    // Two facts may read alike: they are shown once, to those who may see both.
    const content = random.chance(0.1) ? 'the same' : `fact ${mark(hidden)}`
    return makeFact({
      scope: random.pick(['user', 'session'] as const),
      id: `fact-${index}`,
      ...(random.chance(0.8) ? { key: `key ${random.int(3)} ${mark(hidden)}` } : {}),
      content,
      ...(hidden ? { localOnly: true } : {}),
      updatedAtMs: random.int(3),
    })
  })
}

/** The names that routing reads out of a diff: what follows ` b/`. */
const diffNames = (diff: string): string[] =>
  FILES.filter((file) => diff.includes(` b/${file}\n`) || diff.includes(` "b/${file}"\n`))

const escaped = (file: string): string => (file.startsWith('../') ? `/home/u/${file.slice(3)}` : file)

function splitInThree(patterns: string[], random: Random): [string[], string[], string[]] {
  const lists: [string[], string[], string[]] = [[], [], []]
  for (const pattern of patterns) random.pick(lists).push(pattern)
  return lists
}

const makeModels = (random: Random): ModelDescriptor[] => [
  makeModel('anthropic/a', { auth: 'none' }),
  makeModel('openai/c', { auth: 'none', max_context_tokens: random.pick([1500, 100_000]) }),
  ...(random.chance(0.8)
    ? [
        makeModel('ollama/b', {
          max_context_tokens: random.pick([1500, 100_000]),
          capabilities: random.pick([{}, { tools: true }]),
        }),
      ]
    : []),
]

/** What was said before, with calls that read files and answers that repeat what they read. */
class Conversation {
  readonly touchedNow: string[] = []
  readonly #random: Random
  readonly #isSecret: (file: string) => boolean
  readonly #mark: (isHidden: boolean) => string

  constructor(random: Random, isSecret: (file: string) => boolean, mark: (isHidden: boolean) => string) {
    this.#random = random
    this.#isSecret = isSecret
    this.#mark = mark
  }

  /** An earlier run from its prompt to its answer. */
  run(runId: string): Omit<TranscriptMessage, 'seq'>[] {
    const rounds = this.rounds(runId)
    const hidden = rounds.some(({ text }) => text.startsWith('hidden'))
    return [
      userSays(`asked ${this.#mark(false)}`, { runId }),
      ...rounds,
      modelSays(`answer ${this.#mark(hidden)}`, { runId }),
    ]
  }

  /** Rounds of calls; once one has read a secret, so has everything after it. */
  rounds(runId: string): Omit<TranscriptMessage, 'seq'>[] {
    let hidden = false
    return this.#random.list(3, (index) => {
      const touched = this.#random.list(2, () => this.#random.pick(FILES))
      if (runId === RUN) this.touchedNow.push(...touched)
      hidden ||= touched.some(this.#isSecret)
      const calls = touched.map((file, ordinal) => this.#call(`${runId}-${index}-${ordinal}`, file, hidden))
      return modelSays(`${hidden ? 'hidden' : 'plain'} ${this.#mark(hidden)}`, { runId, calls })
    })
  }

  #call(id: string, file: string, hidden: boolean): TranscriptCall {
    const path = spelled(file, this.#random)
    const args = this.#random.pick<Record<string, unknown>>([
      { path },
      { file_path: path },
      { paths: ['src/other.ts', path] },
      { path, content: `written ${this.#mark(hidden)}` },
    ])
    return makeCall({ name: 'a_tool', id, arguments: args }, `result ${this.#mark(hidden)}`)
  }
}
