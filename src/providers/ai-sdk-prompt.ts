import type {
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
} from '@ai-sdk/provider'
import type { OfferedTool, PromptMessage, PromptToolCall } from '../core/prompt.ts'
import { toolResultText } from './tool-result.ts'

/**
 * Turns the neutral conversation into the prompt of the AI SDK's provider interface (version 4).
 * @param optionsKey the name under which the SDK's adapter looks for its own fields, such as signatures (U40)
 */
export const toSdkPrompt = (messages: readonly PromptMessage[], optionsKey: string): LanguageModelV4Prompt =>
  messages.map((message) => toSdkMessage(message, optionsKey))

function toSdkMessage(message: PromptMessage, optionsKey: string): LanguageModelV4Message {
  switch (message.role) {
    case 'system':
      return { role: 'system', content: message.text }
    case 'user':
      return { role: 'user', content: [{ type: 'text', text: message.text }] }
    case 'assistant':
      return {
        role: 'assistant',
        content: [
          ...(message.text === '' ? [] : [{ type: 'text' as const, text: message.text }]),
          ...message.toolCalls.map((call) => ({
            type: 'tool-call' as const,
            toolCallId: call.callId,
            toolName: call.name,
            input: call.arguments,
            ...signatureOf(call, optionsKey),
          })),
        ],
      }
    case 'tool':
      return {
        role: 'tool',
        content: message.results.map((result) => ({
          type: 'tool-result',
          toolCallId: result.callId,
          toolName: result.name,
          output: { type: result.isError ? 'error-text' : 'text', value: toolResultText(result) },
        })),
      }
  }
}

function signatureOf({ opaque }: PromptToolCall, optionsKey: string) {
  const signature = opaque?.thoughtSignature
  return typeof signature === 'string'
    ? { providerOptions: { [optionsKey]: { thoughtSignature: signature } } }
    : {}
}

/** The tools a model may call, in the SDK's form. */
export const toSdkTools = (tools: readonly OfferedTool[]): LanguageModelV4FunctionTool[] =>
  tools.map(({ name, description, parameters }) => ({
    type: 'function',
    name,
    description,
    inputSchema: parameters,
  }))
