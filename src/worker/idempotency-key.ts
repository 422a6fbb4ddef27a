import type { Context } from 'hono'
import { type Failure, failure } from '../protocol/execution/errors.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { MAX_IDEMPOTENCY_KEY_CHARS } from '../storage/limits.ts'

/** The optional `Idempotency-Key` of a request (D20): visible characters. */
export function readIdempotencyKey(c: Context): Result<string | null, Failure> {
  const key = c.req.header('Idempotency-Key')
  if (key === undefined) return ok(null)
  if (/^[\x21-\x7e]+$/.test(key) && key.length <= MAX_IDEMPOTENCY_KEY_CHARS) return ok(key)
  const message = `\`Idempotency-Key\` must be 1 to ${MAX_IDEMPOTENCY_KEY_CHARS} visible ASCII characters`
  return err(failure('invalid_request', message, { max_chars: MAX_IDEMPOTENCY_KEY_CHARS }))
}
