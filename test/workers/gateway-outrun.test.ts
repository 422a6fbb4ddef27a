import { expect, test } from 'vitest'
import { Authentication } from '../../src/gateway/authentication.ts'
import { Devices } from '../../src/gateway/devices.ts'
import type { GatewayParts } from '../../src/gateway/parts.ts'
import { deriveSuccessor } from '../../src/gateway/secrets.ts'
import type { OpenState } from '../../src/gateway/sockets.ts'
import { digestOf } from '../../src/storage/digest.ts'
import { type StoredDevice, saveDevice } from '../../src/storage/gateway/devices.ts'
import { migrateGateway } from '../../src/storage/gateway/migrations.ts'
import { insideGateway } from '../support/workers/gateway-object.ts'

const TOKEN = 'the token that two routes show'
const SECRET = 'the secret of the first rotation'
const ACCESS_EXPIRES_AT = '2030-01-01T10:15:00.000Z'

const paired: StoredDevice = {
  deviceId: '0011223344556677',
  name: 'Ada',
  kind: 'phone',
  platform: null,
  hostDigest: null,
  installDigest: null,
  pairedAtMs: 0,
  lastSeenAtMs: null,
  credential: { k: 'rotating', family: { current: await digestOf(TOKEN), previous: null, access: null } },
  revokedReason: null,
  endedAtMs: null,
}

test('[U33][D40] a frame that another one outruns in its last moment gets the answer of that one', async () => {
  const first = await deriveSuccessor(TOKEN, SECRET)
  const rotated: StoredDevice = {
    ...paired,
    credential: {
      k: 'rotating',
      family: {
        current: await digestOf(first.refreshToken),
        previous: { digest: await digestOf(TOKEN), rotationId: first.rotationId, secret: SECRET },
        access: { digest: await digestOf(first.accessToken), expiresAtMs: Date.parse(ACCESS_EXPIRES_AT) },
      },
    },
  }

  const sent = await insideGateway('outrun', async (sql) => {
    migrateGateway(sql)
    saveDevice(sql, paired)
    const state: OpenState = {
      k: 'new',
      id: 'second',
      address: '10.0.0.1',
      greeting: { routes: [], hostName: null },
      openedAtMs: 0,
    }
    const frames: unknown[] = []
    let isOutrun = false
    const sockets = {
      // Looked at once all is computed, and before anything is decided: here the other frame is served.
      stateOf: () => {
        if (!isOutrun) saveDevice(sql, rotated)
        isOutrun = true
        return state
      },
      held: () => [],
      open: () => [],
      enter: () => {},
      send: (_: unknown, frame: unknown) => frames.push(frame) > 0,
      end: (_: unknown, farewell: unknown) => frames.push(farewell),
    }
    const identity = () => ({ userId: 'outrun', gatewayId: 'g', instanceId: 'i', listenUntilMs: null })
    const parts = { sql, sockets, identity } as unknown as GatewayParts
    const [socket] = Object.values(new WebSocketPair())
    if (!socket) throw new Error('a pair has two ends')
    await new Authentication(parts, new Devices(parts)).authenticate(socket, state, {
      type: 'authenticate',
      protocol_version: 1,
      device_id: paired.deviceId,
      refresh_token: TOKEN,
    })
    return frames
  })

  expect(sent).toEqual([
    expect.objectContaining({
      type: 'authenticated',
      refresh_token: first.refreshToken,
      access_token: first.accessToken,
      rotation_id: first.rotationId,
      access_expires_at: ACCESS_EXPIRES_AT,
    }),
  ])
})
