import type { LanguageModelV4CallOptions, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { z } from 'zod'
import type { ModelRequest } from '../core/prompt.ts'
import type { Ending, SdkDialect } from './ai-sdk-events.ts'
import { toSdkPrompt } from './ai-sdk-prompt.ts'
import { outputLimit, type SdkEndpoint, samplingOptions, toolOptions } from './ai-sdk-provider.ts'
import { ReasoningKeeper } from './ai-sdk-reasoning.ts'
import { type ClaudeFacts, thinkingOptions } from './anthropic-thinking.ts'
import { CloudProvider } from './cloud-provider.ts'
import { fieldAt } from './field-at.ts'
import type { ReportedUsage } from './provider.ts'
import { knownUsage, sumKnown, TokenCount } from './token-counts.ts'

/** The name under which the SDK keeps fields of this provider. */
const SDK_NAME = 'anthropic'

/** The API wants a limit. Every Claude model since 3.5 can give this much, and hardly an answer is longer. */
const DEFAULT_MAX_TOKENS = 8_192

/** Anthropic's Messages API (EC 21). Its SDK is loaded with the first call. */
export class AnthropicProvider extends CloudProvider {
  protected override readonly open: SdkEndpoint['open'] = async (request, { fetch, credential }) => {
    const { AnthropicLanguageModel, getModelCapabilities } = await import('./anthropic-sdk.ts')
    const name = request.model.model
    const model = new AnthropicLanguageModel(name, {
      provider: `${SDK_NAME}.messages`,
      baseURL: `${this.baseUrl}/v1`,
      headers: { 'anthropic-version': '2023-06-01', ...(credential ? { 'x-api-key': credential } : {}) },
      fetch,
    })
    return { model, options: toCallOptions(request, getModelCapabilities(name)), dialect: makeDialect() }
  }
}

function toCallOptions(request: ModelRequest, facts: ClaudeFacts): LanguageModelV4CallOptions {
  const { model, messages } = request
  const limit = outputLimit(request) ?? DEFAULT_MAX_TOKENS
  const thinking = thinkingOptions(request, facts, limit)
  // The SDK adds the budget to the limit; it shall be part of it.
  const budget = thinking.thinking?.type === 'enabled' ? thinking.thinking.budgetTokens : 0
  const { top_k: topK } = model.default_parameters
  return {
    prompt: withCacheBreakpoints(toSdkPrompt(messages, SDK_NAME)),
    ...toolOptions(request),
    maxOutputTokens: limit - budget,
    ...samplingOptions(model.default_parameters),
    ...(typeof topK === 'number' ? { topK } : {}),
    providerOptions: {
      [SDK_NAME]: {
        ...thinking,
        // Nobody sees arguments before they are whole, and with this on they are not checked to be JSON.
        toolStreaming: false,
      },
    },
  }
}

/**
 * Marks where the prompt is to be cached: after the system message, which with the tools is the same for many requests,
 * and at the end, where the next turn of the session goes on. Without marks a session is billed whole with each turn.
 */
function withCacheBreakpoints(prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
  const last = prompt.length - 1
  return prompt.map((message, index) =>
    message.role === 'system' || index === last
      ? { ...message, providerOptions: { [SDK_NAME]: { cacheControl: { type: 'ephemeral' } } } }
      : message,
  )
}

function makeDialect(): SdkDialect {
  const keeper = new ReasoningKeeper(SDK_NAME)
  let begun: unknown
  return {
    note: (part) => keeper.note(part),
    usage: (raw) => readUsage(begun, raw),
    usageSoFar: (piece) => {
      switch (fieldAt(piece, 'type')) {
        case 'message_start':
          begun = fieldAt(piece, 'message', 'usage')
          return readUsage(begun, begun)
        case 'message_delta':
          return readUsage(begun, fieldAt(piece, 'usage'))
        default:
          return undefined
      }
    },
    issued: () => true,
    opaque: ({ toolCallId }) => keeper.opaqueOf(toolCallId),
    ending: ({ raw }) => readEnding(raw),
  }
}

function readEnding(stopReason: string | undefined): Ending | undefined {
  if (stopReason === 'model_context_window_exceeded') {
    return { category: 'context_length', text: 'the window was full before the answer was complete' }
  }
  // The provider paused a long turn of its own tools, of which it has none here: the answer is not whole.
  if (stopReason === 'pause_turn') return 'other'
  return undefined
}

const RawUsage = z.object({
  input_tokens: TokenCount,
  output_tokens: TokenCount,
  cache_read_input_tokens: TokenCount,
  cache_creation_input_tokens: TokenCount,
  output_tokens_details: z.object({ thinking_tokens: TokenCount }).nullish().catch(undefined),
})
const NOTHING = RawUsage.parse({})

/**
 * @param begun what the first event of a stream said
 * @param raw what the last one said, or the whole answer; it wins, but may leave out or null what was said before
 */
function readUsage(begun: unknown, raw: unknown): ReportedUsage | undefined {
  const first = RawUsage.safeParse(begun).data ?? NOTHING
  const last = RawUsage.safeParse(raw).data ?? NOTHING
  const read = last.cache_read_input_tokens ?? first.cache_read_input_tokens
  const written = last.cache_creation_input_tokens ?? first.cache_creation_input_tokens
  const input = last.input_tokens ?? first.input_tokens
  return knownUsage({
    // What the cache gave and took is not part of its input count, and no input count by itself.
    inputTokens: typeof input === 'number' ? sumKnown(input, read, written) : undefined,
    outputTokens: last.output_tokens,
    cachedTokens: read,
    cacheWriteTokens: written,
    reasoningTokens: last.output_tokens_details?.thinking_tokens,
  })
}
