import { z } from 'zod'

const ToolCall = z.object({
  id: z.string().optional(),
  function: z.object({ name: z.string(), arguments: z.record(z.string(), z.unknown()).default({}) }),
})

const ChatMessage = z.object({
  role: z.enum(['system', 'user', 'assistant', 'tool']),
  content: z.string().default(''),
  tool_calls: z.array(ToolCall).nullish(),
  tool_name: z.string().optional(),
  tool_call_id: z.string().optional(),
})
export type ChatMessage = z.infer<typeof ChatMessage>

/** The part of the body of Ollama's `POST /api/chat` that this model looks at; the rest is ignored as Ollama does. */
export const ChatRequest = z.object({
  model: z.string().min(1),
  messages: z.array(ChatMessage).default([]),
  tools: z.array(z.object({ function: z.object({ name: z.string() }) })).nullish(),
  stream: z.boolean().default(true),
  options: z.object({ num_predict: z.number().optional() }).nullish(),
})
export type ChatRequest = z.infer<typeof ChatRequest>
