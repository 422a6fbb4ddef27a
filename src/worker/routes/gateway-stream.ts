import { Hono } from 'hono'
import { createMiddleware } from 'hono/factory'
import { failure } from '../../protocol/execution/errors.ts'
import { isLiveToken } from '../../storage/d1/accounts.ts'
import { openDatabase } from '../../storage/d1/database.ts'
import { ownGateway } from '../../storage/d1/gateways.ts'
import { closeTokens } from '../close-tokens.ts'
import type { AppEnv } from '../context.ts'
import { failed } from '../errors.ts'
import { identify } from '../middleware/identify.ts'
import { isSocketUpgrade } from '../socket-origin.ts'
import { forwardSocket, refuseSocket, upgradeRequired } from '../socket-upgrade.ts'

/**
 * Where programs with a token of the API follow their own gateway (D38): the frames of the remote protocol without its
 * handshake. The socket lives until it is closed or the token is signed out.
 */
export const gatewayStream = new Hono<AppEnv>()

/** Nothing is read for a request that may not open a socket anyway. */
const socketOnly = createMiddleware<AppEnv>(async (c, next) => {
  if (!isSocketUpgrade(c.req.raw)) {
    return upgradeRequired(
      c,
      'a WebSocket is opened here, with `Upgrade: websocket` and the token as `Authorization: Bearer`',
    )
  }
  const refused = refuseSocket(c)
  if (refused) return failed(c, refused)
  await next()
})

gatewayStream.get('/', socketOnly, identify, async (c) => {
  const { userId, tokenId, tokenExpiresAtMs } = c.var.identity
  const found = await ownGateway(openDatabase(c.env.DB), userId, Date.now())
  if (found === null) return failed(c, failure('invalid_token', 'this account is gone'))
  const answer = await forwardSocket(c, found, { tokenId, tokenExpiresAtMs })
  // A sign-out in between found no socket to close.
  if (answer.status === 101 && !(await isLiveToken(openDatabase(c.env.DB), tokenId, Date.now())))
    await closeTokens(c, userId, [tokenId])
  return answer
})
