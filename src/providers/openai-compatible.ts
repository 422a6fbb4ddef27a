import type { LanguageModelV4CallOptions, LanguageModelV4ToolCall } from '@ai-sdk/provider'
import { z } from 'zod'
import type { ModelRequest } from '../core/prompt.ts'
import type { ModelDescriptor, ProviderDescriptor } from '../protocol/execution/models.ts'
import type { Effort } from '../protocol/execution/policy.ts'
import { ok, type Result } from '../protocol/result.ts'
import { replay, type SdkDialect, toModelEvents } from './ai-sdk-events.ts'
import { toSdkPrompt, toSdkTools } from './ai-sdk-prompt.ts'
import type { InstanceConfig } from './config.ts'
import { EgressViolation } from './egress.ts'
import { missingCredentials } from './missing-credentials.ts'
import { discoverModels } from './openai-compatible-models.ts'
import type { CallContext, ModelEvent, ModelProvider, ProviderFailure, ReportedUsage } from './provider.ts'
import { type Deadlines, MalformedAnswer, redactionFor, UpstreamCall } from './upstream-call.ts'

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

  constructor(config: InstanceConfig, deadlines: Deadlines) {
    this.#config = config
    this.#deadlines = deadlines
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

  async *invoke(request: ModelRequest, context: CallContext): AsyncGenerator<ModelEvent, void> {
    const { baseUrl, local } = this.#config
    const { model } = request
    if (model.auth === 'api_key' && !context.credential) {
      yield { type: 'failed', failure: missingCredentials() }
      return
    }
    const streamed = model.capabilities.streaming === true
    const call = new UpstreamCall({
      fetch: context.egress({ baseUrl, local: local && model.local, model: model.model }),
      signal: context.signal,
      totalMs: this.#deadlines.totalMs,
      ...(streamed ? { firstByteMs: this.#deadlines.firstByteMs } : {}),
      redaction: redactionFor(request, context.credential),
    })
    try {
      yield* this.#answer(request, streamed, call, context.credential)
    } catch (error) {
      yield { type: 'failed', failure: call.failureOf(error) }
    } finally {
      call.end()
    }
  }

  async *#answer(
    request: ModelRequest,
    streamed: boolean,
    call: UpstreamCall,
    credential: string | undefined,
  ): AsyncGenerator<ModelEvent, void> {
    const { OpenAICompatibleChatLanguageModel } = await import('@ai-sdk/openai-compatible')
    const issuedIds = new Set<string>()
    const model = new OpenAICompatibleChatLanguageModel(request.model.model, {
      provider: SDK_NAME,
      url: ({ path }) => `${this.#config.baseUrl}${path}`,
      headers: credential ? { authorization: `Bearer ${credential}` } : {},
      fetch: call.fetch,
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
    const dialect: SdkDialect = {
      usage: readUsage,
      issued: (callId) => issuedIds.has(callId),
      opaque: readOpaque,
    }
    const options = toCallOptions(request)
    try {
      const parts = streamed
        ? (await model.doStream(options)).stream
        : replay(await model.doGenerate(options))
      yield* toModelEvents(parts, call, dialect)
    } catch (error) {
      if (error instanceof MalformedAnswer || error instanceof EgressViolation) throw error
      // Whatever the SDK trips over is something that the provider sent.
      throw new MalformedAnswer('its answer cannot be read', { cause: error })
    }
  }
}

function toCallOptions({ model, messages, tools, effort }: ModelRequest): LanguageModelV4CallOptions {
  const { temperature, top_p: topP, max_tokens: maxTokens, ...others } = model.default_parameters
  const limits = [maxTokens, model.max_output_tokens].filter((limit) => typeof limit === 'number')
  return {
    prompt: toSdkPrompt(messages, SDK_NAME),
    ...(tools.length === 0 ? {} : { tools: toSdkTools(tools), toolChoice: { type: 'auto' } }),
    ...(limits.length === 0 ? {} : { maxOutputTokens: Math.min(...limits) }),
    ...(typeof temperature === 'number' ? { temperature } : {}),
    ...(typeof topP === 'number' ? { topP } : {}),
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

const Tokens = z.int().nonnegative().nullish().catch(undefined)
const RawUsage = z.object({
  prompt_tokens: Tokens,
  completion_tokens: Tokens,
  prompt_tokens_details: z.object({ cached_tokens: Tokens }).nullish().catch(undefined),
  completion_tokens_details: z.object({ reasoning_tokens: Tokens }).nullish().catch(undefined),
})

function readUsage(raw: unknown): ReportedUsage | undefined {
  const parsed = RawUsage.safeParse(raw)
  if (!parsed.success) return undefined
  const usage: ReportedUsage = {}
  const { prompt_tokens, completion_tokens, prompt_tokens_details, completion_tokens_details } = parsed.data
  if (typeof prompt_tokens === 'number') usage.inputTokens = prompt_tokens
  if (typeof completion_tokens === 'number') usage.outputTokens = completion_tokens
  const cached = prompt_tokens_details?.cached_tokens
  if (typeof cached === 'number') usage.cachedTokens = cached
  const reasoning = completion_tokens_details?.reasoning_tokens
  if (typeof reasoning === 'number') usage.reasoningTokens = reasoning
  return Object.keys(usage).length === 0 ? undefined : usage
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
