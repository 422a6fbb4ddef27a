import { type Context, Hono } from 'hono'
import { refuseFact } from '../../core/memory.ts'
import { type Failure, failure } from '../../protocol/execution/errors.ts'
import { parseSessionId, type SessionId } from '../../protocol/execution/ids.ts'
import {
  type DeleteMemoryResponse,
  type ListMemoryResponse,
  type MemoryRecord,
  MemoryScope,
  PutMemoryRequest,
  type PutMemoryResponse,
} from '../../protocol/execution/memory.ts'
import { err, ok, type Result } from '../../protocol/result.ts'
import { openDatabase } from '../../storage/d1/database.ts'
import { findPlace, forgetUserFact, listMemory, type Place, putUserFact } from '../../storage/d1/memory.ts'
import { readBody } from '../body.ts'
import type { AppEnv } from '../context.ts'
import { sessionStub } from '../env.ts'
import { failed } from '../errors.ts'
import { identify } from '../middleware/identify.ts'
import { badQuery } from '../query.ts'

/** What is remembered, for people to look at and to correct (D50). */
export const memory = new Hono<AppEnv>()

memory.use(identify)

memory.get('/', async (c) => {
  const scope = MemoryScope.optional().safeParse(c.req.query('scope'))
  if (!scope.success) return failed(c, badQuery('`scope` is `user` or `session`'))
  const asked = c.req.query('session_id')
  const sessionId = asked === undefined ? undefined : parseSessionId(asked)
  if (sessionId === null) return failed(c, badQuery('`session_id` is no UUID'))
  const { userId } = c.var.identity
  if (sessionId !== undefined) {
    // One session is asked itself: its object has what D1 may get later (D25). Of a foreign one nothing is known.
    const memories = scope.data === 'user' ? [] : await factsOfSession(c, sessionId, userId)
    return c.json({ memories } satisfies ListMemoryResponse)
  }
  const memories = await listMemory(openDatabase(c.env.DB), userId, scope.data)
  return c.json({ memories } satisfies ListMemoryResponse)
})

/** From the object; while a deploy is under way, from the copy where the object runs a release that cannot tell (D32). */
async function factsOfSession(
  c: Context<AppEnv>,
  sessionId: SessionId,
  userId: string,
): Promise<MemoryRecord[]> {
  try {
    const facts = await sessionStub(c.env, sessionId).facts(userId)
    return facts.ok ? facts.value : []
  } catch (error) {
    if (!isUnknownMethod(error)) throw error
    const copied = await listMemory(openDatabase(c.env.DB), userId, 'session')
    return copied.filter((fact) => fact.session_id === sessionId)
  }
}

const isUnknownMethod = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith('The RPC receiver does not implement')

memory.put('/:memory_id', async (c) => {
  const body = await readBody(c, PutMemoryRequest)
  if (!body.ok) return failed(c, body.error)
  const id = readId(c)
  if (!id.ok) return failed(c, id.error)
  const { userId } = c.var.identity
  const db = openDatabase(c.env.DB)
  const {
    content,
    scope,
    key = null,
    session_id: sessionId = null,
    local_only: localOnly = null,
  } = body.value.value
  const place = await findPlace(db, userId, { id: id.value, sessionId })
  const refused = refusal(place, scope, sessionId)
  if (refused) return failed(c, refused)
  const fact = { id: id.value, key, content, localOnly }
  if (sessionId !== null) {
    const put = await sessionStub(c.env, sessionId).putMemory(userId, fact)
    return put.ok ? c.json({ memory: put.value } satisfies PutMemoryResponse) : failed(c, put.error)
  }
  const put = await putUserFact(db, userId, { ...fact, nowMs: Date.now() })
  if (put === null) return failed(c, ID_TAKEN)
  return put.ok ? c.json({ memory: put.value } satisfies PutMemoryResponse) : failed(c, refuseFact(put.error))
})

memory.delete('/:memory_id', async (c) => {
  const id = readId(c)
  if (!id.ok) return failed(c, id.error)
  const { userId } = c.var.identity
  const db = openDatabase(c.env.DB)
  const { at } = await findPlace(db, userId, { id: id.value, sessionId: null })
  if (at === null || !at.own || at.forgotten) return failed(c, UNKNOWN)
  if (at.scope === 'user') {
    if (!(await forgetUserFact(db, userId, id.value, Date.now()))) return failed(c, UNKNOWN)
  } else {
    const deleted = await sessionStub(c.env, at.sessionId).deleteMemory(userId, id.value)
    // A session that is just being deleted takes its facts along: to its user there is no such fact.
    if (!deleted.ok || !deleted.value) return failed(c, UNKNOWN)
  }
  return c.json({ deleted: true } satisfies DeleteMemoryResponse)
})

const UNKNOWN: Failure = { ...failure('invalid_request', 'there is no such fact'), status: 404 }
const ID_TAKEN = failure('invalid_request', 'this id cannot be used for a new fact; choose another')

function readId(c: Context<AppEnv>): Result<string, Failure> {
  const id = parseSessionId(c.req.param('memory_id') ?? '')
  if (id !== null) return ok(id)
  return err({ ...failure('invalid_request', 'the id of a fact is a UUID'), status: 400 })
}

/** What the place of a fact forbids: its scope and its session are chosen once. */
function refusal({ at, ownsSession }: Place, scope: MemoryScope, sessionId: string | null): Failure | null {
  if (scope === 'user' && sessionId !== null)
    return failure('invalid_request', 'a fact about the user belongs to no session: leave `session_id` out')
  if (scope === 'session' && sessionId === null)
    return failure('invalid_request', 'a fact of a session needs its `session_id`')
  if (sessionId !== null && !ownsSession) return failure('session_not_found', 'there is no such session')
  if (at === null) return null
  if (!at.own) return ID_TAKEN
  const moved = at.scope !== scope || (at.scope === 'session' && at.sessionId !== sessionId)
  return moved
    ? failure('invalid_request', 'a fact keeps its scope and its session; forget it and make a new one', {
        scope: at.scope,
        ...(at.scope === 'session' ? { session_id: at.sessionId } : {}),
      })
    : null
}
