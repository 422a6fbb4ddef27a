/**
 * Turns that hold secrets, with the truth about them. Every piece of content carries a marker of its own; which markers
 * only local models may see is decided here from a file's one true name, whatever spelling the request gives it, and
 * without any of the router's own code for paths and patterns.
 */

import type { MemoryFact } from '../../../src/core/memory.ts'
import type { TurnView } from '../../../src/core/turn-view.ts'
import type { ModelDescriptor } from '../../../src/protocol/execution/models.ts'
import {
  EARLIER_RUN,
  makeFact,
  makeFile,
  makeModel,
  makeRequest,
  makeView,
  type RequestParts,
  RUN,
  userSays,
} from './builders.ts'
import { Conversation } from './private-conversations.ts'
import {
  BROKEN,
  type Fence,
  FILES,
  fencesAt,
  isRead,
  PLACES,
  type Place,
  spelled,
} from './private-project.ts'
import { diffOf } from './private-texts.ts'
import type { Random } from './random.ts'

/** Hands out markers and keeps the truth about each. */
export class Marks {
  /** Markers of content that only local models may see. */
  readonly secret: string[] = []
  /** All other markers. */
  readonly open: string[] = []

  mark = (isHidden: boolean): string => {
    const marker = `<<${this.secret.length + this.open.length + 1}>>`
    ;(isHidden ? this.secret : this.open).push(marker)
    return marker
  }
}

export type PrivateTurn = {
  view: TurnView
  models: ModelDescriptor[]
  secret: readonly string[]
  open: readonly string[]
  /** Markers of the parts of a diff that are free, where other parts of it are not. */
  openBesideSecrets: readonly string[]
  /** Something constrained cannot be left out. */
  bound: boolean
  /** No remote model may serve the turn, whatever it holds. */
  remoteForbidden: boolean
  localForbidden: boolean
}

export function makePrivateTurn(random: Random): PrivateTurn {
  const place = random.pick(PLACES)
  const fences = fencesAt(place)
  const rules = random.list(3, () => random.pick(fences))
  if (random.chance(0.04)) rules.push(BROKEN)
  const isSecret = (file: string): boolean => rules.some(({ hits }) => hits(file))
  const marks = new Marks()
  const { mark } = marks

  const referenced = random.chance(0.3) ? random.list(2, () => random.pick(FILES)) : []
  const active = random.chance(0.15) ? random.pick(FILES) : null
  const focus = random.chance(0.2) ? random.pick(FILES.filter((file) => !file.startsWith('../'))) : null
  const files = random.list(4, () => ({ file: random.pick(FILES), required: random.chance(0.2) }))
  const instruction = random.chance(0.3) ? random.pick(FILES) : null
  const diffed = random.chance(0.6) ? [random.pick(FILES), ...random.list(2, () => random.pick(FILES))] : []
  const diffMarks = diffed.map((file) => mark(isSecret(file)))
  const diff = diffed.map((file, index) => diffOf(file, diffMarks[index] ?? '', random)).join('')
  const invoked = random.chance(0.15) ? [makeSkill('invoked', place, isSecret, mark, random)] : []
  const available = random.list(2, () => makeSkill('offered', place, isSecret, mark, random))
  const preferences = { local_only: random.chance(0.08), no_network: random.chance(0.08) }
  const remoteMode = random.pick(['allow', 'ask', 'deny', null, 'allow'] as const)
  const localMode = random.chance(0.1) ? 'deny' : random.pick(['allow', 'ask', null] as const)
  const overridden = random.chance(0.15)

  const parts: RequestParts = {
    text: `prompt ${mark(false)}`,
    workspace: {
      root: place.root,
      referenced_paths: referenced.map((file) => spelled(file, place, random)),
      ...(active === null ? {} : { active_file: spelled(active, place, random) }),
      ...(diff === '' ? {} : { git_diff: diff }),
    },
    attachments: {
      files: files.map(({ file, required }) =>
        makeFile(spelled(file, place, random), `text ${mark(isSecret(file))} text`, required),
      ),
      instructions:
        instruction === null
          ? []
          : [
              {
                source: spelled(instruction, place, random),
                content: `rule ${mark(isSecret(instruction))}`,
              },
            ],
      invoked_skills: invoked.map(({ skill }) => skill),
      available_skills: available.map(({ skill }) => skill),
    },
    ...makePolicy(rules, focus, random),
    ...(overridden ? { explicitModel: random.pick(['openai/c', 'ollama/b']) } : {}),
    preferences,
  }
  const privacy = parts.privacy ?? {}
  privacy.remote = { ...privacy.remote, mode: remoteMode }
  privacy.local = { mode: localMode }

  const conversation = new Conversation({ random, place, isSecret, mark })
  const said = [
    ...random.list(2, (index) => conversation.run(`${EARLIER_RUN}-${index}`)).flat(),
    userSays(parts.text ?? ''),
    ...conversation.rounds(RUN),
  ]
  const remoteDeclined = random.chance(0.05)
  const view = makeView(makeRequest(parts), {
    said,
    memories: makeFacts(random, mark),
    remoteDeclined,
  })
  const { workspace, attachments } = view.runInput
  const named = [
    ...workspace.referenced_paths,
    workspace.active_file ?? '',
    ...attachments.files.map(({ path }) => path),
    ...conversation.namedNow,
  ]
  const headers = diff.split('\n').filter((line) => line.startsWith('diff --git '))
  const drives =
    focus !== null &&
    !overridden &&
    // What follows ` b/` in the header of a diff is a name, too.
    (named.some((name) => isRead(name, focus, place)) || headers.some((line) => line.endsWith(` b/${focus}`)))
  const required = [
    ...referenced,
    ...(active === null ? [] : [active]),
    ...files.filter(({ required }) => required).map(({ file }) => file),
    ...(instruction === null ? [] : [instruction]),
    ...conversation.touchedNow,
    ...(drives ? [focus] : []),
  ]
  const diffIsMixed = diffed.some(isSecret)
  return {
    view,
    models: makeModels(random),
    secret: marks.secret,
    open: marks.open,
    openBesideSecrets: diffIsMixed ? diffMarks.filter((marker) => marks.open.includes(marker)) : [],
    bound: required.some(isSecret) || invoked.some(({ hidden }) => hidden),
    remoteForbidden:
      preferences.local_only || preferences.no_network || remoteMode === 'deny' || remoteDeclined,
    localForbidden: localMode === 'deny',
  }
}

/** The patterns, spread over the three lists that a policy has for them. */
function makePolicy(
  fences: readonly Fence[],
  focus: string | null,
  random: Random,
): Pick<RequestParts, 'rules' | 'defaultRoute' | 'privacy'> {
  const lists: [string[], string[], string[]] = [[], [], []]
  for (const { pattern } of fences) random.pick(lists).push(pattern)
  const [restricted, blocked, localOnly] = lists
  const focused = {
    name: 'focus',
    priority: 1,
    paths: focus === null ? [] : [focus],
    model: 'anthropic/a',
    fallbacks: ['ollama/b'],
  }
  // What it makes local-only is part of the policy whether or not it wins.
  const fencing = {
    name: 'local',
    priority: 9,
    intent: 'skill' as const,
    paths: localOnly,
    local_only: true,
    model: 'ollama/b',
  }
  return {
    rules: [...(focus === null ? [] : [focused]), ...(localOnly.length === 0 ? [] : [fencing])],
    defaultRoute: {
      model: random.pick(['openai/c', 'anthropic/a', 'ollama/b']),
      fallbacks: ['ollama/b', 'openai/c'],
    },
    privacy: { restricted_paths: restricted, remote: { blocked_paths: blocked } },
  }
}

const SKILLS = ['inside', 'secrets', 'plain'] as const

/** A skill is known by its name, by the path that the client gives, or by the place where skills lie. */
function makeSkill(
  word: string,
  place: Place,
  isSecret: (file: string) => boolean,
  mark: Marks['mark'],
  random: Random,
) {
  const name = random.pick(SKILLS)
  const usual = `.agents/skills/${name}/SKILL.md`
  const file = random.pick([null, usual, `tools/${name}.md`])
  const hidden = isSecret(name) || isSecret(file ?? usual)
  const skill = {
    name,
    content: `# ${word} ${mark(hidden)}\nbody ${mark(hidden)}`,
    ...(file === null ? {} : { path: spelled(file, place, random) }),
  }
  return { skill, hidden }
}

/** What was remembered, now and then more than is shown; some of it by turns that were bound to local models. */
function makeFacts(random: Random, mark: Marks['mark']): MemoryFact[] {
  const someHidden = random.chance(0.6)
  return random.list(random.chance(0.04) ? 50 : 4, (index) => {
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

export const makeModels = (random: Random): ModelDescriptor[] => [
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
