import type { LanguageModelV4CallOptions, LanguageModelV4FinishReason } from '@ai-sdk/provider'
import { z } from 'zod'
import type { ModelRequest } from '../core/prompt.ts'
import type { Effort } from '../protocol/execution/policy.ts'
import type { Ending, SdkDialect } from './ai-sdk-events.ts'
import { toSdkPrompt } from './ai-sdk-prompt.ts'
import { outputLimit, type SdkEndpoint, samplingOptions, toolOptions } from './ai-sdk-provider.ts'
import { CloudProvider } from './cloud-provider.ts'
import { fieldAt } from './field-at.ts'
import type { ReportedUsage } from './provider.ts'
import { knownUsage, sumKnown, TokenCount } from './token-counts.ts'

/** The name under which the SDK keeps fields of this provider. */
const SDK_NAME = 'google'

/** Google's Gemini API (EC 21). Its SDK is loaded with the first call. */
export class GeminiProvider extends CloudProvider {
  protected override readonly open: SdkEndpoint['open'] = async (request, { fetch, credential }) => {
    const { GoogleLanguageModel, getGoogleLanguageModelEntry } = await import('./gemini-sdk.ts')
    const name = request.model.model
    const madeUp = new Set<string>()
    const model = new GoogleLanguageModel(name, {
      provider: `${SDK_NAME}.generative-ai`,
      baseURL: `${this.baseUrl}/v1beta`,
      headers: credential ? { 'x-goog-api-key': credential } : {},
      fetch,
      generateId: () => {
        const id = `call-${madeUp.size}`
        madeUp.add(id)
        return id
      },
    })
    const format = getGoogleLanguageModelEntry(name).requestConfig.language.thinkingFormat
    return {
      model,
      options: toCallOptions(request, format),
      dialect: makeDialect((callId) => !madeUp.has(callId)),
    }
  }
}

type ThinkingFormat = 'level' | 'budget'

function toCallOptions(request: ModelRequest, format: ThinkingFormat): LanguageModelV4CallOptions {
  const { model, messages } = request
  const limit = outputLimit(request)
  const { top_k: topK } = model.default_parameters
  return {
    prompt: toSdkPrompt(messages, SDK_NAME),
    ...toolOptions(request),
    ...(limit === undefined ? {} : { maxOutputTokens: limit }),
    ...samplingOptions(model.default_parameters),
    ...(typeof topK === 'number' ? { topK } : {}),
    ...thinkingOptions(request, format),
  }
}

/** Levels that each model with levels has. */
const LEVELS: Record<Effort, 'low' | 'high'> = { low: 'low', medium: 'high', high: 'high', xhigh: 'high' }
/** Within what the smallest models with a budget take (512 to 24,576). */
const BUDGET_TOKENS: Record<Effort, number> = { low: 1_024, medium: 8_192, high: 24_576, xhigh: 24_576 }

/**
 * The SDK maps an effort by what it knows of a model's name. Where the descriptor's `provider_options.thinking` (`level`
 * or `budget`) says otherwise, the descriptor is right and a value is sent that every model of its kind takes.
 */
function thinkingOptions(
  { model, effort }: ModelRequest,
  format: ThinkingFormat,
): Pick<LanguageModelV4CallOptions, 'reasoning' | 'providerOptions'> {
  if (!model.capabilities.reasoning) return {}
  const says = model.provider_options?.thinking
  const thinkingConfig = (value: { thinkingLevel?: string; thinkingBudget?: number }) => ({
    [SDK_NAME]: { thinkingConfig: { includeThoughts: true, ...value } },
  })
  if (says === 'level' && format !== 'level') {
    return { providerOptions: thinkingConfig({ thinkingLevel: LEVELS[effort] }) }
  }
  if (says === 'budget' && format !== 'budget') {
    return { providerOptions: thinkingConfig({ thinkingBudget: BUDGET_TOKENS[effort] }) }
  }
  return { reasoning: effort, providerOptions: thinkingConfig({}) }
}

const makeDialect = (issued: SdkDialect['issued']): SdkDialect => ({
  usage: readUsage,
  usageSoFar: (piece) => readUsage(fieldAt(piece, 'usageMetadata')),
  issued,
  opaque: ({ providerMetadata }) => {
    const signature = providerMetadata?.[SDK_NAME]?.thoughtSignature
    return typeof signature === 'string' ? { thoughtSignature: signature } : undefined
  },
  ending: readEnding,
})

/** Words for a filter that the SDK does not count as one. */
const FILTERED: ReadonlySet<string> = new Set(['IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION', 'MODEL_ARMOR'])

/**
 * An answer that ended in any way but well, at its limit or by a filter is broken: a call that is no call, say. Google
 * ends a round of calls with its word for any good end; some gateways have one of their own, which holds if calls came.
 */
function readEnding({ unified, raw }: LanguageModelV4FinishReason, hasCalls: boolean): Ending | undefined {
  if (raw !== undefined && FILTERED.has(raw)) return 'refused'
  if (raw === 'FUNCTION_CALL' && hasCalls) return 'tool_calls'
  if (unified !== 'error' && unified !== 'other') return undefined
  const word = raw !== undefined && /^[A-Z_]{1,40}$/.test(raw) ? raw : 'no reason'
  return { category: 'unknown', text: `the answer broke off with ${word}` }
}

const RawUsage = z.object({
  promptTokenCount: TokenCount,
  toolUsePromptTokenCount: TokenCount,
  cachedContentTokenCount: TokenCount,
  candidatesTokenCount: TokenCount,
  thoughtsTokenCount: TokenCount,
})

function readUsage(raw: unknown): ReportedUsage | undefined {
  if (raw === undefined) return undefined
  const { data } = RawUsage.safeParse(raw)
  if (data === undefined) return undefined
  return knownUsage({
    inputTokens: sumKnown(data.promptTokenCount, data.toolUsePromptTokenCount),
    // The thoughts are not part of what the candidates count.
    outputTokens: sumKnown(data.candidatesTokenCount, data.thoughtsTokenCount),
    cachedTokens: data.cachedContentTokenCount,
    cacheWriteTokens: undefined,
    reasoningTokens: data.thoughtsTokenCount,
  })
}
