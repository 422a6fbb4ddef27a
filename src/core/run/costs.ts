import type { Payload } from '../../protocol/execution/trace.ts'
import type { CallRecord } from './writes.ts'

/** A cost event for every call whose usage is known, whatever became of it; unknown is never written as zero (U43). */
export function costPayloads({ provider, model, usage, cost }: CallRecord): Payload[] {
  if (usage === null || (usage.inputTokens === undefined && usage.outputTokens === undefined)) return []
  const { inputTokens = 0, outputTokens = 0, cachedTokens, cacheWriteTokens, reasoningTokens } = usage
  return [
    {
      type: 'cost',
      provider,
      model,
      input_tokens: inputTokens,
      output_tokens: outputTokens,
      ...(cachedTokens === undefined ? {} : { cached_tokens: cachedTokens }),
      ...(cacheWriteTokens === undefined ? {} : { cache_write_tokens: cacheWriteTokens }),
      ...(reasoningTokens === undefined ? {} : { reasoning_tokens: reasoningTokens }),
      ...(cost === undefined ? {} : { cost }),
    },
  ]
}
