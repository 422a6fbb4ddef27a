import type { ModelRequest } from '../../../../src/core/prompt.ts'
import type { ModelEvent, ModelProvider, ReportedUsage } from '../../../../src/providers/provider.ts'
import type { DialectName } from '../../../support/node/conversation-checker.ts'
import { type ScriptedAnswer, scriptedFetch } from '../../../support/node/scripted-upstream.ts'
import {
  type ScriptedCompletion,
  type ScriptedDialect,
  type ScriptedUsage,
  streamedAnswer,
} from '../../../support/node/scripted-upstream-completion.ts'
import { collect, KEY, makeContext } from '../support.ts'

/** What the contract suite needs to know of a dialect and its adapter. */
export type DialectUnderTest = {
  name: string
  makeProvider: (origin: string) => ModelProvider
  makeRequest: (overrides?: { streaming?: boolean; reasoning?: boolean }) => ModelRequest
  wire: ScriptedDialect
  /** By which rules its requests are checked. */
  conversation: DialectName
  /** Where the key stands, and how. */
  keyHeader: { name: string; value: string }
  /** The counters that the dialect tells besides input and output. */
  tells: readonly ('cached' | 'cacheWrite' | 'reasoning')[]
  /** What the beginning of a streamed answer reports of its usage; without it, a dialect that reports at the end. */
  reportsFirst?: (usage: ScriptedUsage) => ReportedUsage
  /** Whether an answer always has its usage. */
  alwaysTellsUsage?: true
  /** Endings that an answer of this dialect can have besides `stop`, `tool_calls` and `length`. */
  endings: readonly ('refused' | 'overflow')[]
  /** What of an answer is signed, and so must come back with its calls. */
  signs: readonly ('reasoning' | 'redacted' | 'calls')[]
}

export const ORIGIN = 'http://lab.internal:8080'

export const COMPLETION: ScriptedCompletion = {
  reasoning: ['Größe ', 'prüfen…'],
  text: ['Der Satz „', '最後の行', '“ fehlt 🚂', '.'],
  calls: [
    { id: 'call_a', name: 'read_file', arguments: { path: 'src/größe.ts' } },
    {
      id: 'call_b',
      name: 'read_file',
      arguments: { path: 'b "quoted" \\ \n', depth: 2, nested: { list: [1, '🚃'] } },
    },
  ],
  usage: { input: 120, output: 31, cached: 64, cacheWrite: 20, reasoning: 9 },
}

/** The usage event that a dialect can make of it. */
export const usageTold = ({ tells }: DialectUnderTest, usage: ScriptedUsage): ReportedUsage => ({
  inputTokens: usage.input,
  outputTokens: usage.output,
  ...(tells.includes('cached') ? { cachedTokens: usage.cached ?? 0 } : {}),
  ...(tells.includes('cacheWrite') ? { cacheWriteTokens: usage.cacheWrite ?? 0 } : {}),
  ...(tells.includes('reasoning') ? { reasoningTokens: usage.reasoning ?? 0 } : {}),
})

/** The events of `COMPLETION`, its deltas joined, without opaque fields. */
export const expectedEvents = (dialect: DialectUnderTest): ModelEvent[] => [
  { type: 'reasoning_delta', delta: 'Größe prüfen…' },
  { type: 'text_delta', delta: 'Der Satz „最後の行“ fehlt 🚂.' },
  { type: 'tool_call', providerCallId: 'call_a', name: 'read_file', arguments: { path: 'src/größe.ts' } },
  {
    type: 'tool_call',
    providerCallId: 'call_b',
    name: 'read_file',
    arguments: { path: 'b "quoted" \\ \n', depth: 2, nested: { list: [1, '🚃'] } },
  },
  { type: 'usage', usage: usageTold(dialect, COMPLETION.usage ?? { input: 0, output: 0 }) },
  { type: 'finished', reason: 'tool_calls' },
]

export const withoutOpaque = (events: readonly ModelEvent[]): ModelEvent[] =>
  events.map((event) => {
    if (event.type !== 'tool_call') return event
    const { opaque: _, ...rest } = event
    return rest
  })

export const usageOf = (events: readonly ModelEvent[]): ReportedUsage | undefined =>
  events.find((event) => event.type === 'usage')?.usage

/** Calls of one adapter against a scripted answer. */
export function makeRunner({ makeProvider, makeRequest, wire }: DialectUnderTest) {
  const run = (answer: ScriptedAnswer, request = makeRequest()) => {
    const upstream = scriptedFetch(answer)
    const { context, routes } = makeContext({ credential: KEY, fetch: upstream.fetch })
    return { events: collect(makeProvider(ORIGIN), request, context), upstream, routes }
  }
  return {
    run,
    streamed: (completion: ScriptedCompletion) => streamedAnswer(wire, completion),
    runStreamed: (completion: ScriptedCompletion) => run(streamedAnswer(wire, completion)).events,
    runBuffered: (completion: ScriptedCompletion) =>
      run(wire.buffered(completion), makeRequest({ streaming: false })).events,
    /** A streamed answer of these pieces. */
    runFrames: (frames: readonly string[], answer: ScriptedAnswer = {}) =>
      run({ headers: { 'content-type': wire.contentType }, body: frames.join(''), ...answer }).events,
  }
}
