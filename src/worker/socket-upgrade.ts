import type { Context } from 'hono'
import { networkOf } from '../core/gateway/addresses.ts'
import { hostLabel } from '../core/gateway/labels.ts'
import { type Failure, failure } from '../protocol/execution/errors.ts'
import { MAX_HOST_NAME_CHARS } from '../protocol/remote/limits.ts'
import type { FoundGateway } from '../storage/d1/gateways.ts'
import { mayUseDeployment } from './caller.ts'
import type { AppEnv } from './context.ts'
import { gatewayObject, isLocalDev } from './env.ts'
import { parseRoutes } from './lan-routes.ts'
import { allowedOrigins, mayOpenSocket } from './origins.ts'
import { isExposed, peerAddress, withSocketOrigin } from './socket-origin.ts'
import { addressOfRouter } from './where.ts'

/** What every socket to a gateway has in common, whoever opens it: the door, and what the gateway is told of it. */

/** Something other than an upgrade where only sockets are. */
export const upgradeRequired = (c: Context<AppEnv>, message: string): Response =>
  c.json({ error: failure('invalid_request', message) }, 426, {
    Upgrade: 'websocket',
    Connection: 'Upgrade',
  })

/** Why no socket may be opened from there (U34, D42); null when one may. Nothing is read for it. */
export function refuseSocket(c: Context<AppEnv>): Failure | null {
  const { scheme, origin } = addressOfRouter(c)
  const allowed = allowedOrigins(c.env.ALLOWED_ORIGINS)
  if (!mayOpenSocket(c.req.header('Origin'), { ownOrigin: origin, allowed })) {
    return failure('forbidden', 'another web site may not open a socket here')
  }
  if (isExposed(scheme, peerAddress(c.req.raw, isLocalDev(c.env)))) {
    const message =
      'this connection is not encrypted, and it comes from a public network; use wss:// instead of ws://'
    return failure('forbidden', message)
  }
  return null
}

/** Hands the upgrade to the gateway. `token`: it came with a token of the API (D38). */
export function forwardSocket(
  c: Context<AppEnv>,
  { firstAccount, ...found }: FoundGateway,
  token?: { tokenId: string; tokenExpiresAtMs: number },
): Promise<Response> {
  const request = withSocketOrigin(c.req.raw, {
    ...found,
    address: networkOf(peerAddress(c.req.raw, isLocalDev(c.env))),
    routes: parseRoutes(c.env.LAN_ROUTES),
    hostName: hostLabel(c.env.HOST_NAME ?? '', MAX_HOST_NAME_CHARS) || null,
    deploymentProviders: mayUseDeployment(c.env, firstAccount),
    ...token,
  })
  return gatewayObject(c.env, found.userId).fetch(request)
}
