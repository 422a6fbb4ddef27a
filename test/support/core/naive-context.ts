/** What may go into a prompt and what does, from the contract's words alone (EC 8.1, 10). */

import { BASE_INSTRUCTION } from '../../../src/core/assemble.ts'
import type { OfferedTool } from '../../../src/core/prompt.ts'
import { estimateTokens, estimateTokensOf } from '../../../src/core/tokens.ts'
import type { TranscriptCall, TranscriptMessage } from '../../../src/core/transcript.ts'
import type { TurnView } from '../../../src/core/turn-view.ts'
import type { ModelDescriptor } from '../../../src/protocol/execution/models.ts'

export type NaiveCase = {
  view: TurnView
  models: readonly ModelDescriptor[]
  /** Providers that cannot be asked now. */
  down: readonly string[]
  /** Providers for which no credential came along. */
  without: readonly string[]
  /** What the router offers as tools in this turn; which these are is not asked here. */
  tools: readonly (OfferedTool & { executor: string })[]
  /** The one name of a path. */
  nameOf(path: string): string
  /** Only local models may see what lies under a name. */
  isPrivate(name: string): boolean
}

export type Item = {
  label: string
  path?: string
  content: string
  required: boolean
  isPrivate: boolean
  score: number
  tokens: number
}

const callTexts = (call: TranscriptCall): string[] => [
  '\n',
  call.name,
  JSON.stringify(call.arguments),
  call.result ?? '',
]

const messageTokens = ({ text, calls }: TranscriptMessage): number =>
  estimateTokensOf([text, ...calls.flatMap(callTexts)])

/** The paths that a call names. */
export const pathsOf = ({ arguments: args }: TranscriptCall): string[] =>
  typeof args.path === 'string' ? [args.path] : []

/** A diff by its files, each with what it shows (EC 8.1, EC 9). */
export function diffFiles(diff: string): { path: string; text: string }[] {
  return diff
    .split(/\n(?=diff --git )/)
    .filter((part) => part.startsWith('diff --git '))
    .map((text) => ({ path: (text.split('\n')[0] ?? '').split(' b/').slice(1).join(' b/'), text }))
}

/** What is in every prompt of the turn: the system text, the tools, the words of this run that are never dropped. */
export const promptTokens = (tools: NaiveCase['tools'], current: readonly TranscriptMessage[]): number =>
  [
    estimateTokens(BASE_INSTRUCTION),
    ...tools.map(({ name, description, parameters }) =>
      estimateTokens(name + description + JSON.stringify(parameters)),
    ),
    ...current.filter(isFixed).map(messageTokens),
  ].reduce((sum, tokens) => sum + tokens, 0)

/** What the user said in this run, and the round that is to be answered now. */
const isFixed = (message: TranscriptMessage, index: number, current: readonly TranscriptMessage[]): boolean =>
  message.role === 'user' || index === current.length - 1

/** The candidates of EC 10.1, doubles collapsed. */
export function gather(
  { view, nameOf, isPrivate }: NaiveCase,
  diff: readonly { path: string; text: string }[],
  inFocus: (name: string) => boolean,
): Item[] {
  const { attachments } = view.runInput
  const isPrivateSkill = (name: string) => isPrivate(name) || isPrivate(`.agents/skills/${name}/SKILL.md`)
  const items: Item[] = []
  const add = (item: Omit<Item, 'tokens'> & { tokens?: number }) =>
    items.push({ tokens: estimateTokens(item.content), ...item })
  for (const file of attachments.files) {
    const path = nameOf(file.path)
    add({
      label: file.path,
      path,
      content: file.content,
      required: file.required || inFocus(path),
      isPrivate: isPrivate(path),
      score: inFocus(path) ? 5500 : 5000,
    })
  }
  for (const { source, content } of attachments.instructions)
    add({ label: source, content, required: true, isPrivate: isPrivate(nameOf(source)), score: 5000 })
  for (const skill of attachments.invoked_skills)
    add({
      label: `skill ${skill.name}`,
      content: skill.content,
      required: true,
      isPrivate: isPrivateSkill(skill.name),
      score: 5000,
    })
  // Each file of a diff is judged by itself: what only local models may see of it is left out, and the rest is not.
  for (const hidden of [false, true]) {
    const parts = diff.filter(({ path }) => isPrivate(path) === hidden)
    if (parts.length === 0) continue
    add({
      label: hidden ? 'private diff' : 'diff',
      content: parts.map(({ text }) => text).join('\n'),
      required: false,
      isPrivate: hidden,
      score: 4000,
    })
  }
  const current = view.transcript.filter(({ runId }) => runId === view.runId)
  const history = [
    ...view.transcript.filter(({ runId }) => runId !== view.runId),
    ...current.filter((message, index) => !isFixed(message, index, current)),
  ]
  for (const [index, message] of history.entries()) {
    const recency = history.length === 1 ? 0 : Math.floor((index * 499) / (history.length - 1))
    const before = view.transcript.filter(({ runId, seq }) => runId === message.runId && seq <= message.seq)
    add({
      label: `message ${message.seq}`,
      content: message.text,
      tokens: messageTokens(message),
      required: false,
      isPrivate:
        message.localOnly === true ||
        (message.role === 'assistant' &&
          before.some(
            (one) =>
              (one.seen?.files ?? []).some((path) => isPrivate(nameOf(path))) ||
              one.calls.flatMap(pathsOf).some((path) => isPrivate(nameOf(path))),
          )),
      score: 3000 + recency + (message.runId === view.runId ? 500 : 0),
    })
  }
  for (const scope of ['user', 'session'])
    for (const fact of view.memories
      .filter((one) => one.scope === scope)
      .toSorted((a, b) => b.updatedAtMs - a.updatedAtMs))
      add({
        label: `memory ${fact.key}`,
        content: `${fact.key}: ${fact.content}`,
        required: false,
        isPrivate: fact.localOnly === true,
        score: 2000,
      })
  for (const { name, content } of attachments.available_skills)
    add({
      label: `skill ${name}`,
      content: `${name}: ${content.split('\n')[0]}`,
      required: false,
      isPrivate: isPrivateSkill(name),
      score: 1000,
    })
  return collapsed(items)
}

function collapsed(items: readonly Item[]): Item[] {
  const kept: Item[] = []
  for (const item of items) {
    const at = kept.findIndex((one) =>
      item.path === undefined && one.path === undefined
        ? !item.label.startsWith('message') && one.content === item.content
        : one.path === item.path,
    )
    const known = kept[at]
    if (known === undefined) {
      kept.push(item)
      continue
    }
    const wins = item.required === known.required ? item.score > known.score : item.required
    kept[at] = { ...(wins ? item : known), isPrivate: item.isPrivate || known.isPrivate }
  }
  return kept
}

/** What a window leaves for the prompt. */
export const budgetOf = ({
  max_context_tokens: window,
  max_output_tokens: output,
}: ModelDescriptor): number => Math.max(0, window - (output ?? 256))

/** What fits the window (EC 10.3). */
export function trim(
  { tools }: NaiveCase,
  items: readonly Item[],
  model: ModelDescriptor,
  current: readonly TranscriptMessage[],
): { included: string[]; excluded: string[] } {
  const offered = model.capabilities.tools
    ? tools.filter(({ executor }) => executor !== 'memory' || model.capabilities.memory === true)
    : []
  const kept = new Set(items.filter(({ required }) => required))
  let left =
    budgetOf(model) - promptTokens(offered, current) - [...kept].reduce((sum, { tokens }) => sum + tokens, 0)
  const discardable = items.filter(({ required, isPrivate }) => !required && (model.local || !isPrivate))
  for (const item of discardable.toSorted((a, b) => b.score - a.score)) {
    if (item.tokens > left) continue
    left -= item.tokens
    kept.add(item)
  }
  const labels = (wanted: boolean) =>
    items.filter((item) => kept.has(item) === wanted).map(({ label }) => label)
  return { included: labels(true), excluded: labels(false) }
}
