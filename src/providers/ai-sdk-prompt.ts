import type {
  LanguageModelV4FilePart,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ReasoningPart,
  LanguageModelV4TextPart,
  LanguageModelV4ToolCallPart,
} from '@ai-sdk/provider'
import type { OfferedTool, PromptImage, PromptMessage, PromptToolCall } from '../core/prompt.ts'
import { restoreReasoning } from './ai-sdk-reasoning.ts'
import { promptToolName } from './tool-name.ts'
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
    case 'user': {
      const images = (message.images ?? []).map(imagePart)
      // Some providers refuse an empty text; beside a picture none is needed.
      const text = images.length > 0 && isBlank(message.text) ? [] : [textPart(message.text)]
      return { role: 'user', content: [...images, ...text] }
    }
    case 'assistant':
      return { role: 'assistant', content: assistantParts(message, optionsKey) }
    case 'tool':
      return {
        role: 'tool',
        content: message.results.map((result) => ({
          type: 'tool-result',
          toolCallId: result.callId,
          toolName: promptToolName(result.name),
          output: { type: result.isError ? 'error-text' : 'text', value: toolResultText(result) },
        })),
      }
  }
}

/** The text and the calls of an answer, with the reasoning that was kept with a call in its old place (U40). */
function assistantParts(
  { text, toolCalls }: { text: string; toolCalls: PromptToolCall[] },
  optionsKey: string,
): (LanguageModelV4TextPart | LanguageModelV4ReasoningPart | LanguageModelV4ToolCallPart)[] {
  const [first, ...others] = toolCalls
  if (first === undefined) return [textPart(text)]
  const led: (LanguageModelV4TextPart | LanguageModelV4ReasoningPart)[] = []
  let at = 0
  for (const { part, textAfter } of restoreReasoning(first.opaque, optionsKey)) {
    const place = Math.max(at, text.length - textAfter)
    led.push(textPart(text.slice(at, place)), part)
    at = place
  }
  led.push(textPart(text.slice(at)))
  return [
    ...led.filter((part) => part.type !== 'text' || !isBlank(part.text)),
    callPart(first, optionsKey),
    ...others.flatMap((call) => [
      ...restoreReasoning(call.opaque, optionsKey).map(({ part }) => part),
      callPart(call, optionsKey),
    ]),
  ]
}

const isBlank = (text: string): boolean => text.trim() === ''

const textPart = (text: string): LanguageModelV4TextPart => ({ type: 'text', text })

const imagePart = ({ mediaType, base64 }: PromptImage): LanguageModelV4FilePart => ({
  type: 'file',
  mediaType,
  data: { type: 'data', data: base64 },
})

const callPart = (call: PromptToolCall, optionsKey: string): LanguageModelV4ToolCallPart => ({
  type: 'tool-call',
  toolCallId: call.callId,
  toolName: promptToolName(call.name),
  input: call.arguments,
  ...signatureOf(call, optionsKey),
})

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
