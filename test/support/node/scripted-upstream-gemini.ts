import type { ScriptedAnswer } from './scripted-upstream.ts'
import {
  dataEvent,
  finishOf,
  jsonAnswer,
  RETRY_AFTER_S,
  type Refusal,
  type ScriptedCompletion,
  type ScriptedDialect,
} from './scripted-upstream-completion.ts'

/** Gemini's `generateContent` and, with `alt=sse`, `streamGenerateContent`, from their reference. */

const FINISH_REASON = {
  stop: 'STOP',
  // A round of calls ends like any other answer.
  tool_calls: 'STOP',
  length: 'MAX_TOKENS',
  refused: 'SAFETY',
  // It has no word for a full window in an answer; the request is refused instead.
  overflow: 'OTHER',
}

/** Here `candidatesTokenCount` leaves the thoughts out, and `promptTokenCount` has the cached part in. */
const usageOf = ({ usage }: ScriptedCompletion) =>
  usage && {
    promptTokenCount: usage.input,
    candidatesTokenCount: usage.output - (usage.reasoning ?? 0),
    totalTokenCount: usage.input + usage.output,
    ...(usage.cached === undefined ? {} : { cachedContentTokenCount: usage.cached }),
    ...(usage.reasoning === undefined ? {} : { thoughtsTokenCount: usage.reasoning }),
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: usage.input }],
  }

const chunk = (parts: object[], finishReason?: string) => ({
  candidates: [
    {
      ...(parts.length === 0 ? {} : { content: { parts, role: 'model' } }),
      ...(finishReason === undefined ? {} : { finishReason }),
      index: 0,
    },
  ],
  modelVersion: 'gemini-scripted',
  responseId: 'cOFVaZ-qK8m5vdIP9a7iqAg',
})

/** The calls that come before the last piece, those that come with it, or all. */
const callParts = ({ calls = [] }: ScriptedCompletion, last?: boolean) =>
  calls
    .filter(({ travel }) => last === undefined || (travel === 'last') === last)
    .map((call) => ({
      functionCall: {
        ...(call.id === undefined ? {} : { id: call.id }),
        name: call.name,
        ...(call.travel === 'absent' ? {} : { args: call.arguments }),
      },
      ...(call.signature === undefined ? {} : { thoughtSignature: call.signature }),
    }))

function frames(completion: ScriptedCompletion): string[] {
  const { reasoning = [], text = [] } = completion
  const late = callParts(completion, true)
  const usage = usageOf(completion)
  const sofar = usage && { promptTokenCount: usage.promptTokenCount, totalTokenCount: usage.promptTokenCount }
  return [
    ...reasoning.map((thought) => chunk([{ text: thought, thought: true }])),
    ...text.map((part) => chunk([{ text: part }])),
    ...callParts(completion, false).map((part) => chunk([part])),
  ]
    .map((body) => dataEvent({ ...body, ...(sofar && { usageMetadata: sofar }) }))
    .concat(
      dataEvent({
        ...chunk(late.length === 0 ? [{ text: '' }] : late, FINISH_REASON[finishOf(completion)]),
        ...(usage && { usageMetadata: usage }),
      }),
    )
}

const error = (code: number, status: string, message: string, details?: object[]) => ({
  error: { code, message, status, ...(details === undefined ? {} : { details }) },
})

function refusal(reason: Refusal): ScriptedAnswer {
  switch (reason) {
    case 'bad_key':
      // A wrong key is a wrong argument here, with status 400.
      return jsonAnswer(
        error(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', [
          {
            '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
            reason: 'API_KEY_INVALID',
            domain: 'googleapis.com',
            metadata: { service: 'generativelanguage.googleapis.com' },
          },
        ]),
        { status: 400 },
      )
    case 'rate_limited':
      // Each limit, also the one per minute, is called a quota; the wait stands in the body and in no header.
      return jsonAnswer(
        error(
          429,
          'RESOURCE_EXHAUSTED',
          'You exceeded your current quota, please check your plan and billing details. ' +
            '* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_requests, limit: 10 ' +
            `Please retry in ${RETRY_AFTER_S}.0s.`,
          [
            {
              '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
              violations: [
                {
                  quotaMetric: 'generativelanguage.googleapis.com/generate_content_requests',
                  quotaId: 'GenerateRequestsPerMinutePerProjectPerModel',
                  quotaValue: '10',
                },
              ],
            },
            { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${RETRY_AFTER_S}s` },
          ],
        ),
        { status: 429 },
      )
    case 'out_of_credit':
      return jsonAnswer(
        error(
          429,
          'RESOURCE_EXHAUSTED',
          'Your prepayment credits are depleted. Please go to AI Studio to manage your project and billing.',
        ),
        { status: 429 },
      )
    case 'server_error':
      return jsonAnswer(error(500, 'INTERNAL', 'An internal error has occurred. Please retry.'), {
        status: 500,
      })
    case 'overloaded':
      return jsonAnswer(error(503, 'UNAVAILABLE', 'The model is overloaded. Please try again later.'), {
        status: 503,
      })
    case 'too_long':
      return jsonAnswer(
        error(
          400,
          'INVALID_ARGUMENT',
          'The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).',
        ),
        { status: 400 },
      )
    case 'unknown_model':
      return jsonAnswer(
        error(
          404,
          'NOT_FOUND',
          'models/gemini-nope is not found for API version v1beta, or is not supported for generateContent. ' +
            'Call ListModels to see the list of available models and their supported methods.',
        ),
        { status: 404 },
      )
  }
}

export const geminiDialect: ScriptedDialect = {
  frames,
  completes: (frame) => frame.includes('"finishReason"'),
  contentType: 'text/event-stream',
  buffered: (completion) => {
    const { reasoning, text } = completion
    const parts = [
      ...(reasoning === undefined ? [] : [{ text: reasoning.join(''), thought: true }]),
      ...(text === undefined ? [] : [{ text: text.join('') }]),
      ...callParts(completion),
    ]
    const usage = usageOf(completion)
    return jsonAnswer({
      ...chunk(parts, FINISH_REASON[finishOf(completion)]),
      ...(usage && { usageMetadata: usage }),
    })
  },
  refusal,
  errorFrame: (message) => dataEvent(error(429, 'RESOURCE_EXHAUSTED', message)),
  garbageFrame: 'data: {"candidates":[{"content":{"parts":[{"text":"secret\n\n',
}

/** A prompt that a filter stopped: there is no candidate at all. */
export const geminiBlockedPrompt = () => ({
  promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
  usageMetadata: { promptTokenCount: 12, totalTokenCount: 12 },
  modelVersion: 'gemini-scripted',
})
