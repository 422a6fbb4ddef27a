import type { ScriptedAnswer } from './scripted-upstream.ts'
import {
  argumentDeltas,
  argumentText,
  finishOf,
  jsonAnswer,
  namedEvent,
  RETRY_AFTER_S,
  type Refusal,
  type ScriptedCall,
  type ScriptedCompletion,
  type ScriptedDialect,
} from './scripted-upstream-completion.ts'

/** Anthropic's Messages API, from its reference. */

const STOP_REASON = {
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
  refused: 'refusal',
  overflow: 'model_context_window_exceeded',
}

/** Here `input_tokens` is only what the cache neither gave nor took. */
const usageOf = ({ usage = { input: 12, output: 3 } }: ScriptedCompletion) => ({
  input_tokens: usage.input - (usage.cached ?? 0) - (usage.cacheWrite ?? 0),
  cache_creation_input_tokens: usage.cacheWrite ?? 0,
  cache_read_input_tokens: usage.cached ?? 0,
  cache_creation: {
    ephemeral_5m_input_tokens: usage.cacheWrite ?? 0,
    ephemeral_1h_input_tokens: 0,
  },
  output_tokens: usage.output,
  service_tier: 'standard',
})

const messageOf = (rest: Record<string, unknown>) => ({
  id: 'msg_01ABCDEFGHJKLMNPQRSTUVWX',
  type: 'message',
  role: 'assistant',
  model: 'claude-scripted-1',
  content: [],
  stop_reason: null,
  stop_sequence: null,
  ...rest,
})

type Block = { start: Record<string, unknown>; deltas: Record<string, unknown>[]; whole: object }

function blocksOf({ reasoning, signature, redacted, text, calls = [] }: ScriptedCompletion): Block[] {
  const blocks: Block[] = []
  if (reasoning !== undefined) {
    blocks.push({
      start: { type: 'thinking', thinking: '', signature: '' },
      deltas: [
        ...reasoning.map((thinking) => ({ type: 'thinking_delta', thinking })),
        { type: 'signature_delta', signature: signature ?? 'c2lnbmF0dXJl' },
      ],
      whole: { type: 'thinking', thinking: reasoning.join(''), signature: signature ?? 'c2lnbmF0dXJl' },
    })
  }
  if (redacted !== undefined) {
    const block = { type: 'redacted_thinking', data: redacted }
    blocks.push({ start: block, deltas: [], whole: block })
  }
  if (text !== undefined) {
    blocks.push({
      start: { type: 'text', text: '' },
      deltas: text.map((part) => ({ type: 'text_delta', text: part })),
      whole: { type: 'text', text: text.join('') },
    })
  }
  return [...blocks, ...calls.map(callBlock)]
}

function callBlock(call: ScriptedCall, index: number): Block {
  const block = { type: 'tool_use', id: call.id ?? `toolu_${index}`, name: call.name }
  const json = (partial: string) => ({ type: 'input_json_delta', partial_json: partial })
  return {
    start: { ...block, input: {} },
    deltas: [
      json(''),
      ...argumentDeltas(call).map(json),
      ...(call.travel === 'last' ? [json(argumentText(call))] : []),
    ],
    whole: { ...block, input: call.arguments },
  }
}

const ping = namedEvent({ type: 'ping' })

function frames(completion: ScriptedCompletion): string[] {
  const usage = usageOf(completion)
  return [
    // What it has generated when it begins: a few tokens at most, corrected at the end.
    namedEvent({ type: 'message_start', message: messageOf({ usage: { ...usage, output_tokens: 1 } }) }),
    ...blocksOf(completion).flatMap(({ start, deltas }, index) => [
      namedEvent({ type: 'content_block_start', index, content_block: start }),
      ...(index === 0 ? [ping] : []),
      ...deltas.map((delta) => namedEvent({ type: 'content_block_delta', index, delta })),
      namedEvent({ type: 'content_block_stop', index }),
    ]),
    namedEvent({
      type: 'message_delta',
      delta: { stop_reason: STOP_REASON[finishOf(completion)], stop_sequence: null },
      usage: {
        input_tokens: usage.input_tokens,
        cache_creation_input_tokens: usage.cache_creation_input_tokens,
        cache_read_input_tokens: usage.cache_read_input_tokens,
        output_tokens: usage.output_tokens,
      },
    }),
    namedEvent({ type: 'message_stop' }),
  ]
}

const error = (type: string, message: string) => ({
  type: 'error',
  error: { type, message },
  request_id: 'req_011CSHoEeqs5C35K2UUqR7Fy',
})

function refusal(reason: Refusal): ScriptedAnswer {
  switch (reason) {
    case 'bad_key':
      return jsonAnswer(error('authentication_error', 'invalid x-api-key'), { status: 401 })
    case 'rate_limited':
      return jsonAnswer(
        error(
          'rate_limit_error',
          "This request would exceed your organization's rate limit of 50,000 input tokens per minute.",
        ),
        { status: 429, headers: { 'retry-after': String(RETRY_AFTER_S) } },
      )
    case 'out_of_credit':
      return jsonAnswer(
        error(
          'invalid_request_error',
          'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade.',
        ),
        { status: 400 },
      )
    case 'server_error':
      return jsonAnswer(error('api_error', 'Internal server error'), { status: 500 })
    case 'overloaded':
      return jsonAnswer(error('overloaded_error', 'Overloaded'), { status: 529 })
    case 'too_long':
      return jsonAnswer(
        error('invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum'),
        {
          status: 400,
        },
      )
    case 'unknown_model':
      return jsonAnswer(error('not_found_error', 'model: claude-nope'), { status: 404 })
  }
}

export const anthropicDialect: ScriptedDialect = {
  frames,
  completes: (frame) => frame.startsWith('event: message_stop\n'),
  contentType: 'text/event-stream; charset=utf-8',
  buffered: (completion) =>
    jsonAnswer(
      messageOf({
        content: blocksOf(completion).map(({ whole }) => whole),
        stop_reason: STOP_REASON[finishOf(completion)],
        usage: usageOf(completion),
      }),
    ),
  refusal,
  errorFrame: (message) => namedEvent(error('rate_limit_error', message)),
  garbageFrame: 'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"secret\n\n',
}
