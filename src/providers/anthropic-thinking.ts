import type { ModelRequest } from '../core/prompt.ts'

/** What the SDK knows of a Claude model by its name; for a name that it does not know, what new models are like. */
export type ClaudeFacts = {
  supportsAdaptiveThinking: boolean
  supportsXhighEffort: boolean
  rejectsBudgetThinking: boolean
  rejectsThinkingDisabled: boolean
  isKnownModel: boolean
}

/** The part of the SDK's options that says how much a Claude model thinks. */
export type ThinkingOptions = {
  thinking?:
    | {
        type: 'adaptive'
        display: 'summarized'
        blockBinding?: { prefixMismatchBehavior: 'drop_block' }
      }
    | { type: 'enabled'; budgetTokens: number }
    | { type: 'disabled' }
  effort?: 'low' | 'medium' | 'high' | 'xhigh'
  /** Whether earlier thinking goes back. */
  sendReasoning: boolean
}

/** Room for a problem of that size; the answer itself needs room, too, so never more than half of the limit. */
const BUDGET_TOKENS = { medium: 4_096, high: 16_384, xhigh: 32_768 }
/** The least that the API takes. */
const MIN_BUDGET_TOKENS = 1_024

/**
 * How a Claude model is to think (EC 21): not at all for low effort, as far as it lets itself be stopped; else adaptively
 * where the model can, or within a budget. `provider_options.thinking` of the descriptor (`adaptive` or `budget`) says
 * which; without it, what the SDK knows decides.
 * @param limit the most that thinking and answer may have together, in tokens
 */
export function thinkingOptions(
  { model, messages, effort }: ModelRequest,
  facts: ClaudeFacts,
  limit: number,
): ThinkingOptions {
  if (!model.capabilities.reasoning) return { sendReasoning: false }
  const says = model.provider_options?.thinking
  const isAdaptive =
    facts.rejectsBudgetThinking ||
    says === 'adaptive' ||
    (says !== 'budget' && facts.supportsAdaptiveThinking)
  if (effort === 'low' && !facts.rejectsThinkingDisabled) return noThinking()
  if (isAdaptive) {
    return {
      thinking: { type: 'adaptive', display: 'summarized', ...bindingFor(messages, facts) },
      effort: effort === 'xhigh' && !facts.supportsXhighEffort ? 'high' : effort,
      sendReasoning: true,
    }
  }
  const budgetTokens = Math.min(BUDGET_TOKENS[effort === 'low' ? 'medium' : effort], Math.floor(limit / 2))
  if (budgetTokens < MIN_BUDGET_TOKENS || isInUnthoughtRound(messages)) return noThinking()
  return { thinking: { type: 'enabled', budgetTokens }, sendReasoning: true }
}

const noThinking = (): ThinkingOptions => ({ thinking: { type: 'disabled' }, sendReasoning: false })

const hasThinking = (message: ModelRequest['messages'][number]): boolean =>
  message.role === 'assistant' && message.toolCalls.some(({ opaque }) => opaque?.reasoning !== undefined)

/**
 * The newest models check that nothing before a thinking block has changed since it was made, and refuse the request
 * otherwise. The router chooses what a conversation contains anew for each turn, so they are asked to drop such a block.
 * Older models do not know the question.
 */
function bindingFor(messages: ModelRequest['messages'], facts: ClaudeFacts) {
  const mayCheck = facts.rejectsBudgetThinking || !facts.isKnownModel
  return mayCheck && messages.some(hasThinking)
    ? { blockBinding: { prefixMismatchBehavior: 'drop_block' as const } }
    : {}
}

/**
 * Whether the conversation ends in results of calls that were made without thinking, by another provider or with low
 * effort: with a budget, the API wants the answer that made such calls to begin with thinking.
 */
function isInUnthoughtRound(messages: ModelRequest['messages']): boolean {
  // Words of the user behind the results become a part of the same message.
  const end = messages.findLastIndex(({ role }) => role !== 'user')
  const made = messages[end]?.role === 'tool' ? messages[end - 1] : undefined
  return made !== undefined && !hasThinking(made)
}
