/** The words that the route table is written in: its type, the parameters, and the refusals that go together. */

import { ERROR_STATUS, type ErrorCode } from './errors.ts'
import type { ShapeName } from './shapes.ts'

export type Parameter = {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  description: string
  schema: Readonly<Record<string, unknown>>
}

/** Statuses with the codes that may come under each. A body is always `ApiError`. */
export type ErrorAnswers = ReadonlyMap<number, readonly ErrorCode[]>

export type Tag =
  | 'health'
  | 'auth'
  | 'sessions'
  | 'execution'
  | 'traces'
  | 'usage'
  | 'llm'
  | 'memory'
  | 'export'
  | 'devices'
  | 'settings'

export type Route = {
  method: 'get' | 'post' | 'put' | 'delete'
  /** As OpenAPI writes it, with `{session_id}`. */
  path: string
  operationId: string
  summary: string
  description?: string
  tag: Tag
  security: 'none' | 'bearer' | 'apiKey'
  parameters: readonly Parameter[]
  request?: ShapeName
  /**
   * `json`, `stream` and `lines` name what comes as `application/json`, as `text/event-stream` (one shape per event) and
   * as `application/x-ndjson` (one shape per line).
   */
  success: {
    status: 200 | 201
    description: string
    json?: ShapeName | 'OpenApi'
    stream?: ShapeName
    lines?: ShapeName
  }
  errors: ErrorAnswers
}

export const SESSION_ID: Parameter = {
  name: 'session_id',
  in: 'path',
  required: true,
  description: 'The session. Any spelling of a UUID is accepted.',
  schema: { type: 'string' },
}

export const MEMORY_ID: Parameter = {
  name: 'memory_id',
  in: 'path',
  required: true,
  description: 'The fact: a UUID, chosen by whoever makes it.',
  schema: { type: 'string' },
}

export const KEY_ID: Parameter = {
  name: 'key_id',
  in: 'path',
  required: true,
  description: 'The API key, as the list of keys names it.',
  schema: { type: 'string' },
}

export const DEVICE_ID: Parameter = {
  name: 'device_id',
  in: 'path',
  required: true,
  description: 'The device, as the list of devices names it.',
  schema: { type: 'string' },
}

export const REQUEST_ID: Parameter = {
  name: 'request_id',
  in: 'path',
  required: true,
  description: 'The request, as the list of connection requests names it.',
  schema: { type: 'string' },
}

export const GRANT_ID: Parameter = {
  name: 'grant_id',
  in: 'path',
  required: true,
  description: 'The grant, as `GET …/run` lists it.',
  schema: { type: 'string' },
}

export const API_KEY: Parameter = {
  name: 'X-Smista-Api-Key',
  in: 'header',
  required: true,
  description: 'An API key of the account, beside the token.',
  schema: { type: 'string' },
}

export const IDEMPOTENCY_KEY: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Makes the request safe to repeat for 24 hours: the same key with the same body gets the stored outcome, with ' +
    'another body 422.',
  schema: { type: 'string', minLength: 1 },
}

export const LAST_EVENT_ID: Parameter = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description:
    'The `id` of the last event received. The stream goes on after it; where it is no longer held, only the end of ' +
    'the turn is sent.',
  schema: { type: 'string' },
}

/** Of a session's events, which are another sequence than those of a turn. */
export const EVENT_PLACE: Parameter = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description: 'With a stream: the `id` of the last event received. It counts more than `after`.',
  schema: { type: 'string' },
}

export const BOOTSTRAP_TOKEN: Parameter = {
  name: 'X-Smista-Bootstrap-Token',
  in: 'header',
  required: false,
  description: 'The secret of this deployment. Needed everywhere but in local development.',
  schema: { type: 'string' },
}

export const TIMEOUT_MS: Parameter = {
  name: 'X-Smista-Timeout-Ms',
  in: 'header',
  required: false,
  description:
    'How long to wait for each provider, in milliseconds; at most 60000. Without it, or with 0, 10000 are used.',
  schema: { type: 'integer', minimum: 0, default: 10_000 },
}

/** A header family: instances of OpenAI-compatible endpoints have one each, which a list cannot name. */
export const PROVIDER_KEYS: readonly Parameter[] = ['Anthropic', 'Gemini', 'OpenAI', 'Ollama'].map(
  (provider) => ({
    name: `X-Smista-Provider-${provider}-Api-Key`,
    in: 'header',
    required: false,
    description:
      `The caller's own key for ${provider}, used for this request only and never stored. An OpenAI-compatible ` +
      'instance `<name>` takes its key in `X-Smista-Provider-<name>-Api-Key`.',
    schema: { type: 'string' },
  }),
)

export const query = (name: string, description: string, schema: Parameter['schema']): Parameter => ({
  name,
  in: 'query',
  required: false,
  description,
  schema,
})

/** A code at its own status, or `invalid_request` at one of its others. */
export type Refusal = ErrorCode | [status: 400 | 404 | 413 | 415, code: 'invalid_request']

export const EVERYWHERE: readonly Refusal[] = ['credentials_in_query', 'rate_limited', 'internal_error']
export const WITH_TOKEN: readonly Refusal[] = [
  ...EVERYWHERE,
  'missing_credentials',
  'invalid_token',
  'token_expired',
  'token_revoked',
]
export const IN_SESSION: readonly Refusal[] = [...WITH_TOKEN, 'invalid_session_id', 'session_not_found']
/** A query parameter that is not what it should be, such as a limit that is no number (D49). */
export const BAD_QUERY: Refusal = [400, 'invalid_request']
/** Bad JSON, too large, not JSON at all, and JSON of another shape (EC 1.4, D49). */
export const WITH_BODY: readonly Refusal[] = [
  [400, 'invalid_request'],
  [413, 'invalid_request'],
  [415, 'invalid_request'],
  'invalid_request',
]
/** What routing itself can refuse: all that a preview can find out. */
export const ROUTING: readonly Refusal[] = [
  'override_not_allowed',
  'model_not_found',
  'no_route',
  'context_window_exceeded',
  'missing_capability',
  'routing_unsupported_capability',
  'permission_expansion',
  'invalid_model_reference',
  'invalid_provider_name',
  'unknown_effort',
  'unknown_intent',
  'unknown_model',
  'unknown_provider',
  'fallback_exhausted',
]
/** What serving a turn can meet on top of that. */
export const TURN: readonly Refusal[] = [
  ...IN_SESSION,
  ...WITH_BODY,
  ...ROUTING,
  'run_in_flight',
  'context_length_exceeded',
  'provider_unsupported_capability',
  'invalid_provider_configuration',
  'provider_error',
  'storage_error',
  'missing_provider_credentials',
  'invalid_provider_credentials',
  'provider_authentication',
  'provider_unavailable',
  'request_timeout',
]

/** Groups refusals by their status, lowest first. */
export function refusals(list: readonly Refusal[]): ErrorAnswers {
  const answers = new Map<number, ErrorCode[]>()
  for (const refusal of list) {
    const [status, code] = typeof refusal === 'string' ? [ERROR_STATUS[refusal], refusal] : refusal
    answers.set(status, [...(answers.get(status) ?? []), code])
  }
  return new Map([...answers].sort(([a], [b]) => a - b))
}
