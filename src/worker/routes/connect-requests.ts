import { Hono } from 'hono'
import type {
  AcceptConnectRequestResponse,
  DenyConnectRequestResponse,
  ListConnectRequestsResponse,
  ListenResponse,
} from '../../protocol/execution/devices.ts'
import { toWireTime } from '../../protocol/time.ts'
import type { AppEnv } from '../context.ts'
import { failed } from '../errors.ts'
import { identify } from '../middleware/identify.ts'
import { openOwnGateway } from '../own-gateway.ts'
import { badQuery } from '../query.ts'
import { parseShortId } from '../short-id.ts'

/** Devices that ask to be paired; they may ask only while their owner listens (D41). */
export const connectRequests = new Hono<AppEnv>()

const NO_ID = badQuery('the request id in the path is not 16 hex digits')

connectRequests.use(identify)

connectRequests.get('/', async (c) => {
  const own = await openOwnGateway(c)
  if (!own.ok) return failed(c, own.error)
  const { who, rpc } = own.value
  const waiting = await rpc.connectRequests(who)
  return c.json({
    requests: waiting.map(({ requestId, deviceName, deviceKind, platform, expiresAtMs }) => ({
      request_id: requestId,
      device_name: deviceName,
      device_kind: deviceKind,
      platform: platform ?? 'unknown',
      expires_at: toWireTime(expiresAtMs),
    })),
  } satisfies ListConnectRequestsResponse)
})

connectRequests.post('/listen', async (c) => {
  const own = await openOwnGateway(c)
  if (!own.ok) return failed(c, own.error)
  const { who, rpc } = own.value
  return c.json({ expires_at: toWireTime(await rpc.listen(who)) } satisfies ListenResponse)
})

connectRequests.post('/:request_id/accept', async (c) => {
  const requestId = parseShortId(c.req.param('request_id'))
  if (requestId === null) return failed(c, NO_ID)
  const own = await openOwnGateway(c)
  if (!own.ok) return failed(c, own.error)
  const { who, rpc } = own.value
  const accepted = await rpc.acceptRequest(who, requestId)
  if (!accepted.ok) return failed(c, accepted.error)
  const { code, expiresAtMs } = accepted.value
  return c.json({ code, expires_at: toWireTime(expiresAtMs) } satisfies AcceptConnectRequestResponse)
})

connectRequests.post('/:request_id/deny', async (c) => {
  const requestId = parseShortId(c.req.param('request_id'))
  if (requestId === null) return failed(c, NO_ID)
  const own = await openOwnGateway(c)
  if (!own.ok) return failed(c, own.error)
  const { who, rpc } = own.value
  const denied = await rpc.denyRequest(who, requestId)
  if (!denied.ok) return failed(c, denied.error)
  return c.json({ denied: true } satisfies DenyConnectRequestResponse)
})
