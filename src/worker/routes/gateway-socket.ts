import { type Context, Hono } from 'hono'
import { type Failure, failure } from '../../protocol/execution/errors.ts'
import { openDatabase } from '../../storage/d1/database.ts'
import { type FoundGateway, findFirstGateway, findGateway } from '../../storage/d1/gateways.ts'
import type { AppEnv } from '../context.ts'
import { failed } from '../errors.ts'
import { frontPage } from '../front-page.ts'
import { isSocketUpgrade } from '../socket-origin.ts'
import { forwardSocket, refuseSocket, upgradeRequired } from '../socket-upgrade.ts'

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
  if (!isSocketUpgrade(c.req.raw)) return upgradeRequired(c, DEVICES_ONLY)
  const gatewayId = c.req.param('gateway_id')
  return upgrade(c, async () =>
    /^[0-9a-f]{32}$/.test(gatewayId) ? findGateway(openDatabase(c.env.DB), gatewayId) : null,
  )
})

async function upgrade(c: Context<AppEnv>, find: () => Promise<FoundGateway | null>): Promise<Response> {
  const refused = refuseSocket(c)
  if (refused) return failed(c, refused)
  const found = await find()
  return found === null ? failed(c, NO_GATEWAY) : forwardSocket(c, found)
}

const DEVICES_ONLY = 'devices open a WebSocket here, with `Upgrade: websocket`; there is nothing else to see'

const NO_GATEWAY: Failure = { ...failure('invalid_request', 'there is no such gateway here'), status: 404 }
