import { Hono } from 'hono'
import type {
  ListDevicesResponse,
  RenameDeviceResponse,
  RevokeDeviceResponse,
} from '../../protocol/execution/devices.ts'
import { type Failure, failure } from '../../protocol/execution/errors.ts'
import { openDatabase } from '../../storage/d1/database.ts'
import { dropNote, noteRevocation } from '../../storage/d1/gateways.ts'
import { readBody } from '../body.ts'
import type { AppEnv } from '../context.ts'
import { toDeviceSummary } from '../device-summary.ts'
import { failed } from '../errors.ts'
import { identify } from '../middleware/identify.ts'
import { carryOut, openOwnGateway } from '../own-gateway.ts'
import { badQuery } from '../query.ts'
import { parseShortId } from '../short-id.ts'

/** The devices of an account: seen, named and revoked by its owner (U32). */
export const devices = new Hono<AppEnv>()

const NO_ID = badQuery('the device id in the path is not 16 hex digits')
const NO_DEVICE: Failure = { ...failure('invalid_request', 'there is no such device'), status: 404 }

devices.use(identify)

devices.get('/', async (c) => {
  const own = await openOwnGateway(c)
  if (!own.ok) return failed(c, own.error)
  const { who, rpc, noted } = own.value
  const listed = (await rpc.devices(who)).flatMap((device) => {
    const reason = noted.get(device.deviceId)
    if (reason === 'revoked') return []
    return toDeviceSummary(reason === undefined ? device : { ...device, revokedReason: reason })
  })
  return c.json({ devices: listed } satisfies ListDevicesResponse)
})

devices.put('/:device_id', async (c) => {
  // Loaded when it is needed: a Worker that starts has no time to build shapes.
  const { RenameDeviceRequest } = await import('../../protocol/execution/devices.ts')
  const body = await readBody(c, RenameDeviceRequest)
  if (!body.ok) return failed(c, body.error)
  const deviceId = parseShortId(c.req.param('device_id'))
  if (deviceId === null) return failed(c, NO_ID)
  const own = await openOwnGateway(c)
  if (!own.ok) return failed(c, own.error)
  const { who, rpc, noted } = own.value
  if (noted.get(deviceId) === 'revoked') return failed(c, NO_DEVICE)
  const renamed = await rpc.renameDevice(who, deviceId, body.value.value.name)
  if (!renamed.ok) return failed(c, renamed.error)
  return c.json({ device: toDeviceSummary(renamed.value) } satisfies RenameDeviceResponse)
})

devices.delete('/:device_id', async (c) => {
  const deviceId = parseShortId(c.req.param('device_id'))
  if (deviceId === null) return failed(c, NO_ID)
  const own = await openOwnGateway(c)
  if (!own.ok) return failed(c, own.error)
  const { who, rpc, noted } = own.value
  const { userId } = who
  const db = openDatabase(c.env.DB)
  try {
    const revoked = await rpc.revokeDevice(who, deviceId)
    if (noted.has(deviceId)) {
      // What stays noted is only applied once more.
      await dropNote(db, userId, deviceId).catch((error) => console.error('a note is not deleted:', error))
    } else if (!revoked.ok) return failed(c, revoked.error)
  } catch (error) {
    console.error(`revoking device ${deviceId} failed, so it is noted:`, error)
    try {
      await noteRevocation(db, { userId, deviceId, reason: 'revoked', nowMs: Date.now() })
    } catch (also) {
      console.error(`and noting it failed:`, also)
      return failed(c, NOT_STORED)
    }
    c.executionCtx.waitUntil(carryOut({ db, rpc }, who, deviceId))
  }
  return c.json({ revoked: true } satisfies RevokeDeviceResponse)
})

const NOT_STORED = failure(
  'storage_error',
  'the revocation could not be stored anywhere, so the device may be able to come back; revoke it again until this ' +
    'succeeds',
)
