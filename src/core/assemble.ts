import type { Provider } from '../protocol/execution/ids.ts'
import { runUnits } from './candidates.ts'
import { contextBlock, type Verdict } from './context.ts'
import type { PromptMessage } from './prompt.ts'
import type { TurnTool } from './tools.ts'
import type { TranscriptCall, TranscriptMessage } from './transcript.ts'
import type { TurnView } from './turn-view.ts'

export const BASE_INSTRUCTION = [
  'You are a coding assistant working on the user’s project.',
  'Be accurate and brief. Look things up with the tools you are given instead of guessing.',
].join(' ')

/** Added while a plan is being made (EC 14). */
const PLANNING_INSTRUCTION =
  'You are planning. Change no files. Read what you need, then answer with the plan and nothing else.'

/** Stands for a result that never came, so that the conversation stays well formed (U22). */
const NO_RESULT = 'This call was not run.'

/**
 * The conversation for one model (EC 11): one system message; the kept history; the user's words of this run once, in
 * their place, led by the attached files; each round of tool calls directly before its results.
 */
export function assemble(
  view: TurnView,
  verdicts: readonly Verdict[],
  { provider, tools }: { provider: Provider; tools: readonly TurnTool[] },
): PromptMessage[] {
  const kept = new Map(
    verdicts.flatMap(({ candidate, included }) => (included ? [[candidate.key, candidate]] : [])),
  )
  const of = (prefix: string) => [...kept.values()].filter(({ key }) => key.startsWith(`${prefix}:`))
  const system = [
    BASE_INSTRUCTION,
    ...(view.planning ? [PLANNING_INSTRUCTION] : []),
    ...of('instruction').map(({ label, content }) => contextBlock(label, content)),
    ...of('invoked_skill').map(({ label, content }) => contextBlock(label, content)),
    ...list('What is known from earlier; it may be stale, the conversation wins:', of('memory')),
    ...(tools.length > 0 ? list('Skills that can be loaded by calling them:', of('available_skill')) : []),
  ]
  const blocks = [
    ...of('file').map(({ path, label, content }) => contextBlock(path ?? label, content)),
    ...(kept.has('git_diff') ? [contextBlock('Current git diff', kept.get('git_diff')?.content ?? '')] : []),
  ]
  const fixed = new Set(runUnits(view).fixed.map(({ message }) => message.seq))
  const messages: PromptMessage[] = [{ role: 'system', text: system.join('\n\n') }]
  let blocksLeft = blocks
  for (const message of view.transcript) {
    if (!fixed.has(message.seq) && !kept.has(`message:${message.seq}`)) continue
    if (message.role === 'user') {
      const lead = message.runId === view.runId ? blocksLeft : []
      if (message.runId === view.runId) blocksLeft = []
      messages.push({ role: 'user', text: withContext(message.text, lead) })
    } else messages.push(...round(message, provider))
  }
  return joinNeighbours(messages)
}

const list = (heading: string, items: { content: string }[]): string[] =>
  items.length === 0 ? [] : [`${heading}\n${items.map(({ content }) => `- ${content}`).join('\n')}`]

function withContext(text: string, blocks: string[]): string {
  if (blocks.length === 0) return text
  return ['Context of the request:', ...blocks, `Request:\n${text}`].join('\n\n')
}

/** An assistant message, and the results of its calls right behind it. */
function round(message: TranscriptMessage, provider: Provider): PromptMessage[] {
  if (message.calls.length === 0)
    return message.text === '' ? [] : [{ role: 'assistant', text: message.text, toolCalls: [] }]
  // Ids and opaque fields mean something to the provider that issued them only (U40).
  const same = message.provider === provider
  const idOf = (call: TranscriptCall) => (same && call.providerCallId ? call.providerCallId : call.id)
  return [
    {
      role: 'assistant',
      text: message.text,
      toolCalls: message.calls.map((call) => ({
        callId: idOf(call),
        name: call.name,
        arguments: call.arguments,
        ...(same && call.opaque ? { opaque: call.opaque } : {}),
      })),
    },
    {
      role: 'tool',
      results: message.calls.map((call) => ({
        callId: idOf(call),
        name: call.name,
        content: call.result ?? NO_RESULT,
        isError: call.isError || call.result === undefined,
      })),
    },
  ]
}

/** Providers want the roles to alternate: neighbouring texts of one role become one message. */
function joinNeighbours(messages: PromptMessage[]): PromptMessage[] {
  const joined: PromptMessage[] = []
  for (const message of messages) {
    const last = joined.at(-1)
    if (last?.role === 'user' && message.role === 'user') last.text = `${last.text}\n\n${message.text}`
    else if (last?.role === 'assistant' && message.role === 'assistant' && last.toolCalls.length === 0) {
      last.text = last.text === '' ? message.text : `${last.text}\n\n${message.text}`
      last.toolCalls = message.toolCalls
    } else joined.push({ ...message })
  }
  return joined
}
