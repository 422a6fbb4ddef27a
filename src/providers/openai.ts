import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { z } from 'zod'
import type { ModelRequest, PromptMessage } from '../core/prompt.ts'
import type { ModelDescriptor } from '../protocol/execution/models.ts'
import type { SdkDialect } from './ai-sdk-events.ts'
import { toSdkPrompt, toSdkTools } from './ai-sdk-prompt.ts'
import { outputLimit, type SdkEndpoint, toolOptions } from './ai-sdk-provider.ts'
import { ReasoningKeeper } from './ai-sdk-reasoning.ts'
import { CloudProvider } from './cloud-provider.ts'
import { fieldAt } from './field-at.ts'
import type { ReportedUsage } from './provider.ts'
import { knownUsage, TokenCount } from './token-counts.ts'

/** The name under which the SDK keeps fields of this provider. */
const SDK_NAME = 'openai'

/**
 * OpenAI's Responses API (EC 21), which is what its SDK chooses for every model; the SDK is loaded with the first call.
 * Nothing is stored there: reasoning comes back sealed and travels with the calls it led to (U40).
 */
export class OpenAiProvider extends CloudProvider {
  protected override readonly open: SdkEndpoint['open'] = async (request, { fetch, credential }) => {
    const { OpenAIResponsesLanguageModel } = await import('./openai-sdk.ts')
    const model = new OpenAIResponsesLanguageModel(request.model.model, {
      provider: `${SDK_NAME}.responses`,
      url: ({ path }) => `${this.baseUrl}${path}`,
      headers: credential ? { authorization: `Bearer ${credential}` } : {},
      fetch,
    })
    return { model, options: toCallOptions(request), dialect: makeDialect() }
  }
}

/** No temperature and no top-p, whatever the descriptor says (EC 21). */
function toCallOptions(request: ModelRequest): LanguageModelV4CallOptions {
  const { model, messages, tools } = request
  const limit = outputLimit(request)
  const reasons = model.capabilities.reasoning === true
  return {
    prompt: toSdkPrompt(reasons ? messages : messages.map(withoutOpaque), SDK_NAME),
    ...toolOptions(request),
    // Unless told otherwise the API makes every parameter of a tool a required one.
    ...(tools.length === 0 ? {} : { tools: toSdkTools(tools).map((tool) => ({ ...tool, strict: false })) }),
    ...(limit === undefined ? {} : { maxOutputTokens: limit }),
    providerOptions: {
      [SDK_NAME]: {
        store: false,
        // The SDK knows models by their names; the descriptor knows this one. It also asks for sealed reasoning then.
        forceReasoning: reasons,
        ...(reasons ? { reasoningEffort: effortFor(request), reasoningSummary: 'auto' } : {}),
      },
    },
  }
}

/** A model that does not reason refuses the reasoning of one that does. */
const withoutOpaque = (message: PromptMessage): PromptMessage =>
  message.role === 'assistant'
    ? { ...message, toolCalls: message.toolCalls.map(({ opaque: _, ...call }) => call) }
    : message

/** From the least to the most. */
const STEPS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
/** What every reasoning model takes. */
const COMMON_STEPS: readonly string[] = ['low', 'medium', 'high']

/**
 * The wanted effort, or the next one below that the model takes, or the next one above: `provider_options` of the
 * descriptor lists them as `reasoning_effort`.
 */
function effortFor({ model, effort }: ModelRequest): string {
  const allowed = allowedSteps(model)
  const wanted = STEPS.indexOf(effort)
  const below = STEPS.slice(1, wanted + 1).findLast((step) => allowed.includes(step))
  const above = STEPS.slice(wanted).find((step) => allowed.includes(step))
  return below ?? above ?? 'medium'
}

function allowedSteps({ provider_options: options }: ModelDescriptor): readonly string[] {
  const listed = z.array(z.string()).nonempty().safeParse(options?.reasoning_effort)
  return listed.success ? listed.data : COMMON_STEPS
}

function makeDialect(): SdkDialect {
  const keeper = new ReasoningKeeper(SDK_NAME)
  return {
    note: (part) => keeper.note(part),
    usage: readUsage,
    // Told with the end, but also with one that is a failure.
    usageSoFar: (piece) => readUsage(fieldAt(piece, 'response', 'usage')),
    issued: () => true,
    opaque: ({ toolCallId }) => keeper.opaqueOf(toolCallId),
    // A failure without a word about it.
    ending: ({ unified }) =>
      unified === 'error' ? { category: 'unknown', text: 'the answer broke off' } : undefined,
  }
}

const RawUsage = z.object({
  input_tokens: TokenCount,
  output_tokens: TokenCount,
  input_tokens_details: z
    .object({ cached_tokens: TokenCount, cache_write_tokens: TokenCount })
    .nullish()
    .catch(undefined),
  output_tokens_details: z.object({ reasoning_tokens: TokenCount }).nullish().catch(undefined),
})

function readUsage(raw: unknown): ReportedUsage | undefined {
  if (raw === undefined) return undefined
  const { data } = RawUsage.safeParse(raw)
  if (data === undefined) return undefined
  return knownUsage({
    inputTokens: data.input_tokens,
    outputTokens: data.output_tokens,
    cachedTokens: data.input_tokens_details?.cached_tokens,
    cacheWriteTokens: data.input_tokens_details?.cache_write_tokens,
    reasoningTokens: data.output_tokens_details?.reasoning_tokens,
  })
}
