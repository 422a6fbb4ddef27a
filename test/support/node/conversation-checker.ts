import { anthropicFaults } from './conversation-anthropic.ts'
import { chatFaults, ollamaFaults } from './conversation-chat.ts'
import { type Fields, isFields } from './conversation-faults.ts'
import { geminiFaults } from './conversation-gemini.ts'
import { responsesFaults } from './conversation-responses.ts'

export type DialectName = 'anthropic' | 'gemini' | 'responses' | 'chat' | 'ollama'

const FAULTS: Record<DialectName, (body: Fields) => string[]> = {
  anthropic: anthropicFaults,
  gemini: geminiFaults,
  responses: responsesFaults,
  chat: chatFaults,
  ollama: ollamaFaults,
}

/**
 * What the real provider would reject in the body of a request, each fault as a sentence; none when it would take it.
 * Written from the providers' references and from what they are known to answer, not from any adapter: a mock that
 * takes everything lets a conversation pass on which the provider ends the run.
 */
export const checkConversation = (dialect: DialectName, body: unknown): string[] =>
  isFields(body) ? FAULTS[dialect](body) : ['the body is no object']
