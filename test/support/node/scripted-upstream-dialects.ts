import type { ScriptedAnswer } from './scripted-upstream.ts'
import {
  argumentDeltas,
  argumentText,
  dataEvent,
  finishOf,
  jsonAnswer,
  RETRY_AFTER_S,
  type Refusal,
  type ScriptedCall,
  type ScriptedCompletion,
  type ScriptedDialect,
} from './scripted-upstream-completion.ts'
import { openAiError, openAiRefusal } from './scripted-upstream-responses.ts'

/** Server-sent events, as OpenAI-compatible servers send them. */
export const sse = (chunks: readonly unknown[], { done = true } = {}): string =>
  chunks.map((chunk) => `data: ${typeof chunk === 'string' ? chunk : JSON.stringify(chunk)}\n\n`).join('') +
  (done ? 'data: [DONE]\n\n' : '')

/** Lines of JSON, as Ollama sends them. */
export const ndjson = (lines: readonly unknown[]): string =>
  lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('')

export type { ScriptedCompletion } from './scripted-upstream-completion.ts'

const OPENAI_FINISH = {
  stop: 'stop',
  tool_calls: 'tool_calls',
  length: 'length',
  refused: 'content_filter',
  // It has no word for a full window in an answer; the request is refused instead.
  overflow: 'length',
}

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

const openAiCall = (call: ScriptedCall, index: number, text: string) => ({
  index,
  ...(call.id === undefined ? {} : { id: call.id }),
  type: 'function',
  function: { name: call.name, arguments: text },
  ...signatureOf(call),
})

/** Where Google's models stand behind this dialect, their signatures travel so. */
const signatureOf = ({ signature }: ScriptedCall) =>
  signature === undefined ? {} : { extra_content: { google: { thought_signature: signature } } }

/** Some servers tell the arguments only in the chunk that says why the answer ended. */
function lateArguments(calls: readonly ScriptedCall[]): Record<string, unknown> {
  const late = calls.flatMap((call, index) =>
    call.travel === 'last' ? [{ index, function: { arguments: argumentText(call) } }] : [],
  )
  return late.length === 0 ? {} : { tool_calls: late }
}

/** The chunks of a streamed OpenAI-compatible answer. */
export function openAiChunks(completion: ScriptedCompletion): unknown[] {
  const { reasoning = [], text = [], calls = [] } = completion
  const usage = openAiUsage(completion)
  return [
    openAiChunk({ role: 'assistant', content: '' }),
    ...reasoning.map((delta) => openAiChunk({ reasoning_content: delta })),
    ...text.map((delta) => openAiChunk({ content: delta })),
    ...calls.flatMap((call, index) => [
      openAiChunk({ tool_calls: [openAiCall(call, index, '')] }),
      ...argumentDeltas(call).map((part) =>
        openAiChunk({ tool_calls: [{ index, function: { arguments: part } }] }),
      ),
    ]),
    openAiChunk(lateArguments(calls), OPENAI_FINISH[finishOf(completion)]),
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
                  function: { name: call.name, arguments: argumentText(call) },
                  ...signatureOf(call),
                })),
              }
            : {}),
        },
        finish_reason: OPENAI_FINISH[finishOf(completion)],
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
    function: {
      index,
      name: call.name,
      ...(call.travel === 'absent' ? {} : { arguments: call.arguments }),
    },
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
  ...ollamaCalls(completion)
    .filter((_, index) => completion.calls?.[index]?.travel !== 'last')
    .map((call) => ollamaLine({ tool_calls: [call] })),
  ollamaLine(lateCalls(completion), ollamaEnd(completion)),
]

function lateCalls(completion: ScriptedCompletion): Record<string, unknown> {
  const late = ollamaCalls(completion).filter((_, index) => completion.calls?.[index]?.travel === 'last')
  return late.length === 0 ? {} : { tool_calls: late }
}

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

const CHAT_TOO_LONG =
  "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. " +
  'Please reduce the length of the messages.'

/** OpenAI's chat completions, and whoever speaks as they do. */
export const chatDialect: ScriptedDialect = {
  frames: (completion) => [...openAiChunks(completion), '[DONE]'].map(dataEvent),
  completes: (frame) => /"finish_reason":"/.test(frame),
  contentType: 'text/event-stream',
  buffered: openAiBuffered,
  refusal: (reason) => openAiRefusal(reason, CHAT_TOO_LONG),
  errorFrame: (message) => dataEvent(openAiError(message, 'server_error', null)),
  garbageFrame: dataEvent('{"choices":[{"delta":{"content":"secret'),
}

function ollamaRefusal(reason: Refusal): ScriptedAnswer | undefined {
  const refused = (status: number, error: string, headers = {}) => jsonAnswer({ error }, { status, headers })
  switch (reason) {
    case 'bad_key':
      return refused(401, 'unauthorized')
    case 'rate_limited':
      return refused(429, 'too many concurrent requests', { 'retry-after': String(RETRY_AFTER_S) })
    case 'out_of_credit':
      return undefined
    case 'server_error':
      return refused(500, 'llama runner process has terminated: exit status 2')
    case 'overloaded':
      return refused(503, 'server busy, please try again.  maximum pending requests exceeded')
    case 'too_long':
      return refused(400, 'the input length exceeds the context length')
    case 'unknown_model':
      return refused(404, "model 'nope' not found")
  }
}

export const ollamaDialect: ScriptedDialect = {
  frames: (completion) => ollamaLines(completion).map((line) => ndjson([line])),
  completes: (frame) => frame.includes('"done":true'),
  contentType: 'application/x-ndjson',
  buffered: ollamaBuffered,
  refusal: ollamaRefusal,
  errorFrame: (message) => ndjson([{ error: message }]),
  garbageFrame: ndjson(['{"message":{"content":"secret']),
}
