import { Hono } from 'hono'
import type {
  BootstrapResponse,
  MeResponse,
  SignInResponse,
  SignOutResponse,
} from '../../protocol/execution/auth.ts'
import { failure } from '../../protocol/execution/errors.ts'
import { toWireTime } from '../../protocol/time.ts'
import { createToken, createUser, revokeToken } from '../../storage/d1/accounts.ts'
import { openDatabase } from '../../storage/d1/database.ts'
import { digestOf } from '../../storage/digest.ts'
import { newId } from '../../storage/ids.ts'
import { checkApiKey } from '../api-key.ts'
import { closeTokens } from '../close-tokens.ts'
import type { AppEnv } from '../context.ts'
import { isLocalDev, numberVar } from '../env.ts'
import { failed } from '../errors.ts'
import { identify } from '../middleware/identify.ts'
import { makeApiKey, makeToken, sameDigest } from '../secrets.ts'

/** A day (EC 23). */
const DEFAULT_TOKEN_TTL_SECONDS = 86_400

export const auth = new Hono<AppEnv>()

/** Creates an account. Open on a local router alone; a deployment asks for its bootstrap token (D43). */
auth.post('/bootstrap', async (c) => {
  const origin = c.req.header('Origin')
  const host = c.req.header('Host') ?? new URL(c.req.url).host
  if (origin !== undefined && !isOwnOrigin(origin, host)) {
    return failed(c, failure('forbidden', 'another web site may not create an account here'))
  }
  const expected = c.env.BOOTSTRAP_TOKEN
  if (expected) {
    const presented = c.req.header('X-Smista-Bootstrap-Token') ?? ''
    if (!sameDigest(await digestOf(presented), await digestOf(expected))) {
      return failed(c, failure('forbidden', 'creating an account needs this router’s bootstrap token'))
    }
  } else if (!isLocalDev(c.env)) {
    return failed(
      c,
      failure(
        'forbidden',
        'creating accounts is switched off: the secret BOOTSTRAP_TOKEN is not set on this router',
      ),
    )
  }
  const userId = newId()
  const key = makeApiKey(userId)
  const keyDigest = await digestOf(key)
  await createUser(openDatabase(c.env.DB), { userId, keyId: newId(), keyDigest, nowMs: Date.now() })
  return c.json({ user_id: userId, api_key: key } satisfies BootstrapResponse, 201)
})

/** Trades an API key for a session token. Every wrong key gets the same answer (EC 2.3). */
auth.post('/sign-in', async (c) => {
  const key = c.req.header('X-Smista-Api-Key')
  if (key === undefined)
    return failed(c, failure('missing_credentials', 'send the API key as `X-Smista-Api-Key`'))
  const db = openDatabase(c.env.DB)
  const invalid = failure('invalid_api_key', 'the API key is not valid')
  const known = await checkApiKey(db, key)
  if (known === null) return failed(c, invalid)
  const { userId, keyId: apiKeyId } = known
  const createdAt = Date.now()
  const expiresAt = createdAt + numberVar(c.env.TOKEN_TTL_SECONDS, DEFAULT_TOKEN_TTL_SECONDS) * 1000
  const id = newId()
  const token = makeToken(id)
  const digest = await digestOf(token)
  const made = await createToken(db, { id, userId, digest, apiKeyId, createdAt, expiresAt })
  if (!made) return failed(c, invalid)
  return c.json({ token, expires_at: toWireTime(expiresAt) } satisfies SignInResponse)
})

auth.post('/sign-out', identify, async (c) => {
  const { tokenId, userId } = c.var.identity
  await revokeToken(openDatabase(c.env.DB), { tokenId, userId, nowMs: Date.now() })
  await closeTokens(c, userId, [tokenId])
  return c.json({ revoked: true } satisfies SignOutResponse)
})

auth.get('/me', identify, (c) => c.json({ user_id: c.var.identity.userId } satisfies MeResponse))

function isOwnOrigin(origin: string, host: string): boolean {
  try {
    return new URL(origin).host === host
  } catch {
    return false
  }
}
