import { Hono } from 'hono'
import type {
  CreateApiKeyResponse,
  ListApiKeysResponse,
  RevokeApiKeyResponse,
} from '../../protocol/execution/account.ts'
import { failure } from '../../protocol/execution/errors.ts'
import { parseSessionId } from '../../protocol/execution/ids.ts'
import { toWireTime } from '../../protocol/time.ts'
import { createKey, listKeys, revokeKey, tokensOfKey } from '../../storage/d1/accounts.ts'
import { openDatabase } from '../../storage/d1/database.ts'
import { digestOf } from '../../storage/digest.ts'
import { newId } from '../../storage/ids.ts'
import { MAX_API_KEYS } from '../../storage/limits.ts'
import { closeTokens } from '../close-tokens.ts'
import type { AppEnv } from '../context.ts'
import { failed } from '../errors.ts'
import { identify } from '../middleware/identify.ts'
import { badQuery } from '../query.ts'
import { makeApiKey } from '../secrets.ts'

/** The API keys of an account (EC 23). A key itself is shown once, when it is made. */
export const keys = new Hono<AppEnv>()

keys.use(identify)

keys.get('/', async (c) => {
  const { userId, tokenId } = c.var.identity
  const listed = await listKeys(openDatabase(c.env.DB), userId, tokenId)
  return c.json({
    keys: listed.map(({ id, createdAtMs, lastUsedAtMs, current }) => ({
      id,
      created_at: toWireTime(createdAtMs),
      ...(lastUsedAtMs === null ? {} : { last_used_at: toWireTime(lastUsedAtMs) }),
      current,
    })),
  } satisfies ListApiKeysResponse)
})

keys.post('/', async (c) => {
  const { userId } = c.var.identity
  const id = newId()
  const key = makeApiKey(userId)
  const nowMs = Date.now()
  const row = { id, userId, digest: await digestOf(key), nowMs }
  if (!(await createKey(openDatabase(c.env.DB), row, MAX_API_KEYS))) {
    const full = `there are ${MAX_API_KEYS} working API keys already; revoke one first`
    return failed(c, failure('invalid_request', full, { max_keys: MAX_API_KEYS }))
  }
  return c.json({ id, api_key: key, created_at: toWireTime(nowMs) } satisfies CreateApiKeyResponse, 201)
})

keys.delete('/:key_id', async (c) => {
  const keyId = parseSessionId(c.req.param('key_id'))
  if (keyId === null) return failed(c, badQuery('the key id in the path is no UUID'))
  const { userId } = c.var.identity
  const db = openDatabase(c.env.DB)
  const nowMs = Date.now()
  const revocation = await revokeKey(db, { keyId, userId, nowMs })
  switch (revocation) {
    case 'revoked':
      await closeTokens(c, userId, await tokensOfKey(db, { keyId, userId }))
      return c.json({ revoked: true } satisfies RevokeApiKeyResponse)
    case 'last':
      return failed(
        c,
        failure(
          'invalid_request',
          'this is the last working API key, and without one nobody could sign in; make another first',
        ),
      )
    case 'unknown':
      return failed(c, { ...failure('invalid_request', 'there is no such working API key'), status: 404 })
  }
})
