import type { Context } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { type Failure, statusOf, toErrorBody } from '../protocol/execution/errors.ts'

/** Answers a failure in the contract's shape (EC 3). */
export function failed(c: Context, failure: Failure, headers: Record<string, string> = {}): Response {
  const challenge = statusOf(failure) === 401 ? { 'WWW-Authenticate': 'Bearer' } : {}
  return c.json({ error: toErrorBody(failure) }, statusOf(failure) as ContentfulStatusCode, {
    ...challenge,
    ...headers,
  })
}
