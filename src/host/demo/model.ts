import { createHash } from 'node:crypto'
import type { ChatRequest } from './chat-request.ts'
import { readConversation } from './conversation.ts'
import { decide } from './decide.ts'

export const DEMO_MODEL = 'switchyard-demo'

/** What it says it can hold. It has no window of its own; this makes the router trim as for a real small model. */
export const CONTEXT_TOKENS = 32_768

/** The usual estimate for English and code; there is no tokenizer here to count with. */
const CHARS_PER_TOKEN = 4

/** A whole answer with the counts that Ollama reports. */
export type Completion = {
  pieces: string[]
  toolCalls: { id: string; function: { name: string; arguments: Record<string, unknown> } }[]
  reason: 'stop' | 'length'
  promptTokens: number
  outputTokens: number
}

/** Runs the model: the same request always gives the same completion. */
export function complete(request: ChatRequest): Completion {
  const { messages, tools, options } = request
  const conversation = readConversation(messages)
  const decision = decide(conversation, new Set((tools ?? []).map((tool) => tool.function.name)))
  const promptTokens = tokensIn(JSON.stringify([messages, tools ?? []]))
  if (decision.kind === 'calls') {
    const toolCalls = decision.calls.map((call, index) => ({
      id: callId(JSON.stringify(messages), index),
      function: { name: call.name, arguments: call.arguments },
    }))
    return {
      pieces: [],
      toolCalls,
      reason: 'stop',
      promptTokens,
      outputTokens: tokensIn(JSON.stringify(toolCalls)),
    }
  }
  const limit = options?.num_predict ?? -1
  // As in Ollama, a negative limit means none.
  const text = limit < 0 ? decision.text : decision.text.slice(0, limit * CHARS_PER_TOKEN)
  return {
    pieces: splitText(text),
    toolCalls: [],
    reason: text.length < decision.text.length ? 'length' : 'stop',
    promptTokens,
    outputTokens: tokensIn(text),
  }
}

/** Ids must differ between rounds and sessions, and be the same for the same request. */
const callId = (conversation: string, index: number): string =>
  `call_${createHash('sha256').update(conversation).digest('hex').slice(0, 12)}_${index}`

/** Pieces of a few words, as a model streams them; together they are the text. */
const splitText = (text: string): string[] => text.match(/[\s\S]{1,24}(?:\s|$)|[\s\S]{1,24}/g) ?? []

const tokensIn = (text: string): number => Math.ceil(text.length / CHARS_PER_TOKEN)
