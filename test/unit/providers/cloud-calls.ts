import type { ModelRequest, PromptMessage } from '../../../src/core/prompt.ts'
import type { Provider } from '../../../src/protocol/execution/ids.ts'
import type { ModelDescriptor } from '../../../src/protocol/execution/models.ts'
import { ok } from '../../../src/protocol/result.ts'
import type { CloudConfig } from '../../../src/providers/cloud-config.ts'
import type { ModelEvent, ModelProvider } from '../../../src/providers/provider.ts'
import type { Deadlines } from '../../../src/providers/upstream-call.ts'
import { type ScriptedAnswer, scriptedFetch } from '../../support/node/scripted-upstream.ts'
import { collect, joinDeltas, KEY, makeContext, makeDescriptor, makeRequest } from './support.ts'

type CloudClass = new (
  config: CloudConfig,
  listModels: ModelProvider['listModels'],
  deadlines: Deadlines,
) => ModelProvider

/** Calls of one cloud provider, each answered by a script. */
export function cloudCalls(CloudProvider: CloudClass, id: Provider, baseUrl: string, modelName: string) {
  const provider = new CloudProvider({ id, displayName: id, baseUrl }, async () => ok([]), {
    firstByteMs: 3_000,
    totalMs: 10_000,
  })
  const makeModel = (overrides: Partial<ModelDescriptor> = {}): ModelDescriptor =>
    makeDescriptor({
      provider: id,
      model: modelName,
      local: false,
      auth: 'api_key',
      capabilities: { streaming: true, tools: true, reasoning: true },
      ...overrides,
    })
  const call = async (
    answer: ScriptedAnswer,
    { model, ...request }: Partial<Omit<ModelRequest, 'model'>> & { model?: Partial<ModelDescriptor> } = {},
  ) => {
    const upstream = scriptedFetch(answer)
    const { context, routes } = makeContext({ credential: KEY, fetch: upstream.fetch, provider: id })
    const events = await collect(provider, makeRequest({ model: makeModel(model), ...request }), context)
    return { events: joinDeltas(events), request: upstream.requests[0], requests: upstream.requests, routes }
  }
  return { call, makeModel }
}

export const BUFFERED = { capabilities: { streaming: false, tools: true, reasoning: true } }

/** The conversation that goes on after an answer with calls: the answer with what was kept of it, and the results. */
export function afterRound(events: readonly ModelEvent[]): PromptMessage[] {
  const text = events.map((event) => (event.type === 'text_delta' ? event.delta : '')).join('')
  const calls = events.flatMap((event, index) =>
    event.type === 'tool_call' ? [{ ...event, callId: event.providerCallId ?? `own-${index}` }] : [],
  )
  return [
    ...makeRequest().messages,
    {
      role: 'assistant',
      text,
      toolCalls: calls.map(({ callId, name, arguments: args, opaque }) => ({
        callId,
        name,
        arguments: args,
        // As it comes back from where it was stored.
        ...(opaque === undefined ? {} : { opaque: JSON.parse(JSON.stringify(opaque)) }),
      })),
    },
    {
      role: 'tool',
      results: calls.map(({ callId, name }) => ({ callId, name, content: 'done', isError: false })),
    },
  ]
}

/** Opaque fields that no adapter wrote, or that were damaged. */
export const BROKEN_OPAQUE: Record<string, unknown>[] = [
  { reasoning: 'lost' },
  { reasoning: [{ text: 'a', proof: { signature: 7 }, textAfter: 0 }] },
  { reasoning: [{ text: 'a', proof: {}, textAfter: -1 }] },
  { thoughtSignature: { deep: true } },
  { of: 'another time' },
]
