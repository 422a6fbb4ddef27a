import { Hono } from 'hono'
import type { DeleteAccountResponse } from '../../protocol/execution/account.ts'
import { failure } from '../../protocol/execution/errors.ts'
import { markUserDeleted } from '../../storage/d1/accounts.ts'
import { openDatabase } from '../../storage/d1/database.ts'
import { finishAccountDeletion } from '../account-deletion.ts'
import { checkApiKey } from '../api-key.ts'
import type { AppEnv } from '../context.ts'
import { gatewayStub, sessionStub } from '../env.ts'
import { failed } from '../errors.ts'
import { identify } from '../middleware/identify.ts'

/** Work after an answer ends when the platform says so, after 30 s; what is left is for the next clean-up. */
const AFTER_ANSWER_MS = 20_000

export const account = new Hono<AppEnv>()

/**
 * Deletes the account. A token alone is not enough, since it may lie in many places: the key must come with it. Nothing
 * of the account answers from the moment it is marked; taking it away follows the answer, and the hourly clean-up goes on
 * with what that leaves.
 */
account.delete('/me', identify, async (c) => {
  const key = c.req.header('X-Smista-Api-Key')
  if (key === undefined) {
    return failed(
      c,
      failure(
        'missing_credentials',
        'send an API key of the account as `X-Smista-Api-Key`, beside the token',
      ),
    )
  }
  const db = openDatabase(c.env.DB)
  const { userId } = c.var.identity
  const known = await checkApiKey(db, key)
  if (known?.userId !== userId) return failed(c, failure('invalid_api_key', 'the API key is not valid'))
  await markUserDeleted(db, userId, Date.now())
  c.executionCtx.waitUntil(
    finishAccountDeletion(
      {
        db,
        session: (id) => sessionStub(c.env, id),
        gateway: (id) => gatewayStub(c.env, id),
        now: Date.now,
      },
      userId,
      Date.now() + AFTER_ANSWER_MS,
    ),
  )
  return c.json({ deleted: true } satisfies DeleteAccountResponse)
})
