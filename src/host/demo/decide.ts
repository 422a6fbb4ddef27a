import { planReplace, planRun, planWrite } from './change.ts'
import type { Conversation } from './conversation.ts'
import { gatherEvidence } from './evidence.ts'
import { planFiles, planLookup } from './lookup.ts'
import { planOverview } from './overview.ts'
import type { Planner, Wish } from './plan.ts'
import { type Intent, readIntent } from './question.ts'

/** The next move of the demo model: tools to call, or the answer. */
export type Decision = { kind: 'calls'; calls: Wish[] } | { kind: 'answer'; text: string }

/** Enough for the longest plan; a conversation that has more gets its answer, whatever is missing. */
export const MAX_ROUNDS = 6

export const SIGNATURE =
  '(switchyard-demo, the built-in demo model: it searches and quotes by fixed rules and understands nothing.)'

/** Decides by fixed rules from the conversation alone: the same conversation gives the same move. */
export function decide(conversation: Conversation, offered: ReadonlySet<string>): Decision {
  const intent = readIntent(conversation.question)
  if (intent.kind === 'greeting') return answer(INTRODUCTION)
  const evidence = gatherEvidence(conversation)
  const plan = plannerFor(intent, conversation, offered)(evidence)
  if (conversation.rounds < MAX_ROUNDS) {
    for (const stage of plan.stages) {
      const calls = unique(stage).filter((wish) => offered.has(wish.name) && !wasMade(conversation, wish))
      if (calls.length > 0) return { kind: 'calls', calls }
    }
  }
  const blind =
    evidence.calls === 0 && evidence.files.size === 0 && !LOOKING.some((name) => offered.has(name))
  return answer(blind ? NO_TOOLS : plan.answer())
}

const LOOKING = ['read_file', 'list_files', 'search_files', 'shell']

const INTRODUCTION = [
  'Hello. Ask me what this project does, where something is ("where are sessions stored?"), or what a file holds',
  '("what is in src/main.ts?"). I can also replace a text ("replace `a` with `b` in notes.md") and run a command',
  '("run `git status`"), if you approve.',
]

const NO_TOOLS = [
  'I cannot look at anything: no tools were offered with this request, and no file is attached to it.',
]

function plannerFor(
  intent: Exclude<Intent, { kind: 'greeting' }>,
  conversation: Conversation,
  offered: ReadonlySet<string>,
): Planner {
  switch (intent.kind) {
    case 'overview':
      return planOverview
    case 'lookup':
      return planLookup(intent.keywords)
    case 'file':
      return planFiles(intent.paths, intent.keywords)
    case 'replace':
      return planReplace(intent, offered)
    case 'write':
      return planWrite(intent, offered)
    case 'run':
      return planRun(intent, conversation, offered)
  }
}

function answer(lines: readonly string[]): Decision {
  const text = lines
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
  return { kind: 'answer', text: `${text}\n\n${SIGNATURE}` }
}

const keyOf = ({ name, arguments: args }: { name: string; arguments: Record<string, unknown> }): string =>
  JSON.stringify([name, Object.entries(args).sort()])

const wasMade = ({ findings }: Conversation, wish: Wish): boolean =>
  findings.some((finding) => keyOf(finding) === keyOf(wish))

const unique = (wishes: readonly Wish[]): Wish[] => [
  ...new Map(wishes.map((wish) => [keyOf(wish), wish])).values(),
]
