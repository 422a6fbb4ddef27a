import type { ErrorCode } from '../protocol/execution/errors.ts'
import type { ProviderErrorCategory } from '../protocol/execution/models.ts'
import { MAX_RETRY_AFTER_MS } from './bounds.ts'

const CODES: Record<ProviderErrorCategory, ErrorCode> = {
  authentication: 'provider_authentication',
  context_length: 'context_length_exceeded',
  invalid_configuration: 'invalid_provider_configuration',
  invalid_credentials: 'invalid_provider_credentials',
  invalid_request: 'invalid_request',
  missing_credentials: 'missing_provider_credentials',
  model_not_found: 'model_not_found',
  provider_unavailable: 'provider_unavailable',
  rate_limit: 'rate_limited',
  storage: 'storage_error',
  timeout: 'request_timeout',
  unknown: 'provider_error',
  unsupported_capability: 'provider_unsupported_capability',
}

/** The public code of a provider failure (EC 3). */
export const categoryToCode = (category: ProviderErrorCategory): ErrorCode => CODES[category]

const FALLBACK_ELIGIBLE: ReadonlySet<ProviderErrorCategory> = new Set([
  'provider_unavailable',
  'rate_limit',
  'timeout',
  'unknown',
])

/** Whether another model may be tried after this failure (EC 3). Ask only when the failure is not `aborted`. */
export const isFallbackEligible = (category: ProviderErrorCategory): boolean =>
  FALLBACK_ELIGIBLE.has(category)

const KEY =
  /(invalid|incorrect|wrong) (x-)?api[-_ ]key|api[-_ ]key (is )?(not valid|invalid)|invalid_api_key|authentication_error|\bunauthenticated\b/
/** Google calls each of its limits a quota, also those per minute; its word for spent money is another. */
const METERED = /rate_limit_(exceeded|error)|quota exceeded for metric/
const QUOTA =
  /insufficient[_ ](quota|credit|balance|fund)|exceeded your current quota|payment required|out of credits|credits are depleted|credit balance|billing/
const RATE =
  /rate[_ -]?limit|too many requests|tokens per (min|day)|requests per (min|day)|\b[tr]p[md]\b|resource_exhausted/
const CONTEXT =
  /context[_ -]?(length|window|size)|(prompt|input|request|messages?)\b.{0,60}\b(too long|too large|longer than|exceeds?)|too many (input |prompt )?tokens|maximum (prompt|input) length|reduce the length/
const MODEL =
  /model[_ ]not[_ ]found|(no such|unknown|invalid) model|\bmodels?\b.{0,160}(not[_ ]found|(does not|doesn't) exist|not available|unknown)|try pulling it/
const CAPABILITY = /(does not|doesn't|not) support.{0,40}(tool|function|think|reason|image|vision|stream)/

/** What an error without a status calls itself: error types of Anthropic and OpenAI, status words of Google. */
const NAMED: readonly (readonly [RegExp, ProviderErrorCategory])[] = [
  [/permission_error|permission_denied/, 'authentication'],
  [/invalid_request|invalid_argument|failed_precondition|invalid_prompt/, 'invalid_request'],
  [
    /overloaded|\b(api|server|internal|internal_server|timeout)_error\b|\bunavailable\b|\binternal\b|deadline_exceeded/,
    'provider_unavailable',
  ],
]

/**
 * Sorts what a provider answered into a category (EC 3). The status decides; what the provider says recovers a wrong
 * key, quota, rate limits, a prompt that is too long, an unknown model and a missing capability from statuses that do
 * not tell.
 * @param status HTTP status; absent for an error inside a stream, which is sorted by the name it gives itself
 * @param hints the provider's message, type, code and status word in one text
 */
export function categorize(status: number | undefined, hints: string): ProviderErrorCategory {
  const said = hints.toLowerCase()
  if (status === 401) return 'invalid_credentials'
  if (METERED.test(said)) return 'rate_limit'
  if (QUOTA.test(said)) return 'authentication'
  if (status === 429 || RATE.test(said)) return 'rate_limit'
  if ((status === undefined || status === 400 || status === 403) && KEY.test(said))
    return 'invalid_credentials'
  if (CONTEXT.test(said)) return 'context_length'
  if (MODEL.test(said)) return 'model_not_found'
  if (CAPABILITY.test(said)) return 'unsupported_capability'
  if (status === 400) return 'invalid_request'
  if (status === 403) return 'authentication'
  if (status !== undefined) return status >= 500 ? 'provider_unavailable' : 'unknown'
  return NAMED.find(([name]) => name.test(said))?.[1] ?? 'unknown'
}

/** How long a provider asks to wait, in ms and at most a day: seconds or a date (`Retry-After`), or its ms variant. */
export function retryAfterMs(headers: Headers, nowMs: number): number | undefined {
  const wait = askedWaitMs(headers, nowMs)
  return wait === undefined ? undefined : Math.min(wait, MAX_RETRY_AFTER_MS)
}

function askedWaitMs(headers: Headers, nowMs: number): number | undefined {
  const ms = headers.get('retry-after-ms')
  if (ms !== null && /^\d+(\.\d+)?$/.test(ms)) return Math.ceil(Number(ms))
  const value = headers.get('retry-after')
  if (value === null) return undefined
  if (/^\d+(\.\d+)?$/.test(value)) return Math.ceil(Number(value) * 1000)
  const at = Date.parse(value)
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs)
}
