import type {
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolCall,
} from '@ai-sdk/provider'
import type { FinishReason, ModelEvent, ReportedUsage } from './provider.ts'
import { type ProviderSaid, readError } from './provider-message.ts'
import { parseToolArguments } from './tool-arguments.ts'
import { MalformedAnswer, type UpstreamCall } from './upstream-call.ts'

/** What differs between the dialects that the AI SDK speaks for us. */
export type SdkDialect = {
  /** Reads the provider's own usage object: the SDK turns an unknown count into zero (U43). */
  usage: (raw: unknown) => ReportedUsage | undefined
  /** Whether the provider issued this id; the SDK makes one up where it did not. */
  issued: (callId: string) => boolean
  /** Fields of a call that only its provider understands (U40). */
  opaque: (call: LanguageModelV4ToolCall) => Record<string, unknown> | undefined
}

/**
 * Turns the parts of one answer, streamed or replayed, into model events.
 * Ends after `finished`, or after `failed` for an error that the provider reported in its stream.
 * @throws MalformedAnswer when the answer breaks its dialect or ends early
 */
export async function* toModelEvents(
  parts: AsyncIterable<LanguageModelV4StreamPart> | Iterable<LanguageModelV4StreamPart>,
  call: UpstreamCall,
  dialect: SdkDialect,
): AsyncGenerator<ModelEvent, void> {
  // The SDK gives out its calls when the stream ends, also when it was cut: they count only once it has finished well.
  const calls: LanguageModelV4ToolCall[] = []
  for await (const part of parts) {
    switch (part.type) {
      case 'text-delta':
      case 'reasoning-delta':
        if (part.delta !== '') {
          yield { type: part.type === 'text-delta' ? 'text_delta' : 'reasoning_delta', delta: part.delta }
        }
        break
      case 'tool-call':
        calls.push(part)
        break
      case 'error':
        yield { type: 'failed', failure: call.reported(saidIn(part.error)) }
        return
      case 'finish': {
        for (const made of calls) yield toToolCall(made, dialect)
        const usage = dialect.usage(part.usage.raw)
        if (usage !== undefined) yield { type: 'usage', usage }
        yield { type: 'finished', reason: finishReason(part.finishReason, calls.length > 0) }
        return
      }
    }
  }
  throw new MalformedAnswer('the answer ended before it was complete')
}

/** The parts of a buffered answer, in the order in which a stream would have brought them (EC 18). */
export function* replay(result: LanguageModelV4GenerateResult): Generator<LanguageModelV4StreamPart, void> {
  const text = joined(result.content, 'text')
  const reasoning = joined(result.content, 'reasoning')
  if (reasoning !== '') yield { type: 'reasoning-delta', id: 'reasoning', delta: reasoning }
  if (text !== '') yield { type: 'text-delta', id: 'text', delta: text }
  for (const part of result.content) if (part.type === 'tool-call') yield part
  yield { type: 'finish', usage: result.usage, finishReason: result.finishReason }
}

const joined = (content: readonly LanguageModelV4Content[], type: 'text' | 'reasoning'): string =>
  content.map((part) => (part.type === type ? part.text : '')).join('')

/** An SDK error quotes what it could not parse, so only an error of the provider's own is read. */
function saidIn(error: unknown): ProviderSaid {
  if (error instanceof Error) throw new MalformedAnswer('its answer cannot be read', { cause: error })
  return readError(error)
}

function toToolCall(made: LanguageModelV4ToolCall, dialect: SdkDialect): ModelEvent {
  const opaque = dialect.opaque(made)
  return {
    type: 'tool_call',
    ...(dialect.issued(made.toolCallId) ? { providerCallId: made.toolCallId } : {}),
    name: made.toolName,
    ...parseToolArguments(made.input),
    ...(opaque === undefined ? {} : { opaque }),
  }
}

/** Many servers end a round of calls with `stop`; the calls are there all the same. */
function finishReason({ unified }: LanguageModelV4FinishReason, hasCalls: boolean): FinishReason {
  switch (unified) {
    case 'length':
      return 'length'
    case 'content-filter':
      return 'refused'
    case 'stop':
    case 'tool-calls':
      return hasCalls ? 'tool_calls' : 'stop'
    case 'error':
    case 'interrupted':
    case 'other':
      return hasCalls ? 'tool_calls' : 'other'
  }
}
