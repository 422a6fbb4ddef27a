import { type Context, Hono } from 'hono'
import { networkOf } from '../../core/gateway/addresses.ts'
import { hostLabel } from '../../core/gateway/labels.ts'
import { type Failure, failure } from '../../protocol/execution/errors.ts'
import { MAX_HOST_NAME_CHARS } from '../../protocol/remote/limits.ts'
import { openDatabase } from '../../storage/d1/database.ts'
import { type FoundGateway, findFirstGateway, findGateway } from '../../storage/d1/gateways.ts'
import type { AppEnv } from '../context.ts'
import { gatewayObject, isLocalDev } from '../env.ts'
import { failed } from '../errors.ts'
import { frontPage } from '../front-page.ts'
import { parseRoutes } from '../lan-routes.ts'
import { allowedOrigins, mayOpenSocket } from '../origins.ts'
import { isExposed, isSocketUpgrade, peerAddress, withSocketOrigin } from '../socket-origin.ts'
import { addressOfRouter } from '../where.ts'

/**
 * Where devices dial (remote protocol, "Connection"): `/` is the gateway of the first account, `/g/<gateway_id>` any
 * account's (D42). Nothing is read before the request has shown that it may open a socket, and no object is touched
 * before its gateway is known (D41). Who the device is, is the gateway's matter.
 */
export const gatewaySocket = new Hono<AppEnv>()

gatewaySocket.get('/', (c) =>
  isSocketUpgrade(c.req.raw) ? upgrade(c, () => findFirstGateway(openDatabase(c.env.DB))) : frontPage(c),
)

gatewaySocket.get('/g/:gateway_id', async (c) => {
  if (!isSocketUpgrade(c.req.raw)) {
    const message = 'devices open a WebSocket here, with `Upgrade: websocket`; there is nothing else to see'
    return c.json({ error: failure('invalid_request', message) }, 426, {
      Upgrade: 'websocket',
      Connection: 'Upgrade',
    })
  }
  const gatewayId = c.req.param('gateway_id')
  return upgrade(c, async () =>
    /^[0-9a-f]{32}$/.test(gatewayId) ? findGateway(openDatabase(c.env.DB), gatewayId) : null,
  )
})

async function upgrade(c: Context<AppEnv>, find: () => Promise<FoundGateway | null>): Promise<Response> {
  const { scheme, origin } = addressOfRouter(c)
  const peer = peerAddress(c.req.raw, isLocalDev(c.env))
  const allowed = allowedOrigins(c.env.ALLOWED_ORIGINS)
  if (!mayOpenSocket(c.req.header('Origin'), { ownOrigin: origin, allowed })) {
    return failed(c, failure('forbidden', 'another web site may not open a socket here'))
  }
  if (isExposed(scheme, peer)) {
    const message =
      'this connection is not encrypted, and it comes from a public network; use wss:// instead of ws://'
    return failed(c, failure('forbidden', message))
  }
  const found = await find()
  if (found === null) return failed(c, NO_GATEWAY)
  const request = withSocketOrigin(c.req.raw, {
    ...found,
    address: networkOf(peer),
    routes: parseRoutes(c.env.LAN_ROUTES),
    hostName: hostLabel(c.env.HOST_NAME ?? '', MAX_HOST_NAME_CHARS) || null,
  })
  return gatewayObject(c.env, found.userId).fetch(request)
}

const NO_GATEWAY: Failure = { ...failure('invalid_request', 'there is no such gateway here'), status: 404 }
