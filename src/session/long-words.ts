import { isOver, type RunState } from '../core/run/state.ts'
import type { ContinueRequest } from '../protocol/execution/continue.ts'
import { type Failure, failure } from '../protocol/execution/errors.ts'
import { byteLength, MAX_RUN_WORDS_BYTES, MAX_SEALED_BUNDLE_BYTES } from '../storage/limits.ts'
import { messageBytes, runStart, wordSizes } from '../storage/session/message-sizes.ts'
import type { Sql } from '../storage/session/sql.ts'

/**
 * What the user says in a run is in every prompt of it, so it cannot grow without end: an `inject` beyond the limit is
 * refused, and what is going on goes on (D27). The same text may begin a run of its own. One that is sent again after a
 * crash is stored already.
 */
export function refuseLongWords(
  sql: Sql,
  state: RunState | null,
  { digest, message }: { digest: string; message: ContinueRequest },
  sealed: boolean,
): Failure | null {
  if (message.type !== 'inject' || state === null || isOver(state) || state.unsettled?.digest === digest) {
    return null
  }
  const end = Number.MAX_SAFE_INTEGER
  const said = wordSizes(sql, runStart(sql, state.runId, end), end, sealed)
  // What is opened for each turn has to fit one request, with all else that is opened.
  const limit = sealed ? MAX_SEALED_BUNDLE_BYTES : MAX_RUN_WORDS_BYTES
  const bytes =
    said.reduce((sum, size) => sum + messageBytes(size), 0) +
    message.data.messages.reduce((sum, { text }) => sum + byteLength(text), 0)
  if (bytes <= limit) return null
  return failure('invalid_request', `what is said in a run may take ${limit} bytes in all`, {
    max_bytes: limit,
  })
}
