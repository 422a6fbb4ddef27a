import { fittingEntries, parseCursor, savedSession, toCursor } from '../../core/saved-session.ts'
import type { RemoteOperation } from '../../protocol/remote/operations.ts'
import type { OutrightResult } from '../../protocol/remote/results.ts'
import type { Database } from '../../storage/d1/database.ts'
import { listSavedSessions } from '../../storage/d1/saved-sessions.ts'
import { refusal } from '../refusal.ts'

type Asked = Extract<RemoteOperation, { type: 'list_saved_sessions' }>

/** Sessions on a page unless the client says how many. */
const DEFAULT_PAGE = 30

/** One page of the user's sessions (remote protocol, "Saved sessions", D03). A page may be shorter than asked to fit a frame. */
export async function savedSessionsPage(
  db: Database,
  userId: string,
  { cursor, limit = DEFAULT_PAGE, query }: Asked,
  isShared: (sessionId: string) => boolean,
): Promise<OutrightResult> {
  const after = cursor === undefined ? null : parseCursor(cursor)
  if (cursor !== undefined && after === null)
    return refusal('invalid_request', 'cursor is not the next_cursor of an earlier page')
  const rows = await listSavedSessions(db, userId, { after, query: query ?? null, limit: limit + 1 })
  const entries = rows.slice(0, limit).map((row) => savedSession(row, isShared(row.sessionId)))
  const shown = fittingEntries(entries)
  const last = shown < rows.length ? rows[shown - 1] : undefined
  return {
    type: 'saved_sessions',
    sessions: entries.slice(0, shown),
    ...(last === undefined ? {} : { next_cursor: toCursor(last) }),
  }
}
