import type { Context } from 'hono'
import { createMiddleware } from 'hono/factory'
import { MAX_FACTS_PER_SCOPE } from '../../core/memory.ts'
import { type Failure, failure } from '../../protocol/execution/errors.ts'
import { parseSessionId } from '../../protocol/execution/ids.ts'
import { selectFirstUser, selectToken } from '../../storage/d1/accounts.ts'
import { openDatabase } from '../../storage/d1/database.ts'
import { orFault } from '../../storage/d1/fault.ts'
import { selectFacts, toUserFact } from '../../storage/d1/memory.ts'
import { selectOwnedSession } from '../../storage/d1/sessions.ts'
import { digestOf } from '../../storage/digest.ts'
import type { AppEnv, Identity } from '../context.ts'
import type { Env } from '../env.ts'
import { failed } from '../errors.ts'
import { sameDigest, tokenIdOf } from '../secrets.ts'

/** Nobody's id: keeps the batch one shape where the path names no session. */
const NO_SESSION = '00000000-0000-0000-0000-000000000000'
/** Requests that are decided with what is remembered of the user (EC 16). */
const WITH_MEMORY = /\/(execute|stream|continue|preview)$/

/**
 * Bearer authentication (EC 1.1, 23). Token, user, the ownership of the session in the path and, where a turn is to be
 * decided, what is remembered of the user are one round trip to D1, and the token's row is read each time, so signing
 * out holds at once (D25, D30).
 */
export const identify = createMiddleware<AppEnv>(async (c, next) => {
  // Groups of routes under one path each ask for it, and one reading is enough.
  if (c.get('identity') !== undefined) return next()
  const sessionParam = c.req.param('session_id')
  const identity = await readIdentity(c.env, c.req.header('Authorization'), {
    sessionParam,
    maxFacts: sessionParam !== undefined && WITH_MEMORY.test(c.req.path) ? MAX_FACTS_PER_SCOPE : 0,
  })
  if ('code' in identity) return failed(c, identity)
  c.set('identity', identity)
  await next()
})

/** A session in the path: its syntax, then that it is the user's; a foreign one looks like none (EC 2). */
export function checkSession(c: Context<AppEnv>): Failure | null {
  const sessionId = parseSessionId(c.req.param('session_id') ?? '')
  if (sessionId === null) return failure('invalid_session_id', 'the session id in the path is no UUID')
  if (!c.var.identity.ownsSession) return failure('session_not_found', 'there is no such session')
  c.set('sessionId', sessionId)
  return null
}

/** `checkSession` for routes without a body; with one, the body is decoded first (EC 1.3). */
export const ownSession = createMiddleware<AppEnv>(async (c, next) => {
  const refused = checkSession(c)
  if (refused) return failed(c, refused)
  await next()
})

async function readIdentity(
  env: Env,
  header: string | undefined,
  { sessionParam, maxFacts }: { sessionParam: string | undefined; maxFacts: number },
): Promise<Identity | Failure> {
  if (header === undefined)
    return failure('missing_credentials', 'send `Authorization: Bearer <session token>`')
  const invalid = failure('invalid_token', 'the session token is not valid; sign in for a new one')
  if (!header.startsWith('Bearer ')) return invalid
  const token = header.slice('Bearer '.length)
  const tokenId = tokenIdOf(token)
  if (tokenId === null) return invalid
  const db = openDatabase(env.DB)
  const sessionId = (sessionParam === undefined ? null : parseSessionId(sessionParam)) ?? NO_SESSION
  const [[stored], owned, [first], facts] = await orFault(
    db.batch([
      selectToken(db, tokenId),
      selectOwnedSession(db, sessionId, tokenId),
      selectFirstUser(db),
      selectFacts(db, tokenId, maxFacts),
    ]),
  )
  if (!stored || !sameDigest(await digestOf(token), stored.digest)) return invalid
  // Only the holder of the genuine token is told that it ran out or was revoked.
  if (stored.revokedAt !== null)
    return failure('token_revoked', 'this session token was revoked; sign in again')
  if (stored.expiresAt <= Date.now())
    return failure('token_expired', 'this session token has expired; sign in again')
  return {
    userId: stored.userId,
    tokenId,
    tokenExpiresAtMs: stored.expiresAt,
    firstAccount: first?.id === stored.userId,
    ownsSession: owned.length > 0,
    facts: facts.map(toUserFact),
  }
}
