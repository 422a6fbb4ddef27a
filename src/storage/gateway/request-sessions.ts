import { numberOf, type Sql, textOf } from '../session/sql.ts'

/** To which session a request of a device went, so that its status is asked of that one alone (D29). */
export type RequestSession = { sessionId: string; epoch: number }

/** Requests of a device that are remembered. What is older than these was settled, or given up, long ago. */
const MAX_REMEMBERED = 4096
/** Forgetting costs a look at them all, so it is done for many at a time. A prime: devices that take turns all get to it. */
const FORGET_EVERY = 61

export function loadRequestSession(sql: Sql, deviceId: string, requestId: string): RequestSession | null {
  const row = sql.rows(
    'SELECT session_id, epoch FROM request_sessions WHERE device_id = ? AND request_id = ?',
    deviceId,
    requestId,
  )[0]
  return row ? { sessionId: textOf(row, 'session_id'), epoch: numberOf(row, 'epoch') } : null
}

/** Notes where a request goes. One that is sent again writes nothing. */
export function saveRequestSession(
  sql: Sql,
  deviceId: string,
  requestId: string,
  { sessionId, epoch }: RequestSession,
  nowMs: number,
): void {
  const noted = loadRequestSession(sql, deviceId, requestId)
  if (noted?.sessionId === sessionId && noted.epoch === epoch) return
  const row = sql.rows(
    `INSERT OR REPLACE INTO request_sessions (device_id, request_id, session_id, epoch, created_at)
     VALUES (?, ?, ?, ?, ?) RETURNING seq`,
    deviceId,
    requestId,
    sessionId,
    epoch,
    nowMs,
  )[0]
  if (row && numberOf(row, 'seq') % FORGET_EVERY === 0) forgetOldest(sql, deviceId)
}

function forgetOldest(sql: Sql, deviceId: string): void {
  sql.rows(
    `DELETE FROM request_sessions WHERE device_id = ?1 AND seq IN (
       SELECT seq FROM request_sessions WHERE device_id = ?1 ORDER BY seq DESC LIMIT -1 OFFSET ${MAX_REMEMBERED}
     )`,
    deviceId,
  )
}

/** The device is gone, and its receipts with it. */
export function dropRequestSessions(sql: Sql, deviceId: string): void {
  sql.rows('DELETE FROM request_sessions WHERE device_id = ?', deviceId)
}
