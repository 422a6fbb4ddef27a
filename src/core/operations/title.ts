import { MAX_TITLE_BYTES } from '../../protocol/remote/limits.ts'
import { utf8Bytes } from '../../protocol/remote/utf8.ts'
import { ok, type Result } from '../../protocol/result.ts'
import { type Refusal, refuse } from './refusal.ts'

/** The title that a device may give: 1 to 512 bytes without control characters (RF 21). */
export function readTitle(title: string): Result<string, Refusal> {
  if (title === '') return refuse('invalid_request', 'a title is missing: /title followed by it')
  if (/\p{Cc}/u.test(title)) return refuse('invalid_request', 'a title holds no control characters')
  if (utf8Bytes(title) > MAX_TITLE_BYTES)
    return refuse('invalid_request', `a title takes at most ${MAX_TITLE_BYTES} bytes`)
  return ok(title)
}
