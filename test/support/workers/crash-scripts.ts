import type { PendingApproval } from '../../../src/protocol/execution/turn.ts'
import { type BodyChanges, makeExecute, routeTo } from './bodies.ts'
import type { Execute, Manner } from './crash-client.ts'
import { until } from './hold.ts'
import type { Headers } from './router.ts'
import type { ChatRequest, Reply } from './scripted-models.ts'

/** What the user says into a run that goes on: text, or nothing but a stop; or what rings meanwhile. */
export type Interruption = { say: string } | 'stop' | 'alarm'

/** One prompt with all that its user does until the run is over. */
export type Prompt = {
  body: Execute
  headers?: Headers
  /** What is said to a gate or a plan. Approved unless told otherwise. */
  decide?: (approval: PendingApproval) => 'approved' | 'rejected'
  /** Calls that are asked for are turned down. */
  rejectCalls?: boolean
  /** While the model speaks, or at the first pause for calls. */
  interrupt?: { when: 'speaking' | 'pausing'; with: Interruption }
}

export type Script = { name: string; prompts: Prompt[]; freshAccount?: boolean }

/** Places at which a model stops until it is told to go on, or its object is gone. */
export class Pauses {
  #isHeld = false
  #isReleased = false

  /** Somebody speaks and has stopped in the middle. */
  get isHeld(): boolean {
    return this.#isHeld
  }

  /** For a reply. What an object that died had stopped at is nobody's any more. */
  readonly hold = async (): Promise<void> => {
    this.#isHeld = true
    await until(() => this.#isReleased)
  }

  forget(): void {
    this.#isHeld = false
  }

  release(): void {
    this.#isReleased = true
  }
}

const READ_A = { name: 'read_file', arguments: { path: 'a' } }
const READ_B = { name: 'read_file', arguments: { path: 'b' } }
const SHELL = { name: 'shell', arguments: { command: 'ls' } }
const REMEMBER = (scope: string) => ({
  name: 'memory',
  arguments: { op: 'record', scope, key: `editor of ${scope}`, value: 'vim' },
})

/** The model’s part, told by the conversation so far: a crash makes it hear some of it again. */
export function play({ model, messages }: ChatRequest, pauses: Pauses): Reply {
  const last = messages.at(-1)
  // Words that follow one another may reach a model as one message.
  const said =
    messages
      .findLast(({ role }) => role === 'user')
      ?.content.split('\n')
      .at(-1) ?? ''
  if (model === 'other' && said.includes('fall back')) return { status: 500, error: 'out of order' }
  if (last?.role === 'tool') return { text: ['Done: ', `${last.content.length} characters.`] }
  if (said.includes('read both')) return { text: ['Reading. '], calls: [READ_A, READ_B] }
  if (said.includes('run it')) return { calls: [SHELL] }
  if (said.includes('remember')) return { text: ['Noting. '], calls: [REMEMBER('session'), REMEMBER('user')] }
  if (said.includes('talk long')) return { text: ['one ', 'two '], hold: pauses.hold, after: ['three'] }
  return { text: ['Fine: ', said] }
}

const prompt = (text: string, changes: BodyChanges = {}, rest: Omit<Prompt, 'body'> = {}): Prompt => ({
  body: makeExecute(text, changes),
  ...rest,
})

const CLOUD: Headers = { 'X-Smista-Provider-Cloud-Api-Key': 'k' }
const FILE = { path: 'a.ts', content: 'A', content_hash: '', required: false }
const REMOTE: BodyChanges = {
  policy: { ...routeTo('openai-compat:cloud/big', 'ollama/small'), privacy: { remote: { mode: 'ask' } } },
  attachments: { files: [FILE] },
}
const PLAN: BodyChanges = { input: { command: 'plan' } }

export const SCRIPTS: Script[] = [
  { name: 'an answer', prompts: [prompt('hello there')] },
  { name: 'two calls, then an answer', prompts: [prompt('read both')] },
  { name: 'a call that is asked for and approved', prompts: [prompt('run it')] },
  { name: 'a call that is asked for and rejected', prompts: [prompt('run it', {}, { rejectCalls: true })] },
  { name: 'a disclosure that is approved', prompts: [prompt('hello there', REMOTE, { headers: CLOUD })] },
  {
    name: 'a disclosure that is rejected',
    prompts: [prompt('hello there', REMOTE, { headers: CLOUD, decide: () => 'rejected' })],
  },
  { name: 'a plan that is approved', prompts: [prompt('make a plan', PLAN)] },
  { name: 'a plan that is rejected', prompts: [prompt('make a plan', PLAN, { decide: () => 'rejected' })] },
  {
    name: 'text injected while the model speaks',
    prompts: [prompt('talk long', {}, { interrupt: { when: 'speaking', with: { say: 'rather this' } } })],
  },
  {
    name: 'text injected into a pause',
    prompts: [prompt('read both', {}, { interrupt: { when: 'pausing', with: { say: 'rather this' } } })],
  },
  {
    name: 'an alarm while the model speaks',
    prompts: [prompt('talk long', {}, { interrupt: { when: 'speaking', with: 'alarm' } })],
  },
  {
    name: 'a stop while the model speaks, and another prompt',
    prompts: [
      prompt('talk long', {}, { interrupt: { when: 'speaking', with: 'stop' } }),
      prompt('hello there'),
    ],
  },
  {
    name: 'a stop in a pause, and another prompt',
    prompts: [
      prompt('read both', {}, { interrupt: { when: 'pausing', with: 'stop' } }),
      prompt('hello there'),
    ],
  },
  {
    name: 'a model that fails and one behind it',
    prompts: [prompt('fall back', { policy: routeTo('ollama/other', 'ollama/small') })],
  },
  { name: 'facts that are remembered', prompts: [prompt('remember that')], freshAccount: true },
  { name: 'three prompts', prompts: [prompt('hello there'), prompt('read both'), prompt('and again')] },
]

/** Of what is said in the scripts, what must be nowhere in clear once it is sealed. Ciphertext has no blanks. */
export const SECRETS = [
  'hello there',
  'read both',
  'run it',
  'make a plan',
  'talk long',
  'rather this',
  'fall back',
  'remember that',
  'and again',
  'one two',
  'Fine: ',
  'Done: ',
  'Reading. ',
  'Noting. ',
  'result of ',
  'editor of session',
]

/** With and without keys, streamed and buffered: each script in two of the four. */
export const mannersOf = (script: number): Manner[] => [
  { keyed: true, stream: script % 2 === 0 },
  { keyed: false, stream: script % 2 === 1 },
]
