import { Hono } from 'hono'
import { makePairingQr } from '../../core/gateway/pairing-qr.ts'
import type { OpenPairingResponse } from '../../protocol/execution/devices.ts'
import { toWireTime } from '../../protocol/time.ts'
import type { AppEnv } from '../context.ts'
import { failed } from '../errors.ts'
import { parseRoutes } from '../lan-routes.ts'
import { identify } from '../middleware/identify.ts'
import { openOwnGateway } from '../own-gateway.ts'
import { addressOfRouter } from '../where.ts'

/** Opening pairing (RF 4): a code to type, and a credential for a QR code. Both are shown once. */
export const pairing = new Hono<AppEnv>()

pairing.post('/', identify, async (c) => {
  const own = await openOwnGateway(c)
  if (!own.ok) return failed(c, own.error)
  const { who, rpc } = own.value
  const { code, credential, expiresAtMs } = await rpc.openPairing(who)
  const { gatewayId } = who
  // Devices that reach this router over the local network cannot use the address that its owner uses.
  const [first, ...others] = parseRoutes(c.env.LAN_ROUTES).map(({ address }) => address)
  const here = addressOfRouter(c)
  const socket = here.scheme === 'https:' ? `wss://${here.host}` : `ws://${here.host}`
  const qr = makePairingQr({
    gatewayId,
    credential,
    addresses: first === undefined ? [here.dial] : [first, ...others],
    url: `${first === undefined ? socket : `ws://${first}`}/g/${gatewayId}`,
    hostName: c.env.HOST_NAME || null,
  })
  return c.json(
    {
      code,
      credential,
      gateway_id: gatewayId,
      qr,
      // `/` is the first account's, for ever (D42).
      ...(c.var.identity.firstAccount ? {} : { only_by_url: true as const }),
      expires_at: toWireTime(expiresAtMs),
    } satisfies OpenPairingResponse,
    201,
  )
})
