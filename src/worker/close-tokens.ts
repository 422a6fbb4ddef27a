import type { Context } from 'hono'
import { errorName } from '../protocol/error-name.ts'
import type { AppEnv } from './context.ts'
import { gatewayStub } from './env.ts'

/** A gateway that could not be reached is asked again after so long, and then after twice that. */
const FIRST_RETRY_MS = 1_000
const RETRIES = 3

/**
 * Closes the sockets that were opened with tokens of this user which have ended (D38). They are revoked already, so that
 * none is opened again. Never throws: a gateway that cannot be reached is tried again behind the answer.
 */
export async function closeTokens(
  c: Context<AppEnv>,
  userId: string,
  tokenIds: readonly string[],
): Promise<void> {
  if (tokenIds.length === 0) return
  const gateway = gatewayStub(c.env, userId)
  const attempt = async (): Promise<boolean> => {
    try {
      await Promise.all(tokenIds.map((tokenId) => gateway.closeToken(userId, tokenId)))
      return true
    } catch (error) {
      console.error('the sockets of ended tokens are not closed yet:', errorName(error))
      return false
    }
  }
  if (await attempt()) return
  c.executionCtx.waitUntil(
    (async () => {
      for (let retry = 0; retry < RETRIES; retry++) {
        await scheduler.wait(FIRST_RETRY_MS * 2 ** retry)
        if (await attempt()) return
      }
    })(),
  )
}
