import type { Context } from 'hono'
import { type Failure, failure } from '../protocol/execution/errors.ts'
import { err, ok, type Result } from '../protocol/result.ts'

/** The optional `Idempotency-Key` of a request (D20): visible characters, at most 255. */
export function readIdempotencyKey(c: Context): Result<string | null, Failure> {
  const key = c.req.header('Idempotency-Key')
  if (key === undefined) return ok(null)
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return ok(key)
  return err(failure('invalid_request', '`Idempotency-Key` must be 1 to 255 visible ASCII characters'))
}
