import { z } from 'zod'

/** Each code always comes with the same status (EC 3); `invalid_request` has a few more (D49). */
export const ERROR_STATUS = {
  credentials_in_query: 400,
  invalid_session_id: 400,
  invalid_api_key: 401,
  invalid_token: 401,
  missing_credentials: 401,
  token_expired: 401,
  token_revoked: 401,
  forbidden: 403,
  override_not_allowed: 403,
  model_not_found: 404,
  session_not_found: 404,
  run_in_flight: 409,
  context_length_exceeded: 422,
  context_window_exceeded: 422,
  invalid_model_reference: 422,
  invalid_provider_name: 422,
  invalid_request: 422,
  missing_capability: 422,
  routing_unsupported_capability: 422,
  provider_unsupported_capability: 422,
  no_route: 422,
  permission_expansion: 422,
  unknown_effort: 422,
  unknown_intent: 422,
  unknown_model: 422,
  unknown_provider: 422,
  rate_limited: 429,
  internal_error: 500,
  invalid_provider_configuration: 500,
  not_implemented: 501,
  provider_error: 502,
  storage_error: 502,
  fallback_exhausted: 503,
  invalid_provider_credentials: 503,
  missing_provider_credentials: 503,
  provider_authentication: 503,
  provider_unavailable: 503,
  request_timeout: 504,
} as const

export type ErrorCode = keyof typeof ERROR_STATUS

/** The body under `error`. Clients match on `code`; `message` is for people and may change (EC 3). */
export const ApiErrorBody = z
  .object({
    code: z.string(),
    message: z.string(),
    details: z.record(z.string(), z.unknown()).nullable().optional(),
  })
  .meta({ id: 'ApiErrorBody' })
export type ApiErrorBody = z.infer<typeof ApiErrorBody>

export const ApiError = z.object({ error: ApiErrorBody }).meta({ id: 'ApiError' })
export type ApiError = z.infer<typeof ApiError>

/** A failure on its way to a client. `status` only where D49 allows another than the code's own. */
export type Failure = {
  code: ErrorCode
  message: string
  details?: Record<string, unknown>
  status?: 400 | 404 | 405 | 413 | 415
}

export const failure = (code: ErrorCode, message: string, details?: Record<string, unknown>): Failure =>
  details === undefined ? { code, message } : { code, message, details }

/** The HTTP status that a failure is answered with. */
export const statusOf = (failed: Failure): number => failed.status ?? ERROR_STATUS[failed.code]

/** The wire form of a failure; `details` is left out when there are none (EC 3). */
export const toErrorBody = (failed: Failure): ApiErrorBody =>
  failed.details === undefined
    ? { code: failed.code, message: failed.message }
    : { code: failed.code, message: failed.message, details: failed.details }
