import type { Completion } from './model.ts'
import { CONTEXT_TOKENS, DEMO_MODEL } from './model.ts'

/** The answers of Ollama's HTTP API, as far as a client needs them to list, inspect and chat. */

/** What is reported as the server's version; the part behind the plus tells it from a real Ollama. */
export const VERSION = '0.0.0+switchyard-demo'

/** The model is part of this program, so it has no date of its own. */
const MODIFIED_AT = '2026-01-01T00:00:00Z'

const DETAILS = {
  parent_model: '',
  format: 'rules',
  family: 'switchyard-demo',
  families: ['switchyard-demo'],
  parameter_size: '0',
  quantization_level: '',
}

export const tagsBody = () => ({
  models: [
    { name: DEMO_MODEL, model: DEMO_MODEL, modified_at: MODIFIED_AT, size: 0, digest: '', details: DETAILS },
  ],
})

export const showBody = () => ({
  license: 'MIT',
  modelfile: '',
  parameters: '',
  template: '',
  details: DETAILS,
  model_info: {
    'general.architecture': 'switchyard-demo',
    'general.basename': DEMO_MODEL,
    'switchyard-demo.context_length': CONTEXT_TOKENS,
  },
  capabilities: ['completion', 'tools'],
  modified_at: MODIFIED_AT,
})

export const isDemoModel = (name: string): boolean => name === DEMO_MODEL || name === `${DEMO_MODEL}:latest`

type ToolCalls = Completion['toolCalls']

/** One line of a streamed answer. */
export const pieceBody = (
  model: string,
  createdAtMs: number,
  content: string,
  toolCalls: ToolCalls = [],
) => ({
  model,
  created_at: new Date(createdAtMs).toISOString(),
  message: { role: 'assistant', content, ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }) },
  done: false,
})

export type Timing = { startedAtMs: number; endedAtMs: number }

/** The last line of a streamed answer; with `content`, a whole buffered one. Durations are in nanoseconds. */
export function doneBody(
  model: string,
  completion: Completion,
  timing: Timing,
  content = '',
  toolCalls: ToolCalls = [],
) {
  const totalNs = Math.max(0, Math.round((timing.endedAtMs - timing.startedAtMs) * 1e6))
  return {
    ...pieceBody(model, timing.endedAtMs, content, toolCalls),
    done: true,
    done_reason: completion.reason,
    total_duration: totalNs,
    load_duration: 0,
    prompt_eval_count: completion.promptTokens,
    prompt_eval_duration: 0,
    eval_count: completion.outputTokens,
    eval_duration: totalNs,
  }
}

/** A request without messages only loads the model. */
export const loadBody = (model: string, nowMs: number) => ({
  ...pieceBody(model, nowMs, ''),
  done: true,
  done_reason: 'load',
})

export const notFound = (model: string) => ({ error: `model '${model}' not found` })
