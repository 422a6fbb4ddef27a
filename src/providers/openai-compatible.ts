import type { LanguageModelV4CallOptions, LanguageModelV4ToolCall } from '@ai-sdk/provider'
import { z } from 'zod'
import type { ModelRequest } from '../core/prompt.ts'
import type { ModelDescriptor, ProviderDescriptor } from '../protocol/execution/models.ts'
import type { Effort } from '../protocol/execution/policy.ts'
import { ok, type Result } from '../protocol/result.ts'
import { toSdkPrompt } from './ai-sdk-prompt.ts'
import {
  invokeThroughSdk,
  outputLimit,
  type SdkEndpoint,
  samplingOptions,
  toolOptions,
} from './ai-sdk-provider.ts'
import type { InstanceConfig } from './config.ts'
import { fieldAt } from './field-at.ts'
import { discoverModels } from './openai-compatible-models.ts'
import { recoverPrintedCalls } from './printed-calls.ts'
import type { CallContext, ModelEvent, ModelProvider, ProviderFailure, ReportedUsage } from './provider.ts'
import { knownUsage, TokenCount } from './token-counts.ts'
import type { Deadlines } from './upstream-call.ts'

/** The name under which the SDK looks for fields of ours; it appears in no request. */
const SDK_NAME = 'compatible'

/**
 * One endpoint that speaks OpenAI's chat completions (EC 21). The SDK that knows its many accents is loaded with the
 * first call. A key, where one is given, is sent whatever `auth` says; `auth` only tells whether a call needs one.
 */
export class OpenAiCompatibleProvider implements ModelProvider {
  readonly descriptor: ProviderDescriptor
  readonly #config: InstanceConfig
  readonly #deadlines: Deadlines
  readonly #ownMachine: Deadlines

  /** @param ownMachine the deadlines of an endpoint that is a machine of the user's own */
  constructor(config: InstanceConfig, deadlines: Deadlines, ownMachine: Deadlines = deadlines) {
    this.#config = config
    this.#deadlines = deadlines
    this.#ownMachine = ownMachine
    this.descriptor = { id: config.id, display_name: config.displayName, local: config.local }
  }

  async listModels(
    context: CallContext,
    names?: readonly string[],
  ): Promise<Result<ModelDescriptor[], ProviderFailure>> {
    const listed = this.#config.models ? ok(this.#config.models) : await discoverModels(this.#config, context)
    if (!listed.ok || names === undefined) return listed
    return ok(listed.value.filter(({ model }) => names.includes(model)))
  }

  invoke(request: ModelRequest, context: CallContext): AsyncIterable<ModelEvent> {
    const { baseUrl, local } = this.#config
    const { model, tools } = request
    const deadlines = local ? this.#ownMachine : this.#deadlinesFor(model)
    const endpoint = { baseUrl, local, deadlines, open: this.#open }
    const events = invokeThroughSdk(endpoint, request, context)
    return recoverPrintedCalls(events, model.capabilities.tools ? tools : [])
  }

  /** Some endpoints say nothing, not even that they have begun, while a model thinks. */
  #deadlinesFor({ capabilities }: ModelDescriptor): Deadlines {
    const { firstByteMs } = this.#ownMachine
    return capabilities.reasoning ? { ...this.#deadlines, firstByteMs } : this.#deadlines
  }

  readonly #open: SdkEndpoint['open'] = async (request, { fetch, credential }) => {
    const { OpenAICompatibleChatLanguageModel } = await import('./openai-compatible-sdk.ts')
    const issuedIds = new Set<string>()
    const model = new OpenAICompatibleChatLanguageModel(request.model.model, {
      provider: SDK_NAME,
      url: ({ path }) => `${this.#config.baseUrl}${path}`,
      headers: credential ? { authorization: `Bearer ${credential}` } : {},
      fetch,
      includeUsage: true,
      errorStructure: { errorSchema: ErrorChunk, errorToMessage: () => '' },
      metadataExtractor: {
        extractMetadata: async ({ parsedBody }) => noteIds(parsedBody, issuedIds),
        createStreamExtractor: () => ({
          processChunk: (chunk) => noteIds(chunk, issuedIds),
          buildMetadata: () => undefined,
        }),
      },
    })
    return {
      model,
      options: toCallOptions(request),
      dialect: {
        usage: readUsage,
        // Some servers tell the usage with each chunk.
        usageSoFar: (piece) => readUsage(fieldAt(piece, 'usage')),
        issued: (callId) => issuedIds.has(callId),
        opaque: readOpaque,
      },
    }
  }
}

function toCallOptions(request: ModelRequest): LanguageModelV4CallOptions {
  const { model, messages, effort } = request
  const { temperature: _, top_p: __, max_tokens: ___, ...others } = model.default_parameters
  const limit = outputLimit(request)
  return {
    prompt: toSdkPrompt(messages, SDK_NAME),
    ...toolOptions(request),
    ...(limit === undefined ? {} : { maxOutputTokens: limit }),
    ...samplingOptions(model.default_parameters),
    ...(model.capabilities.reasoning ? { reasoning: REASONING[effort] } : {}),
    providerOptions: { [SDK_NAME]: z.record(z.string(), z.json()).parse(others) },
  }
}

/** The dialect has no step above `high`. */
const REASONING: Record<Effort, 'low' | 'medium' | 'high'> = {
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
}

/** An error in the middle of a stream: an object, or just text. */
const ErrorChunk = z.looseObject({
  error: z.unknown().refine((error) => error !== undefined && error !== null),
})

const RawUsage = z.object({
  prompt_tokens: TokenCount,
  completion_tokens: TokenCount,
  prompt_tokens_details: z.object({ cached_tokens: TokenCount }).nullish().catch(undefined),
  completion_tokens_details: z.object({ reasoning_tokens: TokenCount }).nullish().catch(undefined),
})

function readUsage(raw: unknown): ReportedUsage | undefined {
  if (raw === undefined) return undefined
  const { data } = RawUsage.safeParse(raw)
  if (data === undefined) return undefined
  return knownUsage({
    inputTokens: data.prompt_tokens,
    outputTokens: data.completion_tokens,
    cachedTokens: data.prompt_tokens_details?.cached_tokens,
    cacheWriteTokens: undefined,
    reasoningTokens: data.completion_tokens_details?.reasoning_tokens,
  })
}

const CallIds = z.object({ tool_calls: z.array(z.object({ id: z.string().nullish() })).nullish() }).nullish()
const RawAnswer = z.object({ choices: z.array(z.object({ delta: CallIds, message: CallIds })) })

function noteIds(chunk: unknown, into: Set<string>): undefined {
  const parsed = RawAnswer.safeParse(chunk)
  for (const choice of parsed.data?.choices ?? []) {
    for (const { id } of (choice.delta ?? choice.message)?.tool_calls ?? []) if (id) into.add(id)
  }
}

function readOpaque({ providerMetadata }: LanguageModelV4ToolCall): Record<string, unknown> | undefined {
  const own = providerMetadata?.[SDK_NAME]
  return own === undefined || Object.keys(own).length === 0 ? undefined : own
}
