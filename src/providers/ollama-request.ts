import type { ModelRequest, PromptMessage } from '../core/prompt.ts'
import type { ModelDescriptor } from '../protocol/execution/models.ts'
import type { Effort } from '../protocol/execution/policy.ts'
import { promptToolName } from './tool-name.ts'
import { toolResultText } from './tool-result.ts'

/** `provider_options` of a model that takes a thinking level where others take a switch. */
export const THINKS_IN_LEVELS = { think: 'levels' }

/** The body of `POST /api/chat`. */
export function toChatBody({ model, messages, tools, effort }: ModelRequest, stream: boolean) {
  return {
    model: model.model,
    messages: messages.flatMap(toOllamaMessages),
    ...(tools.length === 0 ? {} : { tools: tools.map((tool) => ({ type: 'function', function: tool })) }),
    stream,
    ...(model.capabilities.reasoning ? { think: toThink(model, effort) } : {}),
    // Too long a conversation is an error to handle, not a beginning to lose in silence (U42). Daemons that do not know
    // these two ignore them.
    truncate: false,
    shift: false,
    options: toOptions(model),
  }
}

function toOllamaMessages(message: PromptMessage): Record<string, unknown>[] {
  switch (message.role) {
    case 'system':
      return [{ role: 'system', content: message.text }]
    case 'user':
      return [
        {
          role: 'user',
          content: message.text,
          ...(message.images?.length ? { images: message.images.map(({ base64 }) => base64) } : {}),
        },
      ]
    case 'assistant':
      return [
        {
          role: 'assistant',
          content: message.text,
          ...(message.toolCalls.length === 0
            ? {}
            : {
                tool_calls: message.toolCalls.map((call) => ({
                  id: call.callId,
                  function: { name: promptToolName(call.name), arguments: call.arguments },
                })),
              }),
        },
      ]
    case 'tool':
      return message.results.map((result) => ({
        role: 'tool',
        content: toolResultText(result),
        tool_name: promptToolName(result.name),
        // The only thread from a result to its call when one tool was called twice; older daemons ignore it.
        tool_call_id: result.callId,
      }))
  }
}

/** A switch cannot say how much: only a low effort turns thinking off. */
function toThink(model: ModelDescriptor, effort: Effort): boolean | 'low' | 'medium' | 'high' {
  if (model.provider_options?.think !== THINKS_IN_LEVELS.think) return effort !== 'low'
  return effort === 'xhigh' ? 'high' : effort
}

/**
 * The default parameters under Ollama's names. `num_ctx` comes from the descriptor, so the window that was counted
 * against is the window that is loaded (D13). A model that the daemon forwards to a cloud has its own.
 */
function toOptions(model: ModelDescriptor): Record<string, unknown> {
  const { max_tokens: maxTokens, ...parameters } = model.default_parameters
  const limits = [maxTokens, model.max_output_tokens].filter((limit) => typeof limit === 'number')
  return {
    ...parameters,
    ...(limits.length === 0 ? {} : { num_predict: Math.min(...limits) }),
    ...(model.local ? { num_ctx: model.max_context_tokens } : {}),
  }
}
