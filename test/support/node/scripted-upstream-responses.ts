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

/** OpenAI's Responses API, from its reference. */

type Event = { type: string } & Record<string, unknown>
type Item = { added: Record<string, unknown>; deltas: Event[]; done: Record<string, unknown> }

const usageOf = ({ usage }: ScriptedCompletion) =>
  usage === undefined
    ? null
    : {
        input_tokens: usage.input,
        input_tokens_details: { cached_tokens: usage.cached ?? 0 },
        output_tokens: usage.output,
        output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
        total_tokens: usage.input + usage.output,
      }

const responseOf = (rest: Record<string, unknown>) => ({
  id: 'resp_67ccd2bed1ec8190',
  object: 'response',
  created_at: 1_760_000_000,
  status: 'in_progress',
  background: false,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  model: 'gpt-scripted',
  output: [],
  parallel_tool_calls: true,
  previous_response_id: null,
  store: false,
  temperature: 1,
  tool_choice: 'auto',
  tools: [],
  top_p: 1,
  truncation: 'disabled',
  usage: null,
  metadata: {},
  ...rest,
})

function itemsOf(completion: ScriptedCompletion): Item[] {
  const { reasoning, text, calls = [] } = completion
  return [
    ...(reasoning === undefined ? [] : [reasoningItem(reasoning, completion.signature)]),
    ...(text === undefined ? [] : [messageItem(text, finishOf(completion))]),
    ...calls.map(callItem),
  ]
}

function reasoningItem(reasoning: readonly string[], signature: string | undefined): Item {
  const id = 'rs_67ccf18f64008190'
  const item = { id, type: 'reasoning', summary: [] }
  const at = { item_id: id, summary_index: 0 }
  const part = { type: 'summary_text', text: reasoning.join('') }
  return {
    added: item,
    deltas: [
      { type: 'response.reasoning_summary_part.added', ...at, part: { ...part, text: '' } },
      ...reasoning.map((delta) => ({ type: 'response.reasoning_summary_text.delta', ...at, delta })),
      { type: 'response.reasoning_summary_text.done', ...at, text: part.text },
      { type: 'response.reasoning_summary_part.done', ...at, part },
    ],
    done: {
      ...item,
      summary: [part],
      ...(signature === undefined ? {} : { encrypted_content: signature }),
    },
  }
}

function messageItem(text: readonly string[], finish: ReturnType<typeof finishOf>): Item {
  const id = 'msg_67ccd3acc8d48190'
  const item = { id, type: 'message', role: 'assistant', status: 'in_progress', content: [] }
  const at = { item_id: id, content_index: 0 }
  const part = { type: 'output_text', annotations: [], logprobs: [], text: text.join('') }
  return {
    added: item,
    deltas: [
      { type: 'response.content_part.added', ...at, part: { ...part, text: '' } },
      ...text.map((delta) => ({ type: 'response.output_text.delta', ...at, delta, logprobs: [] })),
      { type: 'response.output_text.done', ...at, text: part.text, logprobs: [] },
      { type: 'response.content_part.done', ...at, part },
    ],
    done: {
      ...item,
      status: finish === 'length' || finish === 'refused' ? 'incomplete' : 'completed',
      content: [part],
    },
  }
}

function callItem(call: ScriptedCall, index: number): Item {
  const id = `fc_67ca09c6bedc819${index}`
  const item = {
    id,
    type: 'function_call',
    status: 'in_progress',
    arguments: '',
    call_id: call.id ?? `call_${index}`,
    name: call.name,
  }
  return {
    added: item,
    deltas: [
      ...argumentDeltas(call).map((delta) => ({
        type: 'response.function_call_arguments.delta',
        item_id: id,
        delta,
      })),
      { type: 'response.function_call_arguments.done', item_id: id, arguments: argumentText(call) },
    ],
    done: { ...item, status: 'completed', arguments: argumentText(call) },
  }
}

const OVERFLOW = {
  code: 'context_length_exceeded',
  message: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
}

/** The response as it stands at the end, with the name of the event that brings it. */
function ending(completion: ScriptedCompletion): { type: string; response: Record<string, unknown> } {
  const output = itemsOf(completion).map(({ done }) => done)
  const usage = usageOf(completion)
  const incomplete = (reason: string) => ({
    type: 'response.incomplete',
    response: responseOf({ status: 'incomplete', incomplete_details: { reason }, output, usage }),
  })
  switch (finishOf(completion)) {
    case 'length':
      return incomplete('max_output_tokens')
    case 'refused':
      return incomplete('content_filter')
    case 'overflow':
      return { type: 'response.failed', response: responseOf({ status: 'failed', error: OVERFLOW, output }) }
    case 'stop':
    case 'tool_calls':
      return { type: 'response.completed', response: responseOf({ status: 'completed', output, usage }) }
  }
}

function frames(completion: ScriptedCompletion): string[] {
  const events: Event[] = [
    { type: 'response.created', response: responseOf({}) },
    { type: 'response.in_progress', response: responseOf({}) },
    ...itemsOf(completion).flatMap(({ added, deltas, done }, index): Event[] => [
      { type: 'response.output_item.added', output_index: index, item: added },
      ...deltas.map((delta) => ({ ...delta, output_index: index })),
      { type: 'response.output_item.done', output_index: index, item: done },
    ]),
    ending(completion),
  ]
  return events.map((event, index) => namedEvent({ ...event, sequence_number: index }))
}

/** The body of an error of any of OpenAI's APIs. */
export const openAiError = (
  message: string,
  type: string,
  code: string | null,
  param: string | null = null,
) => ({ error: { message, type, param, code } })

/** How OpenAI's APIs refuse; only the sentence for too long a prompt differs between them. */
export function openAiRefusal(reason: Refusal, tooLong: string): ScriptedAnswer {
  switch (reason) {
    case 'bad_key':
      return jsonAnswer(
        openAiError(
          'Incorrect API key provided: sk-proj-****abcd. You can find your API key at https://platform.openai.com/account/api-keys.',
          'invalid_request_error',
          'invalid_api_key',
        ),
        { status: 401 },
      )
    case 'rate_limited':
      return jsonAnswer(
        openAiError(
          'Rate limit reached for gpt-scripted in organization org-1 on tokens per min (TPM): Limit 30000, ' +
            'Used 29000, Requested 4500. Please try again in 7s. Visit https://platform.openai.com/account/rate-limits to learn more.',
          'tokens',
          'rate_limit_exceeded',
        ),
        { status: 429, headers: { 'retry-after': String(RETRY_AFTER_S) } },
      )
    case 'out_of_credit':
      return jsonAnswer(
        openAiError(
          'You exceeded your current quota, please check your plan and billing details.',
          'insufficient_quota',
          'insufficient_quota',
        ),
        { status: 429 },
      )
    case 'server_error':
      return jsonAnswer(
        openAiError(
          'The server had an error processing your request. Sorry about that!',
          'server_error',
          null,
        ),
        { status: 500 },
      )
    case 'overloaded':
      return jsonAnswer(
        openAiError('The engine is currently overloaded, please try again later', 'server_error', null),
        { status: 503 },
      )
    case 'too_long':
      return jsonAnswer(openAiError(tooLong, 'invalid_request_error', 'context_length_exceeded', 'input'), {
        status: 400,
      })
    case 'unknown_model':
      return jsonAnswer(
        openAiError(
          'The model `gpt-nope` does not exist or you do not have access to it.',
          'invalid_request_error',
          'model_not_found',
        ),
        { status: 404 },
      )
  }
}

export const responsesDialect: ScriptedDialect = {
  frames,
  completes: (frame) => /^event: response\.(completed|incomplete|failed)\n/.test(frame),
  contentType: 'text/event-stream; charset=utf-8',
  buffered: (completion) =>
    finishOf(completion) === 'overflow'
      ? openAiRefusal('too_long', OVERFLOW.message)
      : jsonAnswer(ending(completion).response),
  refusal: (reason) => openAiRefusal(reason, OVERFLOW.message),
  errorFrame: (message) =>
    namedEvent({ type: 'error', sequence_number: 9, code: 'rate_limit_exceeded', message, param: null }),
  garbageFrame:
    'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"secret\n\n',
}

/** The words of a model that declines, which this dialect keeps apart from its text. */
export function responsesRefusal(words: string): string[] {
  const id = 'msg_67ccd3acc8d48190'
  const at = { item_id: id, output_index: 0, content_index: 0 }
  const item = { id, type: 'message', role: 'assistant', status: 'completed' }
  const part = { type: 'refusal', refusal: words }
  const output = [{ ...item, content: [part] }]
  const events: Event[] = [
    { type: 'response.created', response: responseOf({}) },
    {
      type: 'response.output_item.added',
      output_index: 0,
      item: { ...item, status: 'in_progress', content: [] },
    },
    { type: 'response.content_part.added', ...at, part: { ...part, refusal: '' } },
    { type: 'response.refusal.delta', ...at, delta: words },
    { type: 'response.refusal.done', ...at, refusal: words },
    { type: 'response.content_part.done', ...at, part },
    { type: 'response.output_item.done', output_index: 0, item: output[0] },
    { type: 'response.completed', response: responseOf({ status: 'completed', output }) },
  ]
  return events.map((event, index) => namedEvent({ ...event, sequence_number: index }))
}
