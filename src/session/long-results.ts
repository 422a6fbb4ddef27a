import type { ContinueRequest } from '../protocol/execution/continue.ts'
import { type Failure, failure } from '../protocol/execution/errors.ts'
import { byteLength, MAX_TOOL_RESULT_BYTES } from '../storage/limits.ts'

/** A longer result is refused whole; the pause stays, and the client can send a shorter one (D27). */
export function refuseLongResults(message: ContinueRequest): Failure | null {
  if (message.type !== 'tool_results') return null
  const longest = message.data.results.find(({ content }) => byteLength(content) > MAX_TOOL_RESULT_BYTES)
  if (!longest) return null
  return failure('invalid_request', `a tool result is longer than ${MAX_TOOL_RESULT_BYTES} bytes`, {
    call_id: longest.call_id,
    max_bytes: MAX_TOOL_RESULT_BYTES,
  })
}
