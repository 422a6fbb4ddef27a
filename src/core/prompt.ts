import type { ModelDescriptor } from '../protocol/execution/models.ts'
import type { Effort } from '../protocol/execution/policy.ts'

/** One tool call as it stands in a prompt, always directly before its result. */
export type PromptToolCall = {
  /** The id under which the call is known to the model: the provider's own where it issued one. */
  callId: string
  name: string
  arguments: Record<string, unknown>
  /** Opaque fields of the provider that made the call (signatures); only that provider gets them back (U40). */
  opaque?: Record<string, unknown>
}

export type PromptToolResult = { callId: string; name: string; content: string; isError: boolean }

/** A picture that goes with the user's words. */
export type PromptImage = {
  mediaType: 'image/png' | 'image/jpeg' | 'image/webp' | 'image/gif'
  /** Of an uploaded picture it is read when it is asked for: it can be long. */
  readonly base64: string
  /** Of an uploaded picture: what prompts refer to it by. */
  handle?: string
}

/** A conversation in the router's own neutral form; each adapter turns it into its provider's dialect. */
export type PromptMessage =
  | { role: 'system'; text: string }
  | { role: 'user'; text: string; images?: PromptImage[] }
  | { role: 'assistant'; text: string; toolCalls: PromptToolCall[] }
  | { role: 'tool'; results: PromptToolResult[] }

/** A tool that the model may call. `parameters` is a JSON Schema of an object. */
export type OfferedTool = { name: string; description: string; parameters: Record<string, unknown> }

/** One model invocation. */
export type ModelRequest = {
  model: ModelDescriptor
  messages: PromptMessage[]
  tools: OfferedTool[]
  effort: Effort
}
