import type { ModelRequest, PromptMessage } from '../../../src/core/prompt.ts'
import type { ModelDescriptor } from '../../../src/protocol/execution/models.ts'
import { type EgressOptions, makeEgress, type RouteRecord } from '../../../src/providers/egress.ts'
import type {
  CallContext,
  ModelEvent,
  ModelProvider,
  ReportedUsage,
} from '../../../src/providers/provider.ts'

export const KEY = 'test-key-4f0f29bc81'

export const makeDescriptor = (overrides: Partial<ModelDescriptor> = {}): ModelDescriptor => ({
  provider: 'openai-compat:lab',
  model: 'lab-7b',
  display_name: null,
  local: true,
  auth: 'none',
  capabilities: { streaming: true, tools: true, reasoning: false },
  max_context_tokens: 16_384,
  max_output_tokens: null,
  default_parameters: {},
  ...overrides,
})

export const READ_FILE = {
  name: 'read_file',
  description: 'Reads a file.',
  parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
}

export const makeRequest = (overrides: Partial<ModelRequest> = {}): ModelRequest => ({
  model: makeDescriptor(),
  messages: [
    { role: 'system', text: 'Be brief.' },
    { role: 'user', text: 'Why does the parser drop the final row of the table?' },
  ],
  tools: [READ_FILE],
  effort: 'medium',
  ...overrides,
})

/** A conversation with one round of two calls of one tool, one of which failed. */
export const toolRound: PromptMessage[] = [
  { role: 'user', text: 'Compare a and b.' },
  {
    role: 'assistant',
    text: 'Reading both.',
    toolCalls: [
      { callId: 'c1', name: 'read_file', arguments: { path: 'a' } },
      { callId: 'c2', name: 'read_file', arguments: { path: 'b' } },
    ],
  },
  {
    role: 'tool',
    results: [
      { callId: 'c1', name: 'read_file', content: 'alpha', isError: false },
      { callId: 'c2', name: 'read_file', content: 'no such file', isError: true },
    ],
  },
]

export function makeContext(
  options: Partial<EgressOptions> & { credential?: string; signal?: AbortSignal } = {},
) {
  const { credential, signal = new AbortController().signal, ...egress } = options
  const routes: RouteRecord[] = []
  const context: CallContext = {
    ...(credential === undefined ? {} : { credential }),
    signal,
    egress: makeEgress({
      record: (route) => routes.push(route),
      purpose: 'completion',
      provider: 'openai-compat:lab',
      chosenBy: 'default route',
      remoteAllowed: true,
      ...egress,
    }),
  }
  return { context, routes }
}

/** Every event of a call. */
export async function collectAll(provider: ModelProvider, request: ModelRequest, context: CallContext) {
  const events: ModelEvent[] = []
  for await (const event of provider.invoke(request, context)) events.push(event)
  return events
}

/** The events that make the answer: what its provider reports on the way, and how often, is its own business. */
export const collect = async (...call: Parameters<typeof collectAll>): Promise<ModelEvent[]> =>
  (await collectAll(...call)).filter(({ type }) => type !== 'usage_so_far')

/** What a call reported on its way, in order. */
export const reportsIn = (events: readonly ModelEvent[]): ReportedUsage[] =>
  events.flatMap((event) => (event.type === 'usage_so_far' ? [event.usage] : []))

/** Joins neighbouring deltas of a kind: how a text was split is the provider's business. */
export function joinDeltas(events: readonly ModelEvent[]): ModelEvent[] {
  const joined: ModelEvent[] = []
  for (const event of events) {
    const last = joined.at(-1)
    if (
      last !== undefined &&
      last.type === event.type &&
      (last.type === 'text_delta' || last.type === 'reasoning_delta') &&
      'delta' in event
    ) {
      last.delta += event.delta
    } else joined.push({ ...event })
  }
  return joined
}

/** The final usage of a call. */
export const usageIn = (events: readonly ModelEvent[]): ReportedUsage =>
  events.find((event) => event.type === 'usage')?.usage ?? {}
