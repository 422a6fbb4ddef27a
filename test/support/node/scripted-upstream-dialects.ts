import type { ScriptedAnswer } from './scripted-upstream.ts'

/** Server-sent events, as OpenAI-compatible servers send them. */
export const sse = (chunks: readonly unknown[], { done = true } = {}): string =>
  chunks.map((chunk) => `data: ${typeof chunk === 'string' ? chunk : JSON.stringify(chunk)}\n\n`).join('') +
  (done ? 'data: [DONE]\n\n' : '')

/** Lines of JSON, as Ollama sends them. */
export const ndjson = (lines: readonly unknown[]): string =>
  lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('')

/** One chat completion, to be told in any dialect. */
export type ScriptedCompletion = {
  reasoning?: string[]
  text?: string[]
  calls?: { id?: string; name: string; arguments: Record<string, unknown> }[]
  finish?: 'stop' | 'length' | 'tool_calls'
  usage?: { input: number; output: number; cached?: number; reasoning?: number }
}

const finishOf = ({ finish, calls }: ScriptedCompletion) => finish ?? (calls?.length ? 'tool_calls' : 'stop')

const openAiUsage = ({ usage }: ScriptedCompletion) =>
  usage && {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    ...(usage.cached === undefined ? {} : { prompt_tokens_details: { cached_tokens: usage.cached } }),
    ...(usage.reasoning === undefined
      ? {}
      : { completion_tokens_details: { reasoning_tokens: usage.reasoning } }),
  }

const openAiChunk = (delta: Record<string, unknown>, finish: string | null = null) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1_760_000_000,
  model: 'scripted',
  choices: [{ index: 0, delta, finish_reason: finish }],
})

/** The chunks of a streamed OpenAI-compatible answer; the arguments of each call come split in three. */
export function openAiChunks(completion: ScriptedCompletion): unknown[] {
  const { reasoning = [], text = [], calls = [] } = completion
  const usage = openAiUsage(completion)
  return [
    openAiChunk({ role: 'assistant', content: '' }),
    ...reasoning.map((delta) => openAiChunk({ reasoning_content: delta })),
    ...text.map((delta) => openAiChunk({ content: delta })),
    ...calls.flatMap((call, index) => {
      const json = JSON.stringify(call.arguments)
      const third = Math.ceil(json.length / 3)
      const id = call.id === undefined ? {} : { id: call.id }
      return [
        openAiChunk({
          tool_calls: [{ index, ...id, type: 'function', function: { name: call.name, arguments: '' } }],
        }),
        ...[json.slice(0, third), json.slice(third, 2 * third), json.slice(2 * third)].map((part) =>
          openAiChunk({ tool_calls: [{ index, function: { arguments: part } }] }),
        ),
      ]
    }),
    openAiChunk({}, finishOf(completion)),
    ...(usage ? [{ ...openAiChunk({}), choices: [], usage }] : []),
  ]
}

export const openAiStream = (completion: ScriptedCompletion): ScriptedAnswer => ({
  headers: { 'content-type': 'text/event-stream' },
  body: sse(openAiChunks(completion)),
})

export const openAiBuffered = (completion: ScriptedCompletion): ScriptedAnswer => ({
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_760_000_000,
    model: 'scripted',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: completion.text?.join('') ?? null,
          ...(completion.reasoning ? { reasoning_content: completion.reasoning.join('') } : {}),
          ...(completion.calls
            ? {
                tool_calls: completion.calls.map((call) => ({
                  ...(call.id === undefined ? {} : { id: call.id }),
                  type: 'function',
                  function: { name: call.name, arguments: JSON.stringify(call.arguments) },
                })),
              }
            : {}),
        },
        finish_reason: finishOf(completion),
      },
    ],
    ...(completion.usage ? { usage: openAiUsage(completion) } : {}),
  }),
})

const ollamaLine = (message: Record<string, unknown>, rest: Record<string, unknown> = { done: false }) => ({
  model: 'scripted',
  created_at: '2026-11-02T09:30:00.000000Z',
  message: { role: 'assistant', content: '', ...message },
  ...rest,
})

const ollamaCalls = ({ calls = [] }: ScriptedCompletion) =>
  calls.map((call, index) => ({
    ...(call.id === undefined ? {} : { id: call.id }),
    function: { index, name: call.name, arguments: call.arguments },
  }))

const ollamaEnd = (completion: ScriptedCompletion) => ({
  done: true,
  done_reason: completion.finish === 'length' ? 'length' : 'stop',
  total_duration: 5_000_000_000,
  ...(completion.usage
    ? {
        prompt_eval_count: completion.usage.input,
        eval_count: completion.usage.output,
        ...(completion.usage.cached === undefined
          ? {}
          : { prompt_eval_cached_count: completion.usage.cached }),
      }
    : {}),
})

/** The lines of a streamed Ollama answer. */
export const ollamaLines = (completion: ScriptedCompletion): unknown[] => [
  ...(completion.reasoning ?? []).map((thinking) => ollamaLine({ thinking })),
  ...(completion.text ?? []).map((content) => ollamaLine({ content })),
  ...ollamaCalls(completion).map((call) => ollamaLine({ tool_calls: [call] })),
  ollamaLine({}, ollamaEnd(completion)),
]

export const ollamaStream = (completion: ScriptedCompletion): ScriptedAnswer => ({
  headers: { 'content-type': 'application/x-ndjson' },
  body: ndjson(ollamaLines(completion)),
})

export const ollamaBuffered = (completion: ScriptedCompletion): ScriptedAnswer => ({
  headers: { 'content-type': 'application/json; charset=utf-8' },
  body: JSON.stringify(
    ollamaLine(
      {
        content: completion.text?.join('') ?? '',
        ...(completion.reasoning ? { thinking: completion.reasoning.join('') } : {}),
        ...(completion.calls ? { tool_calls: ollamaCalls(completion) } : {}),
      },
      ollamaEnd(completion),
    ),
  ),
})
