import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import type { ModelRequest } from '../core/prompt.ts'
import type { ModelParameters } from '../protocol/execution/models.ts'
import { asAnswerError, noted, replay, type SdkDialect, toModelEvents } from './ai-sdk-events.ts'
import { toSdkTools } from './ai-sdk-prompt.ts'
import { EgressViolation, type Fetch } from './egress.ts'
import { missingCredentials } from './missing-credentials.ts'
import type { CallContext, ModelEvent } from './provider.ts'
import { redactionFor } from './redaction.ts'
import { type Deadlines, MalformedAnswer, ReportedFailure, UpstreamCall } from './upstream-call.ts'

/** One request in the hands of the SDK: its model, what to ask it, and how to read what comes. */
export type SdkRequest = {
  model: Pick<LanguageModelV4, 'doStream' | 'doGenerate'>
  options: LanguageModelV4CallOptions
  dialect: SdkDialect
}

export type SdkEndpoint = {
  baseUrl: string
  local: boolean
  deadlines: Deadlines
  /**
   * Loads the SDK and makes the request. The SDK is imported in here and nowhere else: it is loaded by the first call,
   * not by the start of the program. Its models send through `fetch` and retry nothing (D16).
   */
  open: (
    request: ModelRequest,
    upstream: { fetch: Fetch; credential: string | undefined },
  ) => Promise<SdkRequest>
}

/**
 * Runs one completion through a model of the AI SDK: streamed, or in one piece where the model cannot stream.
 * @throws EgressViolation for a request that must not be made, before any byte leaves
 */
export async function* invokeThroughSdk(
  { baseUrl, local, deadlines, open }: SdkEndpoint,
  request: ModelRequest,
  { credential, egress, signal }: CallContext,
): AsyncGenerator<ModelEvent, void> {
  const { model } = request
  if (model.auth === 'api_key' && !credential) {
    yield { type: 'failed', failure: missingCredentials() }
    return
  }
  const streamed = model.capabilities.streaming === true
  const call = new UpstreamCall({
    fetch: egress({ baseUrl, local: local && model.local, model: model.model }),
    signal,
    totalMs: deadlines.totalMs,
    ...(streamed ? { stream: { ...deadlines, framing: 'events' } } : {}),
    redaction: redactionFor(request, credential),
  })
  try {
    const opened = await open(request, { fetch: call.fetch, credential })
    yield* answer(opened, streamed, call)
  } catch (error) {
    yield { type: 'failed', failure: call.failureOf(error) }
  } finally {
    call.end()
  }
}

async function* answer(
  { model, options, dialect }: SdkRequest,
  streamed: boolean,
  call: UpstreamCall,
): AsyncGenerator<ModelEvent, void> {
  try {
    const parts = streamed
      ? // Only the pieces as they were sent tell the usage before the end.
        noted((await model.doStream({ ...options, includeRawChunks: true })).stream, dialect)
      : replay(await model.doGenerate(options), dialect)
    yield* toModelEvents(parts, call, dialect)
  } catch (error) {
    const isKnown =
      error instanceof MalformedAnswer || error instanceof ReportedFailure || error instanceof EgressViolation
    throw isKnown ? error : asAnswerError(error)
  }
}

/** The tools as call options. Without a tool nothing is said about choosing one: some providers refuse that. */
export const toolOptions = ({
  tools,
}: ModelRequest): Pick<LanguageModelV4CallOptions, 'tools' | 'toolChoice'> =>
  tools.length === 0 ? {} : { tools: toSdkTools(tools), toolChoice: { type: 'auto' } }

/** The most that an answer may have, in tokens: the lesser of what the model can and what its parameters say. */
export function outputLimit({ model }: ModelRequest): number | undefined {
  const limits = [model.default_parameters.max_tokens, model.max_output_tokens].filter(
    (limit) => typeof limit === 'number',
  )
  return limits.length === 0 ? undefined : Math.min(...limits)
}

/** The sampling parameters that each dialect but OpenAI's own takes. */
export function samplingOptions({
  temperature,
  top_p: topP,
}: ModelParameters): Pick<LanguageModelV4CallOptions, 'temperature' | 'topP'> {
  return {
    ...(typeof temperature === 'number' ? { temperature } : {}),
    ...(typeof topP === 'number' ? { topP } : {}),
  }
}
