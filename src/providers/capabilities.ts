import type { ModelCapabilities } from '../protocol/execution/models.ts'

/** What a model of an OpenAI-compatible instance can do unless its declaration says otherwise (EC 21). */
export const BASE_CAPABILITIES: ModelCapabilities = {
  streaming: true,
  tools: true,
  json_output: true,
  system_prompt: true,
  images: false,
  reasoning: false,
  memory: true,
}
