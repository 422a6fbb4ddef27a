import type { Provider } from '../protocol/execution/ids.ts'
import { DIFF_KEY, PRIVATE_DIFF_KEY, runUnits } from './candidates.ts'
import { type Candidate, contextBlock, type Verdict } from './context.ts'
import { readImage } from './image.ts'
import { shownImages } from './images/shown.ts'
import type { PromptMessage } from './prompt.ts'
import type { TurnTool } from './tools.ts'
import type { TranscriptCall, TranscriptMessage } from './transcript.ts'
import type { TurnView } from './turn-view.ts'

export const BASE_INSTRUCTION = [
  'You are a coding assistant working on the user’s project.',
  'Be accurate and brief. Look things up with the tools you are given instead of guessing.',
].join(' ')

/** Added while a plan is being made (EC 14). */
export const PLANNING_INSTRUCTION =
  'You are planning. Change no files. Read what you need, then answer with the plan and nothing else.'

/** Stands before what is remembered (EC 16). */
const MEMORY_FRAME =
  'What was remembered earlier follows, as background. It may be out of date: what the conversation says wins.'

/** The user's answer to a plan, where it was nothing but yes: no model is left to go on after its own words. */
const PLAN_APPROVED = 'The plan is approved. Carry it out.'

/** Stands before a history whose beginning did not fit: a conversation begins with the user. */
const BEGINNING_LEFT_OUT = 'The beginning of this conversation is left out.'

/** Stands between a prompt whose run failed and the next one: two requests are not one. */
const ANSWER_MISSING = 'No answer to this is part of the conversation.'

/** Stands for a result that never came, so that the conversation stays well formed (U22). */
const NO_RESULT = 'This call was not run.'

const SKILLS_HEADING = 'Skills that can be loaded by calling them:'
const USER_HEADING = 'About the user:'
const SESSION_HEADING = 'About this session:'
const CONTEXT_HEADING = 'Context of the request:'

/** Stands for words that the user did not write: providers refuse a message without any. */
const NO_TEXT = '(The user sent no text.)'

/** How a model without tools is told of a call. */
export const toldCall = ({ name, arguments: args }: Pick<TranscriptCall, 'name' | 'arguments'>): string =>
  `Called ${name} with ${JSON.stringify(args)}.`

/** Whatever a prompt may hold that comes from the router itself. */
export const FRAME_TEXTS: readonly string[] = [
  BASE_INSTRUCTION,
  PLANNING_INSTRUCTION,
  MEMORY_FRAME,
  PLAN_APPROVED,
  BEGINNING_LEFT_OUT,
  ANSWER_MISSING,
  NO_RESULT,
  NO_TEXT,
  SKILLS_HEADING,
  USER_HEADING,
  SESSION_HEADING,
  CONTEXT_HEADING,
]

/**
 * The conversation for one model (EC 11): one system message; the kept history; the user's words of this run once, in
 * their place, led by the attached files; each round of tool calls directly before its results. `sees`: the model takes
 * pictures; where it takes none, or not so many, the reference in the user's words stands for them.
 */
export function assemble(
  view: TurnView,
  verdicts: readonly Verdict[],
  { provider, tools, sees }: { provider: Provider; tools: readonly TurnTool[]; sees: boolean },
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
    ...remembered(of('user_memory'), of('session_memory')),
    ...(tools.length > 0 ? list(SKILLS_HEADING, of('available_skill')) : []),
  ]
  const files = of('file')
  const images = files.flatMap(({ kind, content }) => {
    const image = kind === 'image' ? readImage(content) : null
    return image === null ? [] : [image]
  })
  const blocks = [
    ...files
      .filter(({ kind }) => kind === 'file')
      .map(({ path, label, content }) => contextBlock(path ?? label, content)),
    ...currentDiff(view, kept),
  ]
  const fixed = new Set(runUnits(view).fixed.map(({ message }) => message.seq))
  const messages: PromptMessage[] = [{ role: 'system', text: system.join('\n\n') }]
  const inPrompt = view.transcript.filter(({ seq }) => fixed.has(seq) || kept.has(`message:${seq}`))
  const uploaded = sees ? shownImages(inPrompt) : null
  let blocksLeft = blocks
  let imagesLeft = images
  let askedIn = ''
  for (const [index, message] of view.transcript.entries()) {
    if (!fixed.has(message.seq) && !kept.has(`message:${message.seq}`)) continue
    if (message.role === 'user') {
      const lead = message.runId === view.runId ? blocksLeft : []
      const shown = [
        ...(message.runId === view.runId ? imagesLeft : []),
        ...(uploaded?.get(message.seq) ?? []),
      ]
      if (message.runId === view.runId) {
        blocksLeft = []
        imagesLeft = []
      }
      const before = messages.at(-1)
      if (before?.role === 'user' && message.runId !== askedIn) {
        messages.push({ role: 'assistant', text: ANSWER_MISSING, toolCalls: [] })
      }
      askedIn = message.runId
      messages.push({
        role: 'user',
        text: withContext(message.text, lead),
        ...(shown.length === 0 ? {} : { images: shown }),
      })
    } else {
      messages.push(...(tools.length > 0 ? round(message, provider) : toldRound(message)))
      if (isApprovedPlan(view, index)) messages.push({ role: 'user', text: PLAN_APPROVED })
    }
  }
  if (messages[1]?.role === 'assistant') messages.splice(1, 0, { role: 'user', text: BEGINNING_LEFT_OUT })
  return joinNeighbours(messages)
}

/** The diff as it came, or what is kept of it. */
function currentDiff({ runInput }: TurnView, kept: ReadonlyMap<string, Candidate>): string[] {
  const parts = [DIFF_KEY, PRIVATE_DIFF_KEY].flatMap((key) => kept.get(key)?.content ?? [])
  const [part] = parts
  if (part === undefined) return []
  const whole = parts.length === 2 ? (runInput.workspace.git_diff ?? '') : part
  return [contextBlock('Current git diff', whole)]
}

/** An answer without calls that its run went on after, and not because the user said something else: the plan. */
function isApprovedPlan({ transcript, runId, planApproved }: TurnView, index: number): boolean {
  const message = transcript[index]
  if (!planApproved || message?.runId !== runId || message.role !== 'assistant') return false
  return message.calls.length === 0 && !message.interrupted && transcript[index + 1]?.role !== 'user'
}

/** Facts are background, not orders: they are told as such, and once (EC 16). */
function remembered(ofUser: { content: string }[], ofSession: { content: string }[]): string[] {
  if (ofUser.length + ofSession.length === 0) return []
  return [MEMORY_FRAME, ...list(USER_HEADING, ofUser), ...list(SESSION_HEADING, ofSession)]
}

const list = (heading: string, items: { content: string }[]): string[] =>
  items.length === 0
    ? []
    : // A second line of an item must not look like an item, or a part, of its own.
      [`${heading}\n${items.map(({ content }) => `- ${content.replaceAll('\n', '\n  ')}`).join('\n')}`]

function withContext(given: string, blocks: string[]): string {
  const text = given.trim() === '' ? NO_TEXT : given
  if (blocks.length === 0) return text
  return [CONTEXT_HEADING, ...blocks, `Request:\n${text}`].join('\n\n')
}

const said = ({ text }: TranscriptMessage): PromptMessage[] =>
  text.trim() === '' ? [] : [{ role: 'assistant', text, toolCalls: [] }]

/** The round of a model that had tools, for one that has none: it reads what was called and what came of it. */
function toldRound(message: TranscriptMessage): PromptMessage[] {
  if (message.calls.length === 0) return said(message)
  const called = message.calls.map(toldCall)
  const results = message.calls.map(
    (call) => `${call.name} ${call.isError ? 'failed' : 'gave'}:\n${call.result ?? NO_RESULT}`,
  )
  const text = [...(message.text.trim() === '' ? [] : [message.text]), ...called].join('\n\n')
  return [
    { role: 'assistant', text, toolCalls: [] },
    { role: 'user', text: results.join('\n\n') },
  ]
}

/** An assistant message, and the results of its calls right behind it. */
function round(message: TranscriptMessage, provider: Provider): PromptMessage[] {
  if (message.calls.length === 0) return said(message)
  // Ids and opaque fields mean something to the provider that issued them only (U40).
  const same = message.provider === provider
  const idOf = (call: TranscriptCall) => (same && call.providerCallId ? call.providerCallId : call.id)
  return [
    {
      role: 'assistant',
      text: message.text.trim() === '' ? '' : message.text,
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
    if (last?.role === 'user' && message.role === 'user') {
      last.text = `${last.text}\n\n${message.text}`
      if (message.images) last.images = [...(last.images ?? []), ...message.images]
    } else if (last?.role === 'assistant' && message.role === 'assistant' && last.toolCalls.length === 0) {
      last.text = last.text === '' ? message.text : `${last.text}\n\n${message.text}`
      last.toolCalls = message.toolCalls
    } else joined.push({ ...message })
  }
  return joined
}
