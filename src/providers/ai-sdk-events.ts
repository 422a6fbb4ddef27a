import type {
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolCall,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider'
import type { ProviderErrorCategory } from '../protocol/execution/models.ts'
import { AnswerBounds } from './answer-bounds.ts'
import type { FinishReason, ModelEvent, ReportedUsage } from './provider.ts'
import { type ProviderSaid, readError } from './provider-message.ts'
import { isSameUsage } from './token-counts.ts'
import { parseToolArguments } from './tool-arguments.ts'
import { MalformedAnswer, ReportedFailure, type UpstreamCall } from './upstream-call.ts'

/** How an answer ended: well enough to be used, or in a way that is a failure (U42). */
export type Ending = FinishReason | { category: ProviderErrorCategory; text: string }

/** What differs between the dialects that the AI SDK speaks for us. Made for one call, so it may remember. */
export type SdkDialect = {
  /** Reads the provider's own usage object: the SDK turns an unknown count into zero (U43). */
  usage: (raw: unknown) => ReportedUsage | undefined
  /** Reads what a piece of a stream, as it was sent, reports of the usage. Asked for each piece, and most report none. */
  usageSoFar: (piece: unknown) => ReportedUsage | undefined
  /** Whether the provider issued this id; the SDK makes one up where it did not. */
  issued: (callId: string) => boolean
  /** Fields of a call that only its provider understands (U40). Asked when the answer is complete. */
  opaque: (call: LanguageModelV4ToolCall) => Record<string, unknown> | undefined
  /** Sees each part of the answer, in its order, before anything is made of it. */
  note?: (part: LanguageModelV4StreamPart | LanguageModelV4Content) => void
  /** Endings that mean something else in this dialect than the SDK says; absent for one that it sorts well. */
  ending?: (reason: LanguageModelV4FinishReason, hasCalls: boolean) => Ending | undefined
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
  let told: ReportedUsage = {}
  const bounds = new AnswerBounds()
  for await (const part of parts) {
    switch (part.type) {
      case 'raw': {
        const usage = dialect.usageSoFar(part.rawValue)
        if (usage === undefined || isSameUsage(usage, told)) break
        told = usage
        yield { type: 'usage_so_far', usage }
        break
      }
      case 'text-delta':
      case 'reasoning-delta':
        bounds.said(part.delta.length + proofChars(part))
        if (part.delta !== '') {
          yield { type: part.type === 'text-delta' ? 'text_delta' : 'reasoning_delta', delta: part.delta }
        }
        break
      case 'reasoning-start':
      case 'reasoning-end':
        bounds.said(proofChars(part))
        break
      case 'tool-input-delta':
        bounds.argued(part.id, part.delta.length)
        break
      case 'tool-call':
        bounds.called(part.toolCallId, part.toolName, part.input.length)
        bounds.said(proofChars(part))
        calls.push(part)
        break
      case 'error':
        yield { type: 'failed', failure: call.reported(saidIn(part.error)) }
        return
      case 'finish': {
        const hasCalls = calls.length > 0
        const ending =
          dialect.ending?.(part.finishReason, hasCalls) ?? commonEnding(part.finishReason, hasCalls)
        if (typeof ending === 'string') for (const made of calls) yield toToolCall(made, dialect, bounds)
        const usage = dialect.usage(part.usage.raw)
        if (usage !== undefined) yield { type: 'usage', usage }
        if (typeof ending === 'string') yield { type: 'finished', reason: ending }
        else yield { type: 'failed', failure: call.describe(ending.category, { text: ending.text }) }
        return
      }
    }
  }
  throw endedEarly()
}

/** The parts of a stream, shown to the dialect as they pass. */
export async function* noted(
  parts: AsyncIterable<LanguageModelV4StreamPart>,
  { note }: SdkDialect,
): AsyncGenerator<LanguageModelV4StreamPart, void> {
  for await (const part of parts) {
    note?.(part)
    yield part
  }
}

/** The parts of a buffered answer, in the order in which a stream would have brought them (EC 18). */
export function* replay(
  result: LanguageModelV4GenerateResult,
  { note }: SdkDialect,
): Generator<LanguageModelV4StreamPart, void> {
  for (const part of result.content) note?.(part)
  const text = joined(result.content, 'text')
  const reasoning = joined(result.content, 'reasoning')
  if (reasoning !== '') yield { type: 'reasoning-delta', id: 'reasoning', delta: reasoning }
  if (text !== '') yield { type: 'text-delta', id: 'text', delta: text }
  for (const part of result.content) if (part.type === 'tool-call') yield part
  yield { type: 'finish', usage: result.usage, finishReason: result.finishReason }
}

const joined = (content: readonly LanguageModelV4Content[], type: 'text' | 'reasoning'): string =>
  content.map((part) => (part.type === type ? part.text : '')).join('')

/**
 * What the SDK stumbled over, told as what it is: an error that the provider sent where its answer should have been, or
 * an answer that cannot be read. The status beside such an error is the SDK's guess and is not believed.
 */
export function asAnswerError(error: unknown): Error {
  const body = error instanceof Error && 'responseBody' in error ? parsed(error.responseBody) : undefined
  return isErrorBody(body)
    ? new ReportedFailure(readError(body))
    : new MalformedAnswer('its answer cannot be read', { cause: error })
}

function parsed(body: unknown): unknown {
  if (typeof body !== 'string') return body
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

/** A whole error body, an error event, or the inside of one: an answer has neither an error nor a message of its own. */
const isErrorBody = (body: unknown): boolean =>
  typeof body === 'object' &&
  body !== null &&
  ['error', 'message', 'response'].some((name) => Reflect.get(body, name) != null)

/** An SDK error quotes what it could not parse, so only an error of the provider's own is read. */
function saidIn(error: unknown): ProviderSaid {
  if (error instanceof Error) throw asAnswerError(error)
  const wrapped = typeof error === 'object' && error !== null && 'data' in error ? error.data : undefined
  return readError(wrapped ?? error)
}

const endedEarly = () => new MalformedAnswer('the answer ended before it was complete')

/** What a provider sends along as proof of what it said. It is held like a text. */
const proofChars = ({ providerMetadata }: { providerMetadata?: SharedV4ProviderMetadata }): number =>
  providerMetadata === undefined ? 0 : JSON.stringify(providerMetadata).length

function toToolCall(made: LanguageModelV4ToolCall, dialect: SdkDialect, bounds: AnswerBounds): ModelEvent {
  const opaque = dialect.opaque(made)
  const tellsApart = dialect.issued(made.toolCallId) && bounds.isFirst(made.toolCallId)
  return {
    type: 'tool_call',
    ...(tellsApart ? { providerCallId: made.toolCallId } : {}),
    name: made.toolName,
    ...parseToolArguments(made.input),
    ...(opaque === undefined ? {} : { opaque }),
  }
}

/**
 * Many servers end a round of calls with `stop`; the calls are there all the same.
 * @throws MalformedAnswer for a stream that was cut, whose end the SDK makes up
 */
function commonEnding({ unified }: LanguageModelV4FinishReason, hasCalls: boolean): FinishReason {
  switch (unified) {
    case 'length':
      return 'length'
    case 'content-filter':
      return 'refused'
    case 'stop':
      return hasCalls ? 'tool_calls' : 'stop'
    case 'interrupted':
      throw endedEarly()
    // One that ends to call, and calls nothing: its calls could not be read.
    case 'tool-calls':
    case 'error':
    case 'other':
      return hasCalls ? 'tool_calls' : 'other'
  }
}
