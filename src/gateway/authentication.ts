import { sameDigest } from '../core/gateway/codes.ts'
import { admitDevice } from '../core/gateway/connections.ts'
import {
  acknowledged,
  presentAccess,
  presentRefresh,
  rotated,
  type TokenFamily,
} from '../core/gateway/rotation.ts'
import type { AuthenticateRequest } from '../protocol/remote/handshake-request.ts'
import type { Authenticated } from '../protocol/remote/handshake-response.ts'
import { ACCESS_TOKEN_TTL_MS } from '../protocol/remote/limits.ts'
import { toWireTime } from '../protocol/time.ts'
import { digestOf } from '../storage/digest.ts'
import { isRetired, retire, type StoredDevice, saveDevice } from '../storage/gateway/devices.ts'
import type { Devices } from './devices.ts'
import { mannerOf } from './manner.ts'
import { type GatewayParts, routerFields } from './parts.ts'
import { deriveSuccessor, newSecret, type Successor } from './secrets.ts'
import { BUSY_CONNECTIONS, type Farewell, type Unauthenticated } from './sockets.ts'

/** Unknown, revoked, expired, and the wrong token: one answer (remote protocol, "The bare error frame"). */
const UNAUTHORIZED: Farewell = {
  code: 'unauthorized',
  message: 'this device is not paired here any more; pair it again',
}
const ACCESS_EXPIRED: Farewell = {
  code: 'access_expired',
  message: 'the access token is not valid any more; authenticate with the refresh token',
}
const TOKEN_REPLAYED: Farewell = {
  code: 'token_replayed',
  message: 'a retired token was presented, so this pairing has ended; pair the device again',
}

/** Compared with where there is no device: a guess of an id takes no shorter way. */
const NOBODYS_DIGEST = '0'.repeat(64)
const NOBODYS_TOKEN = 'none'

type TokenFields = Pick<Authenticated, 'refresh_token' | 'access_token' | 'access_expires_at' | 'rotation_id'>

/** What a device that proved itself is told, and what has to be stored with it. */
type Proof = {
  device: StoredDevice
  fields: TokenFields
  expiresAtMs: number | null
  retired: readonly string[]
}

/** Devices that come back (remote protocol, "Rotating tokens"; RF 6). */
export class Authentication {
  readonly #parts: GatewayParts
  readonly #devices: Devices

  constructor(parts: GatewayParts, devices: Devices) {
    this.#parts = parts
    this.#devices = devices
  }

  async authenticate(socket: WebSocket, state: Unauthenticated, request: AuthenticateRequest): Promise<void> {
    const { sql, sockets } = this.#parts
    const decide = await this.#prepare(request)
    if (sockets.stateOf(socket).k === 'closed') return
    // From here on nothing is waited for: what is decided holds until it is stored.
    const nowMs = Date.now()
    const admitted = admitDevice(sockets.held(), request.device_id, nowMs)
    const proof = decide(nowMs, admitted.ok)
    if (proof === 'outrun') return this.authenticate(socket, state, request)
    if (proof === 'replay') {
      console.warn(`remote.token_replayed device=${request.device_id}`)
      await this.#devices.end(request.device_id, 'token_replayed')
      return sockets.end(socket, TOKEN_REPLAYED)
    }
    if ('code' in proof) return sockets.end(socket, proof)
    if (!admitted.ok) return sockets.end(socket, BUSY_CONNECTIONS)
    const device = { ...proof.device, lastSeenAtMs: nowMs }
    sql.transaction(() => {
      saveDevice(sql, device)
      retire(sql, device.deviceId, proof.retired)
    })
    const manner = mannerOf(request)
    const { deviceId } = device
    sockets.enter(socket, state, { deviceId, ...manner }, { evict: admitted.evict, nowMs })
    sockets.send(socket, {
      type: 'authenticated',
      ...routerFields(this.#parts.identity(), state.greeting),
      device_id: deviceId,
      device_name: device.name,
      ...proof.fields,
      ...(proof.expiresAtMs === null ? {} : { expires_at: toWireTime(proof.expiresAtMs) }),
      ...(manner.threadNames ? { wire_names: 'thread' } : {}),
    } satisfies Authenticated)
  }

  /** The device has stored its new token: the one before it is retired for good. An older rotation is ignored. */
  acknowledge(deviceId: string, rotationId: string): void {
    const { sql } = this.#parts
    const device = this.#devices.paired(deviceId)
    if (device?.credential?.k !== 'rotating') return
    const after = acknowledged(device.credential.family, rotationId)
    if (after === null) return
    sql.transaction(() => {
      saveDevice(sql, { ...device, credential: { k: 'rotating', family: after.family } })
      retire(sql, deviceId, after.retired)
    })
  }

  /**
   * Computes what has to be waited for, and returns the decision for the moment when all of it is there. `outrun`:
   * another frame rotated meanwhile, and what has to be repeated is not computed.
   */
  async #prepare(
    request: AuthenticateRequest,
  ): Promise<(nowMs: number, hasRoom: boolean) => Proof | Farewell | 'replay' | 'outrun'> {
    const { device_id: deviceId, token, refresh_token: refresh, access_token: access } = request
    const digests = {
      token: await digestOf(token ?? ''),
      refresh: await digestOf(refresh ?? ''),
      access: await digestOf(access ?? ''),
    }
    const next = await rotationOf(refresh ?? NOBODYS_TOKEN, newSecret())
    const again = await repeatOf(refresh, this.#familyOf(deviceId))
    return (nowMs, hasRoom) => {
      const device = this.#devices.paired(deviceId)
      const { credential = null } = device ?? {}
      if (device === null || credential === null) {
        sameDigest(digests.token, NOBODYS_DIGEST)
        return UNAUTHORIZED
      }
      if (credential.k === 'static') {
        const isRight = token !== undefined && sameDigest(digests.token, credential.digest)
        if (!isRight || nowMs >= credential.expiresAtMs) return UNAUTHORIZED
        return { device, fields: {}, expiresAtMs: credential.expiresAtMs, retired: [] }
      }
      if (refresh !== undefined)
        return this.#present(device, credential.family, {
          digest: digests.refresh,
          next,
          again,
          nowMs,
          hasRoom,
        })
      if (access === undefined) return UNAUTHORIZED
      const shown = presentAccess(credential.family, digests.access, nowMs)
      if (!shown.ok) return ACCESS_EXPIRED
      const fields = { access_expires_at: toWireTime(shown.expiresAtMs) }
      return { device, fields, expiresAtMs: null, retired: [] }
    }
  }

  #present(
    device: StoredDevice,
    family: TokenFamily,
    {
      digest,
      next,
      again,
      nowMs,
      hasRoom,
    }: { digest: string; next: Rotation; again: Successor | null; nowMs: number; hasRoom: boolean },
  ): Proof | Farewell | 'replay' | 'outrun' {
    const known = presentRefresh(family, digest, false)
    // Asked last: it looks through all that were retired.
    const verdict =
      known.k === 'unknown'
        ? presentRefresh(family, digest, isRetired(this.#parts.sql, device.deviceId, digest))
        : known
    switch (verdict.k) {
      case 'unknown':
        return UNAUTHORIZED
      case 'replay':
        return 'replay'
      case 'again': {
        if (again?.rotationId !== verdict.rotationId) return 'outrun'
        if (family.access === null) throw new Error('invariant broken: a rotation without its answer')
        // The same answer as the first time, its end included (D40).
        return {
          device,
          fields: tokenFields(again, family.access.expiresAtMs),
          expiresAtMs: null,
          retired: [],
        }
      }
      case 'rotate': {
        // A refusal for want of room must not burn a token (RF 3).
        if (!hasRoom) return BUSY_CONNECTIONS
        const accessExpiresAtMs = nowMs + ACCESS_TOKEN_TTL_MS
        const { family: after, retired } = rotated(family, digest, {
          refreshDigest: next.refreshDigest,
          accessDigest: next.accessDigest,
          accessExpiresAtMs,
          rotationId: next.successor.rotationId,
          secret: next.secret,
        })
        return {
          device: { ...device, credential: { k: 'rotating', family: after } },
          fields: tokenFields(next.successor, accessExpiresAtMs),
          expiresAtMs: null,
          retired,
        }
      }
    }
  }

  #familyOf(deviceId: string): TokenFamily | null {
    const credential = this.#devices.paired(deviceId)?.credential
    return credential?.k === 'rotating' ? credential.family : null
  }
}

type Rotation = { secret: string; successor: Successor; refreshDigest: string; accessDigest: string }

async function rotationOf(presented: string, secret: string): Promise<Rotation> {
  const successor = await deriveSuccessor(presented, secret)
  const [refreshDigest, accessDigest] = await Promise.all([
    digestOf(successor.refreshToken),
    digestOf(successor.accessToken),
  ])
  return { secret, successor, refreshDigest, accessDigest }
}

/** What the rotation that is not acknowledged yet answered, if this is the token it was asked with. */
const repeatOf = async (
  presented: string | undefined,
  family: TokenFamily | null,
): Promise<Successor | null> =>
  presented === undefined || !family?.previous ? null : deriveSuccessor(presented, family.previous.secret)

const tokenFields = (
  { refreshToken, accessToken, rotationId }: Successor,
  accessExpiresAtMs: number,
): TokenFields => ({
  refresh_token: refreshToken,
  access_token: accessToken,
  access_expires_at: toWireTime(accessExpiresAtMs),
  rotation_id: rotationId,
})
