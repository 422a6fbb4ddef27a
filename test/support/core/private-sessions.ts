/** Whole sessions of several runs under policies that change between them, with models that repeat what they have seen. */

import fc from 'fast-check'
import type { ModelRequest } from '../../../src/core/prompt.ts'
import type { RunInput } from '../../../src/core/turn-view.ts'
import type { ModelDescriptor } from '../../../src/protocol/execution/models.ts'
import type { ToolRequest } from '../../../src/protocol/execution/turn.ts'
import type { ModelEvent } from '../../../src/providers/provider.ts'
import { makeFile, makeModel, makeRequest } from './builders.ts'
import { PlayedSession } from './played-session.ts'
import { type Fence, FILES, fencesAt, PLACES, type Place, spelled } from './private-project.ts'
import { Taints } from './private-taints.ts'
import { attributed, callOn, diffOf } from './private-texts.ts'
import { madeAtRandom, type Random } from './random.ts'
import { decision, inject, results } from './run-machine.ts'

/** How often each thing happened. */
export type Happened = Record<
  | 'asked remote'
  | 'asked local'
  | 'local saw secrets'
  | 'remote saw earlier words'
  | 'remote beside withheld words'
  | 'declined'
  | 'skill called'
  | 'policy got stricter',
  number
>

const nothingHappened = (): Happened => ({
  'asked remote': 0,
  'asked local': 0,
  'local saw secrets': 0,
  'remote saw earlier words': 0,
  'remote beside withheld words': 0,
  declined: 0,
  'skill called': 0,
  'policy got stricter': 0,
})

const MODELS = [
  makeModel('anthropic/a', { auth: 'none' }),
  makeModel('openai/c', { auth: 'none' }),
  makeModel('ollama/b', { capabilities: { tools: true } }),
]

/** A skill that some policies keep private. */
const SKILL = 'inside'

/** Calls of a run, at most: then its model answers. */
const MAX_ROUNDS = 3

/**
 * Plays `count` sessions; throws, with what repeats the case, when a remote provider gets what only local models may see.
 * Gives how often each thing happened.
 */
export async function checkSessions(count: number, seed: number): Promise<Happened> {
  const happened = nothingHappened()
  const holds = fc.asyncProperty(
    madeAtRandom((random) => random),
    (random) => playSession(random, happened),
  )
  await fc.assert(holds, { numRuns: count, seed })
  return happened
}

async function playSession(random: Random, happened: Happened): Promise<void> {
  const player = new Player(random, happened)
  const runs = 2 + random.int(3)
  for (let run = 0; run < runs; run++) await player.run(run)
}

class Player {
  readonly #random: Random
  readonly #happened: Happened
  readonly #place: Place
  readonly #taints = new Taints()
  readonly #session: PlayedSession
  #run = 0
  #isSecret: (file: string) => boolean = () => false
  #isKeptLocal = false
  #rounds = 0
  /** What a call that is under way will bring, by what its arguments say. */
  readonly #results = new Map<string, string>()

  constructor(random: Random, happened: Happened) {
    this.#random = random
    this.#happened = happened
    this.#place = random.pick(PLACES)
    this.#session = new PlayedSession(MODELS, (model, request) => this.#answer(model, request))
  }

  async run(run: number): Promise<void> {
    const random = this.#random
    this.#run = run
    this.#rounds = 0
    let outcome = await this.#session.execute(this.#request())
    for (;;) {
      if (outcome.status === 'awaiting_tool') {
        const calls = outcome.data.tool_requests
        if (random.chance(0.1)) {
          outcome = await this.#session.continue(inject(`also ${this.#words()}`))
          continue
        }
        const [first, ...rest] = calls.map((call) =>
          results([call.call_id], { content: this.#resultOf(call) }),
        )
        if (first?.type !== 'tool_results') throw new Error('no call waits')
        for (const one of rest) if (one.type === 'tool_results') first.data.results.push(...one.data.results)
        outcome = await this.#session.continue(first)
      } else if (outcome.status === 'awaiting_approval') {
        const { approval } = outcome.data
        const approves = random.chance(0.7)
        if (!approves && approval.detail?.local !== true) {
          this.#happened.declined++
          this.#isKeptLocal = true
          this.#taints.keepLocal(run)
        }
        outcome = await this.#session.continue(
          decision(approval.approval_id, approves ? 'approved' : 'rejected'),
        )
      } else {
        if (outcome.status === 'error' && outcome.data.error.code === 'internal_error')
          throw new Error(`the router failed: ${JSON.stringify(outcome.data.error)}`)
        return
      }
    }
  }

  /** A request under a policy of its own. */
  #request(): RunInput {
    const random = this.#random
    const fences = random.list(3, () => random.pick(fencesAt(this.#place)))
    const before = this.#isSecret
    this.#isSecret = (file) => fences.some(({ hits }) => hits(file))
    if (this.#run > 0 && FILES.some((file) => this.#isSecret(file) && !before(file)))
      this.#happened['policy got stricter']++
    const preferences = { local_only: random.chance(0.08), no_network: random.chance(0.05) }
    const remote = random.pick(['allow', 'allow', 'allow', 'ask', 'deny', null] as const)
    this.#isKeptLocal = preferences.local_only || preferences.no_network || remote === 'deny'
    const files = random.list(2, () => random.pick(FILES))
    const diffed = random.list(2, () => random.pick(FILES))
    const model = random.pick(['anthropic/a', 'openai/c', 'ollama/b'])
    return makeRequest({
      text: `asked ${this.#words()}`,
      workspace: {
        root: this.#place.root,
        ...(diffed.length === 0
          ? {}
          : { git_diff: diffed.map((file) => diffOf(file, this.#taints.ofFile(file), random)).join('') }),
      },
      attachments: {
        files: files.map((file) =>
          makeFile(spelled(file, this.#place, random), this.#taints.ofFile(file), random.chance(0.1)),
        ),
        available_skills: random.chance(0.4)
          ? [{ name: SKILL, content: `how to\n${this.#taints.ofFile(`.agents/skills/${SKILL}/SKILL.md`)}` }]
          : [],
      },
      // The same route at times by a rule that is local-only for no path: an ordinary run later.
      rules: random.chance(0.1) ? [{ name: 'here', local_only: true, model: 'ollama/b' }] : [],
      defaultRoute: { model, fallbacks: ['ollama/b', 'anthropic/a'] },
      permissions: { read_file: 'allow', write_file: 'allow', shell: 'allow' },
      privacy: {
        restricted_paths: fences.map(({ pattern }: Fence) => pattern),
        remote: { mode: remote },
        ...(random.chance(0.1) ? { local: { mode: random.pick(['ask', 'deny'] as const) } } : {}),
      },
      preferences,
    })
  }

  #words = (): string => this.#taints.ofWords(this.#run, this.#isKeptLocal)

  /** A model that repeats all that it was shown, adds words of its own, and calls tools. */
  #answer(model: ModelDescriptor, request: ModelRequest): ModelEvent[] {
    const random = this.#random
    const prompt = JSON.stringify(request)
    const shown = this.#taints.shownIn(prompt)
    this.#hold(model, shown)
    const own = this.#taints.ofAnswer(this.#run, prompt, this.#isKeptLocal)
    const text = `said ${own} of ${shown.join(' ')}`
    if (this.#rounds++ >= MAX_ROUNDS || random.chance(0.4)) return [{ type: 'text_delta', delta: text }]
    if (random.chance(0.2)) {
      // The router itself answers this one, if it is offered.
      this.#happened['skill called'] += request.tools.some(({ name }) => name === SKILL) ? 1 : 0
      return [
        { type: 'text_delta', delta: text },
        { type: 'tool_call', name: SKILL, arguments: {} },
      ]
    }
    const file = random.pick(FILES)
    const made = random.chance(0.3)
      ? { name: 'shell', arguments: { command: `grep -rn ${own} .` } }
      : callOn(file, this.#place, `wrote ${own}`, random, ['read_file', 'write_file', 'shell'])
    this.#results.set(JSON.stringify(made.arguments), this.#result(made.name, file, made.arguments))
    return [
      { type: 'text_delta', delta: text },
      { type: 'tool_call', name: made.name, arguments: made.arguments },
    ]
  }

  /** The property itself. */
  #hold(model: ModelDescriptor, shown: readonly string[]): void {
    const secrets = shown.flatMap((marker) => this.#taints.secretOf(marker, this.#isSecret) ?? [])
    if (model.local) {
      this.#happened['asked local']++
      if (secrets.length > 0) this.#happened['local saw secrets']++
      return
    }
    if (secrets.length > 0) throw new Error(`run ${this.#run}: ${model.provider} got ${secrets.join(', ')}`)
    this.#happened['asked remote']++
    const earlier = this.#session.transcript.flatMap(({ text }) => this.#taints.shownIn(text))
    if (earlier.some((marker) => shown.includes(marker)) && this.#run > 0)
      this.#happened['remote saw earlier words']++
    if (earlier.some((marker) => this.#taints.secretOf(marker, this.#isSecret) !== null))
      this.#happened['remote beside withheld words']++
  }

  #result(name: string, file: string, args: Record<string, unknown>): string {
    const command = name === 'shell' && typeof args.command === 'string' ? args.command : ''
    if (!command.startsWith('grep -rn')) return `it says ${this.#taints.ofFile(file)}`
    const hits = [file, this.#random.pick(FILES)]
    return hits.map((hit) => attributed(hit, this.#taints.ofFile(hit), this.#place, this.#random)).join('\n')
  }

  #resultOf(call: ToolRequest): string {
    const result = this.#results.get(JSON.stringify(call.arguments))
    if (result === undefined) throw new Error('a call that no model made')
    return result
  }
}
