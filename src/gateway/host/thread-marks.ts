import type { OutrightResult } from '../../protocol/remote/results.ts'
import type { Database } from '../../storage/d1/database.ts'
import { markThread } from '../../storage/d1/saved-sessions.ts'
import { applied, type HostOutcome, rejected } from './outcome.ts'

/** The operations that mark a session, shared or not: which mark, and whether it is set. */
const MARKS = {
  pin_thread: { mark: 'pinned', isSet: true },
  unpin_thread: { mark: 'pinned', isSet: false },
  settle_thread: { mark: 'settled', isSet: true },
  unsettle_thread: { mark: 'settled', isSet: false },
} as const

export type MarkOperation = { type: keyof typeof MARKS; session_id: string }

/** Sets or takes back a mark (remote protocol, "Usage, host settings and thread status"). */
export async function markSession(
  db: Database,
  userId: string,
  { type, session_id }: MarkOperation,
  nowMs: number,
): Promise<HostOutcome> {
  const { mark, isSet } = MARKS[type]
  const isThere = await markThread(db, { userId, sessionId: session_id }, mark, isSet ? nowMs : null)
  if (!isThere) return rejected('invalid_request', 'there is no such session')
  const result: OutrightResult =
    mark === 'pinned'
      ? { type: 'thread_pinned', session_id, pinned: isSet }
      : { type: 'thread_settled', session_id, settled: isSet }
  return applied(result)
}
