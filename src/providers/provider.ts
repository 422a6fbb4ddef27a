import type { ModelRequest } from '../core/prompt.ts'
import type { Provider } from '../protocol/execution/ids.ts'
import type {
  ModelDescriptor,
  ProviderDescriptor,
  ProviderErrorCategory,
} from '../protocol/execution/models.ts'
import type { Result } from '../protocol/result.ts'
import type { Egress } from './egress.ts'

/** A provider's failure as data. `message` is fit for a client: no credential, no prompt, no response body. */
export type ProviderFailure = {
  category: ProviderErrorCategory
  message: string
  /** How long the provider asks to wait. */
  retryAfterMs?: number
  /** The HTTP status of a refusal. */
  status?: number
  /** The router itself ended the call; no reason to try another model. */
  aborted?: true
}

/**
 * Token counts as a provider reports them, brought to one meaning. An absent counter is unknown (U43).
 * `inputTokens` is the whole prompt, what the cache gave (`cachedTokens`) and took (`cacheWriteTokens`) included;
 * `outputTokens` is everything generated, `reasoningTokens` included.
 */
export type ReportedUsage = {
  inputTokens?: number
  outputTokens?: number
  cachedTokens?: number
  cacheWriteTokens?: number
  reasoningTokens?: number
}

/** `length`: cut at the output limit. `refused`: the provider's filter stopped it (U42). */
export type FinishReason = 'stop' | 'tool_calls' | 'length' | 'refused' | 'other'

/**
 * What an invocation yields, in order. It ends with exactly one `finished` or `failed` and nothing after it.
 * - A `tool_call` is whole and comes after all deltas, when the answer is known to be complete, so a call of a cut stream
 *   is never seen. Its arguments are parsed; text that is no JSON object is kept in `malformedArguments` and `arguments`
 *   is empty.
 * - `usage_so_far` is what has been reported while the answer still came, for one that is cut before its `usage` (EC 15,
 *   U43). It comes whenever those counts change, and a later one replaces it; what it counts as generated may lag behind
 *   the text.
 * - `usage` is the final count and comes at most once, before the end.
 */
export type ModelEvent =
  | { type: 'text_delta'; delta: string }
  | { type: 'reasoning_delta'; delta: string }
  | {
      type: 'tool_call'
      /** The provider's own id; absent for dialects that have none. */
      providerCallId?: string
      name: string
      arguments: Record<string, unknown>
      malformedArguments?: string
      opaque?: Record<string, unknown>
    }
  | { type: 'usage_so_far'; usage: ReportedUsage }
  | { type: 'usage'; usage: ReportedUsage }
  | { type: 'finished'; reason: FinishReason }
  | { type: 'failed'; failure: ProviderFailure }

/** What one call may use: the key for this call only, the way out, and the signal that ends it. */
export type CallContext = { credential?: string; egress: Egress; signal: AbortSignal }

/** One configured provider. Adapters never throw for what a provider does, only for broken invariants. */
export interface ModelProvider {
  readonly descriptor: ProviderDescriptor
  /** Descriptors of the models named, or of all when `names` is absent. A name that is not offered is left out. */
  listModels(
    context: CallContext,
    names?: readonly string[],
  ): Promise<Result<ModelDescriptor[], ProviderFailure>>
  /** Runs one completion. Aborting `context.signal` closes the upstream connection; the iteration then just ends with `failed`. */
  invoke(request: ModelRequest, context: CallContext): AsyncIterable<ModelEvent>
}

export type ProviderMap = ReadonlyMap<Provider, ModelProvider>
