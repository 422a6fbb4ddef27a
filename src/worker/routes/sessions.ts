import { Hono } from 'hono'
import { failure } from '../../protocol/execution/errors.ts'
import { parseSessionId } from '../../protocol/execution/ids.ts'
import {
  CreateSessionRequest,
  type CreateSessionResponse,
  type DeleteSessionResponse,
  type GetSessionResponse,
  type ListSessionsResponse,
  type SessionSummary,
  UpdateSessionRequest,
  type UpdateSessionResponse,
} from '../../protocol/execution/session.ts'
import type { TraceResponse } from '../../protocol/execution/trace.ts'
import { openDatabase } from '../../storage/d1/database.ts'
import {
  findCreated,
  insertSession,
  type ListedSession,
  listSessions,
  sessionExists,
} from '../../storage/d1/sessions.ts'
import { newId } from '../../storage/ids.ts'
import { MAX_LISTED_SESSIONS, MAX_SESSIONS_PER_USER, MAX_TRACE_EVENTS } from '../../storage/limits.ts'
import { NOT_LISTED, type SessionRow, toSummary } from '../../storage/session/session-row.ts'
import { readBody } from '../body.ts'
import type { AppEnv } from '../context.ts'
import { sessionStub } from '../env.ts'
import { failed } from '../errors.ts'
import { readIdempotencyKey } from '../idempotency-key.ts'
import { checkSession, identify, ownSession } from '../middleware/identify.ts'
import { badQuery, parseWhole } from '../query.ts'
import { beyondBounds, SESSION_BOUNDS } from '../request-bounds.ts'

/** Trace events per page unless asked otherwise (EC 2.14). */
const DEFAULT_TRACE_EVENTS = 50

export const sessions = new Hono<AppEnv>()

sessions.use('/', identify)
sessions.use('/:session_id/*', identify)

sessions.post('/', async (c) => {
  const body = await readBody(c, CreateSessionRequest, beyondBounds(SESSION_BOUNDS))
  if (!body.ok) return failed(c, body.error)
  const key = readIdempotencyKey(c)
  if (!key.ok) return failed(c, key.error)
  const { userId } = c.var.identity
  const db = openDatabase(c.env.DB)
  const { digest, value } = body.value
  if (value.key_id != null && !/\S/.test(value.key_id))
    return failed(
      c,
      failure('invalid_request', '`key_id` is blank: it names the key of an encrypted session'),
    )
  const { title } = value
  const scope = value.scope ?? null
  const keyId = value.key_id ?? null
  const rowOf = (sessionId: string, createdAtMs: number): SessionRow => ({
    sessionId,
    userId,
    title,
    scope,
    keyId,
    createdAtMs,
    updatedAtMs: createdAtMs,
    archivedAtMs: null,
    deletedAtMs: null,
    rev: 0,
    ...NOT_LISTED,
  })
  /** What the key has done already: told as it was then, whatever became of the session (U14). */
  const replay = async (): Promise<Response | null> => {
    const known = key.value === null ? null : await findCreated(db, userId, key.value)
    if (known === null) return null
    if (known.digest !== digest) {
      return failed(c, failure('invalid_request', 'this idempotency key was used with another request'))
    }
    const session = toSummary(rowOf(known.sessionId, known.createdAtMs))
    return c.json({ session } satisfies CreateSessionResponse, 201)
  }
  const replayed = await replay()
  if (replayed) return replayed
  const sessionId = newId()
  const stub = sessionStub(c.env, sessionId)
  const session = await stub.create({ sessionId, userId, title, scope, keyId })
  const row = rowOf(sessionId, Date.parse(session.created_at))
  const createKey = key.value === null ? null : { key: key.value, digest }
  try {
    if (!(await insertSession(db, row, createKey, MAX_SESSIONS_PER_USER))) {
      await stub.remove(userId, { unmade: true })
      // The last one may have been made under this very key a moment ago.
      return (await replay()) ?? failed(c, TOO_MANY_SESSIONS)
    }
  } catch (error) {
    // D1 may have stored what it said it could not: then the session stands.
    if (await sessionExists(db, sessionId).catch(() => false))
      return c.json({ session } satisfies CreateSessionResponse, 201)
    // Without its row in D1 nobody could find the session: it must not stay behind.
    await stub.remove(userId, { unmade: true })
    const raced = await replay()
    if (raced) return raced
    throw error
  }
  return c.json({ session } satisfies CreateSessionResponse, 201)
})

sessions.get('/', async (c) => {
  const limit = parseWhole(c.req.query('limit'), 'limit', { least: 1, absent: MAX_LISTED_SESSIONS })
  if (!limit.ok) return failed(c, limit.error)
  const after = c.req.query('after')
  const afterId = after === undefined ? undefined : parseSessionId(after)
  if (afterId === null) return failed(c, badQuery('`after` is the id of the last session of the page before'))
  const scope = c.req.query('scope')
  const title = c.req.query('title')
  const rows = await listSessions(openDatabase(c.env.DB), c.var.identity.userId, {
    limit: Math.min(limit.value, MAX_LISTED_SESSIONS),
    ...(scope === undefined ? {} : { scope }),
    ...(title === undefined ? {} : { title }),
    ...(afterId === undefined ? {} : { after: afterId }),
  })
  return c.json({ sessions: rows.map(toListed) } satisfies ListSessionsResponse)
})

sessions.get('/:session_id', ownSession, async (c) => {
  const detail = await sessionStub(c.env, c.var.sessionId).detail(c.var.identity.userId)
  return detail.ok ? c.json({ session: detail.value } satisfies GetSessionResponse) : failed(c, detail.error)
})

sessions.put('/:session_id', async (c) => {
  const body = await readBody(c, UpdateSessionRequest, beyondBounds(SESSION_BOUNDS))
  if (!body.ok) return failed(c, body.error)
  const refused = checkSession(c)
  if (refused) return failed(c, refused)
  const updated = await sessionStub(c.env, c.var.sessionId).update(c.var.identity.userId, body.value.value)
  return updated.ok
    ? c.json({ session: updated.value } satisfies UpdateSessionResponse)
    : failed(c, updated.error)
})

sessions.delete('/:session_id', ownSession, async (c) => {
  const removed = await sessionStub(c.env, c.var.sessionId).remove(c.var.identity.userId)
  return removed.ok ? c.json({ deleted: true } satisfies DeleteSessionResponse) : failed(c, removed.error)
})

sessions.get('/:session_id/traces', ownSession, async (c) => {
  const limit = parseWhole(c.req.query('limit'), 'limit', { least: 0, absent: DEFAULT_TRACE_EVENTS })
  if (!limit.ok) return failed(c, limit.error)
  const offset = parseWhole(c.req.query('offset'), 'offset', { least: 0, absent: 0 })
  if (!offset.ok) return failed(c, offset.error)
  const window = { limit: Math.min(limit.value, MAX_TRACE_EVENTS), offset: offset.value }
  const trace = await sessionStub(c.env, c.var.sessionId).traces(c.var.identity.userId, window)
  return trace.ok ? c.json({ trace: trace.value } satisfies TraceResponse) : failed(c, trace.error)
})

sessions.get('/:session_id/usage', ownSession, async (c) => {
  const usage = await sessionStub(c.env, c.var.sessionId).usage(c.var.identity.userId)
  return usage.ok ? c.json(usage.value) : failed(c, usage.error)
})

/** Lists show the marks that devices have set, too. */
const toListed = (session: ListedSession): SessionSummary => ({
  ...toSummary(session),
  ...(session.pinned ? { pinned: true } : {}),
  ...(session.settled ? { settled: true } : {}),
})

const TOO_MANY_SESSIONS = failure(
  'invalid_request',
  `there are ${MAX_SESSIONS_PER_USER} sessions already; delete some, or archive them`,
  { max_sessions: MAX_SESSIONS_PER_USER },
)
