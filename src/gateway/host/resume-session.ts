import { errorName } from '../../protocol/error-name.ts'
import type { RemoteSessionInfo } from '../../protocol/remote/session-info.ts'
import type { SessionRpc } from '../../session/rpc.ts'
import type { Database } from '../../storage/d1/database.ts'
import { savedState } from '../../storage/d1/saved-sessions.ts'
import { refusal } from '../refusal.ts'
import { applied, type HostOutcome, rejected } from './outcome.ts'

/** The live list, as far as a session is put on it here. */
export type OpenList = {
  row(sessionId: string): RemoteSessionInfo | null
  /** False: this registration has ended, and the session does not know yet. */
  put(row: RemoteSessionInfo, nowMs: number): boolean
}

export type ResumeDeps = {
  db: Database
  userId: string
  list: OpenList
  session(sessionId: string): Pick<SessionRpc, 'share' | 'delisted'>
  now(): number
}

const UNKNOWN = rejected('not_found', 'there is no such session')

/** Lists a session of the user live (remote protocol, "Saved sessions"); one that is listed is answered at once. */
export async function resumeSession(deps: ResumeDeps, sessionId: string): Promise<HostOutcome> {
  const { db, userId, list } = deps
  const listed = list.row(sessionId)
  if (listed !== null) return applied({ type: 'session_resumed', session: listed })
  // The row says whose it is: an id from a device must not reach the object of another user, nor make one.
  const state = await savedState(db, userId, sessionId)
  if (state === 'unknown') return UNKNOWN
  if (state === 'archived')
    return rejected('invalid_request', 'the session is archived; restore it before it is opened')
  try {
    const row = await share(deps, sessionId)
    if (row === null) return UNKNOWN
    return applied({ type: 'session_resumed', session: list.row(sessionId) ?? row })
  } catch (error) {
    console.warn(`session ${sessionId} could not be opened:`, errorName(error))
    return {
      receipt: 'undecided',
      result: refusal('owner_unavailable', 'the session did not answer; ask for the status of this request'),
    }
  }
}

/** The row of the session, once it is on the list: whoever is told of it attaches to it next. */
async function share(
  { userId, list, session, now }: ResumeDeps,
  sessionId: string,
): Promise<RemoteSessionInfo | null> {
  const object = session(sessionId)
  const row = await object.share(userId)
  if (row === null || list.put(row, now())) return row
  // It believes in a registration that ended here: told so, it takes another.
  await object.delisted(userId, row.registration_epoch)
  const again = await object.share(userId)
  if (again !== null && !list.put(again, now())) throw new Error('the session cannot be listed')
  return again
}
