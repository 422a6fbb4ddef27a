import { z } from 'zod'
import type { ModelRequest } from '../core/prompt.ts'
import type { ModelDescriptor, ProviderDescriptor } from '../protocol/execution/models.ts'
import type { Result } from '../protocol/result.ts'
import { AnswerBounds } from './answer-bounds.ts'
import { readJson } from './catalogue-request.ts'
import type { OllamaConfig } from './config.ts'
import { readNdjson } from './ndjson.ts'
import { listOllamaModels } from './ollama-catalogue.ts'
import { toChatBody } from './ollama-request.ts'
import { recoverPrintedCalls } from './printed-calls.ts'
import type {
  CallContext,
  FinishReason,
  ModelEvent,
  ModelProvider,
  ProviderFailure,
  ReportedUsage,
} from './provider.ts'
import { readError } from './provider-message.ts'
import { redactionFor } from './redaction.ts'
import { knownUsage, TokenCount } from './token-counts.ts'
import { type ToolArguments, takeToolArguments } from './tool-arguments.ts'
import { type Deadlines, MalformedAnswer, UpstreamCall } from './upstream-call.ts'

/**
 * An Ollama daemon, spoken to natively: its OpenAI-compatible door does not take `num_ctx`, and a prompt beyond the
 * daemon's default window would be cut without a word (D13).
 *
 * The `ollama` package is not used: on a line that it cannot parse it writes the line, that is a piece of the answer,
 * to the log and goes on as if it had not been there; it drops headers of errors, such as `Retry-After`; and it takes a
 * key from the process environment by itself.
 */
export class OllamaProvider implements ModelProvider {
  readonly descriptor: ProviderDescriptor
  readonly #config: OllamaConfig
  readonly #deadlines: Deadlines

  constructor(config: OllamaConfig, deadlines: Deadlines) {
    this.#config = config
    this.#deadlines = deadlines
    this.descriptor = { id: 'ollama', display_name: 'Ollama', local: config.local }
  }

  listModels(
    context: CallContext,
    names?: readonly string[],
  ): Promise<Result<ModelDescriptor[], ProviderFailure>> {
    return listOllamaModels(this.#config, context, names)
  }

  invoke(request: ModelRequest, context: CallContext): AsyncIterable<ModelEvent> {
    const { model, tools } = request
    return recoverPrintedCalls(this.#answer(request, context), model.capabilities.tools ? tools : [])
  }

  async *#answer(request: ModelRequest, context: CallContext): AsyncGenerator<ModelEvent, void> {
    const { baseUrl, local } = this.#config
    const { model } = request
    const { credential } = context
    const streamed = model.capabilities.streaming === true
    const call = new UpstreamCall({
      // A daemon on this machine may forward a model to the cloud: the way out is as local as the model is.
      fetch: context.egress({ baseUrl, local: local && model.local, model: model.model }),
      signal: context.signal,
      totalMs: this.#deadlines.totalMs,
      ...(streamed ? { stream: { ...this.#deadlines, framing: 'lines' } } : {}),
      redaction: redactionFor(request, credential),
    })
    try {
      const response = await call.fetch(`${baseUrl}/api/chat`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(credential ? { authorization: `Bearer ${credential}` } : {}),
        },
        body: JSON.stringify(toChatBody(request, streamed)),
      })
      const pieces =
        streamed && response.body !== null ? readNdjson(response.body) : [await readJson(response)]
      yield* toModelEvents(pieces, call, model)
    } catch (error) {
      yield { type: 'failed', failure: call.failureOf(error) }
    } finally {
      call.end()
    }
  }
}

/** One line of a streamed answer, or a whole buffered one. */
const Piece = z.object({
  message: z
    .object({
      content: z.string().nullish(),
      thinking: z.string().nullish(),
      tool_calls: z
        .array(
          z.object({
            id: z.string().nullish(),
            function: z.object({ name: z.string().min(1), arguments: z.unknown().optional() }),
          }),
        )
        .nullish(),
    })
    .nullish(),
  done: z.boolean().nullish(),
  done_reason: z.string().nullish(),
  prompt_eval_count: TokenCount,
  prompt_eval_cached_count: TokenCount,
  eval_count: TokenCount,
  remote_host: z.string().nullish(),
  error: z.unknown().optional(),
})
type Piece = z.infer<typeof Piece>

async function* toModelEvents(
  pieces: AsyncIterable<unknown> | Iterable<unknown>,
  call: UpstreamCall,
  model: ModelDescriptor,
): AsyncGenerator<ModelEvent, void> {
  const calls: ModelEvent[] = []
  const bounds = new AnswerBounds()
  for await (const value of pieces) {
    const parsed = Piece.safeParse(value)
    if (!parsed.success) throw new MalformedAnswer('its answer cannot be read')
    const piece = parsed.data
    if (piece.error !== undefined && piece.error !== null) {
      yield { type: 'failed', failure: call.reported(readError(piece.error)) }
      return
    }
    if (model.local && piece.remote_host) {
      yield { type: 'failed', failure: forwarded(model) }
      return
    }
    const { thinking, content, tool_calls } = piece.message ?? {}
    bounds.said((thinking?.length ?? 0) + (content?.length ?? 0))
    if (thinking) yield { type: 'reasoning_delta', delta: thinking }
    if (content) yield { type: 'text_delta', delta: content }
    for (const { id, function: made } of tool_calls ?? []) {
      const args = takeToolArguments(made.arguments)
      bounds.called(undefined, made.name, sizeOf(args))
      calls.push({
        type: 'tool_call',
        ...(id && bounds.isFirst(id) ? { providerCallId: id } : {}),
        name: made.name,
        ...args,
      })
    }
    if (piece.done) {
      yield* calls
      const usage = readUsage(piece)
      if (usage !== undefined) yield { type: 'usage', usage }
      yield { type: 'finished', reason: finishReason(piece.done_reason, calls.length > 0) }
      return
    }
  }
  throw new MalformedAnswer('the answer ended before it was complete')
}

const sizeOf = ({ malformedArguments, arguments: args }: ToolArguments): number =>
  malformedArguments?.length ?? JSON.stringify(args).length

const readUsage = (piece: Piece): ReportedUsage | undefined =>
  knownUsage({
    inputTokens: piece.prompt_eval_count,
    outputTokens: piece.eval_count,
    cachedTokens: piece.prompt_eval_cached_count,
    cacheWriteTokens: undefined,
    reasoningTokens: undefined,
  })

function finishReason(reason: string | null | undefined, hasCalls: boolean): FinishReason {
  if (reason === 'length') return 'length'
  if (hasCalls) return 'tool_calls'
  return reason === 'stop' || reason === undefined || reason === null ? 'stop' : 'other'
}

/** The name was re-pointed to a cloud model after it was listed. Too late for this prompt, in time for the next (U37). */
const forwarded = (model: ModelDescriptor): ProviderFailure => ({
  category: 'invalid_configuration',
  message: `${model.model} was listed as local, but the daemon forwards it to another host`,
})
