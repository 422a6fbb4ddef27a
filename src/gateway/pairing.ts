import { attempt, type Challenge, retained } from '../core/gateway/challenge.ts'
import { normalizeCode } from '../core/gateway/codes.ts'
import { admitDevice } from '../core/gateway/connections.ts'
import { deviceKind, deviceName, platformLabel, stableId } from '../core/gateway/labels.ts'
import { errorName } from '../protocol/error-name.ts'
import type { PairRequest } from '../protocol/remote/handshake-request.ts'
import type { Paired } from '../protocol/remote/handshake-response.ts'
import {
  ACCESS_TOKEN_TTL_MS,
  CHALLENGE_TTL_MS,
  MAX_CHALLENGE_ATTEMPTS,
  MAX_DEVICES,
  STATIC_TOKEN_TTL_MS,
} from '../protocol/remote/limits.ts'
import { toWireTime } from '../protocol/time.ts'
import { digestOf } from '../storage/digest.ts'
import {
  type DeviceCredential,
  dropDevice,
  loadDevices,
  type StoredDevice,
  saveDevice,
} from '../storage/gateway/devices.ts'
import {
  dropRequest,
  loadChallenge,
  loadFailures,
  loadRequests,
  type StoredRequest,
  saveChallenge,
  saveFailures,
} from '../storage/gateway/pairing.ts'
import { REVOKED } from './devices.ts'
import { mannerOf } from './manner.ts'
import { type GatewayParts, routerFields } from './parts.ts'
import type { OpenedPairing } from './rpc.ts'
import { newCode, newSecret, newShortId } from './secrets.ts'
import { BUSY_CONNECTIONS, type Farewell, type Unauthenticated } from './sockets.ts'

const BUSY_DEVICES: Farewell = {
  code: 'busy',
  message: `there are ${MAX_DEVICES} paired devices already; revoke one, then pair again`,
}
/** Wrong, expired, used and exhausted look alike (RF 3). */
const PAIRING_FAILED: Farewell = {
  code: 'pairing_failed',
  message: 'this code is not valid; ask for a new one on the computer',
}
const NOT_STORED: Farewell = {
  code: 'internal',
  message: 'the device could not be stored; ask for a new code and try again',
}

/** What a device that pairs is given. Its secrets are in here and in its answer, and nowhere else. */
type Issued = {
  credential: DeviceCredential
  fields: Pick<Paired, 'token' | 'expires_at' | 'refresh_token' | 'access_token' | 'access_expires_at'>
}

/** The two keys of one challenge, with what is kept of them. */
export type DrawnKeys = { code: string; credential: string; codeDigest: string; credentialDigest: string }

/** The one challenge, and the devices that redeem it (remote protocol, "Handshake frames"; RF 4). */
export class Pairing {
  readonly #parts: GatewayParts

  constructor(parts: GatewayParts) {
    this.#parts = parts
  }

  /** Draws the keys of a challenge: what has to be waited for, before it is decided whether it is opened. */
  async draw(): Promise<DrawnKeys> {
    const code = newCode()
    const credential = newSecret()
    const [codeDigest, credentialDigest] = await Promise.all([
      digestOf(normalizeCode(code)),
      digestOf(credential),
    ])
    return { code, credential, codeDigest, credentialDigest }
  }

  /**
   * Opens a challenge in place of the one before; whoever waited for that is told that it is over.
   * @param requestId the connection request that alone may redeem it
   */
  open(
    { code, credential, codeDigest, credentialDigest }: DrawnKeys,
    requestId: string | null,
  ): OpenedPairing {
    const expiresAtMs = Date.now() + CHALLENGE_TTL_MS
    this.#replace({
      codeDigest,
      // The code of a connection request is shown to type, and nobody scans anything (RF 7).
      credentialDigest: requestId === null ? credentialDigest : null,
      expiresAtMs,
      attemptsLeft: MAX_CHALLENGE_ATTEMPTS,
      requestId,
    })
    return { code, credential, expiresAtMs }
  }

  /** The challenge, or what is left of it, goes away with the request that it was made for. */
  withdraw(requestId: string): void {
    const { sql } = this.#parts
    sql.transaction(() => {
      if (loadChallenge(sql)?.requestId === requestId) saveChallenge(sql, null)
      dropRequest(sql, requestId)
    })
  }

  #replace(challenge: Challenge): void {
    const { sql, sockets } = this.#parts
    const before = loadChallenge(sql)
    const waiting = before?.requestId ?? null
    sql.transaction(() => {
      saveChallenge(sql, challenge)
      if (waiting !== null && waiting !== challenge.requestId) dropRequest(sql, waiting)
    })
    if (waiting === null || waiting === challenge.requestId) return
    const socket = sockets.ofRequest(waiting)
    if (socket) sockets.end(socket, { type: 'connect_expired' })
  }

  /** Serves a `pair` frame: one attempt, one answer. */
  async pair(socket: WebSocket, state: Unauthenticated, request: PairRequest): Promise<void> {
    const { sql, sockets } = this.#parts
    const requestId = state.k === 'asking' ? state.requestId : null
    const typed = request.method === 'code' ? normalizeCode(request.secret) : request.secret
    const installId = stableId(request.install_id)
    const hostId = stableId(request.host_id)
    // Everything that has to be waited for comes first: what is decided below is decided in one step.
    const [secretDigest, installDigest, hostDigest, issued] = await Promise.all([
      digestOf(typed),
      installId === null ? null : digestOf(installId),
      hostId === null ? null : digestOf(hostId),
      issue(request.capabilities?.includes('token_rotation') === true, Date.now()),
    ])
    if (sockets.stateOf(socket).k === 'closed') return
    const nowMs = Date.now()
    const asked =
      requestId === null ? null : (loadRequests(sql).find((one) => one.requestId === requestId) ?? null)
    const refused = this.#redeem({
      method: request.method,
      secretDigest,
      address: state.address,
      requestId,
      nowMs,
    })
    // One code per accepted request: whatever was wrong, that request is over.
    if (requestId !== null) this.withdraw(requestId)
    if (refused) return sockets.end(socket, refused)
    const device: StoredDevice = {
      deviceId: newShortId(),
      name: deviceName(request.device_name),
      ...labels(request, asked, hostDigest),
      installDigest: installDigest ?? asked?.installDigest ?? null,
      pairedAtMs: nowMs,
      lastSeenAtMs: nowMs,
      credential: issued.credential,
      revokedReason: null,
      endedAtMs: null,
    }
    const { leaving, staying } = changeOf(loadDevices(sql), device, nowMs)
    // What is replaced takes no room any more.
    const held = sockets.held().filter(({ deviceId }) => deviceId === null || !leaving.includes(deviceId))
    const admitted = admitDevice(held, device.deviceId, nowMs)
    if (!admitted.ok) return sockets.end(socket, BUSY_CONNECTIONS)
    if (staying >= MAX_DEVICES) return sockets.end(socket, BUSY_DEVICES)
    // A device that cannot learn its token leaves nothing behind, and replaces nothing (U31).
    if (!sockets.isOpen(socket)) return
    if (!this.#store(device, leaving)) return sockets.end(socket, NOT_STORED)
    for (const id of leaving) for (const [old] of sockets.devices(id)) sockets.end(old, REVOKED)
    const manner = mannerOf(request)
    const { deviceId } = device
    sockets.enter(socket, state, { deviceId, ...manner }, { evict: admitted.evict, nowMs })
    const answer: Paired = {
      type: 'paired',
      ...routerFields(this.#parts.identity(), state.greeting),
      device_id: device.deviceId,
      device_name: device.name,
      ...issued.fields,
      ...(manner.threadNames ? { wire_names: 'thread' } : {}),
    }
    sockets.send(socket, answer)
  }

  /** Spends an attempt; null when it was right, and the challenge is gone. */
  #redeem(given: Parameters<typeof attempt>[2]): Farewell | null {
    const { sql } = this.#parts
    return sql.transaction(() => {
      const failures = loadFailures(sql)
      const outcome = attempt(loadChallenge(sql), failures, given)
      switch (outcome.k) {
        case 'rate_limited':
          return {
            code: 'rate_limited',
            message: `too many wrong codes; try again in ${outcome.retryAfterSecs} s`,
            retry_after_secs: outcome.retryAfterSecs,
          }
        case 'failed':
          saveFailures(sql, retained([...failures, outcome.failure], given.nowMs))
          saveChallenge(sql, outcome.challenge)
          return PAIRING_FAILED
        case 'matched':
          saveChallenge(sql, null)
          return null
      }
    })
  }

  /** Stores the device in place of those that leave, or nothing at all. */
  #store(device: StoredDevice, leaving: readonly string[]): boolean {
    const { sql } = this.#parts
    try {
      sql.transaction(() => {
        for (const deviceId of leaving) dropDevice(sql, deviceId)
        saveDevice(sql, device)
      })
      return true
    } catch (error) {
      console.error('a paired device could not be stored:', errorName(error))
      return false
    }
  }
}

/** Who leaves when a device is paired: the same install before it, and what has run out (RF 5). And how many stay. */
function changeOf(
  known: readonly StoredDevice[],
  { installDigest }: StoredDevice,
  nowMs: number,
): { leaving: string[]; staying: number } {
  const isLeaving = (one: StoredDevice): boolean =>
    (installDigest !== null && one.installDigest === installDigest) ||
    (one.credential?.k === 'static' && one.credential.expiresAtMs <= nowMs)
  return {
    leaving: known.filter(isLeaving).map(({ deviceId }) => deviceId),
    staying: known.filter((one) => one.credential !== null && !isLeaving(one)).length,
  }
}

/** Of a connection request, the owner accepted what the request said the device is (remote protocol, "Connection requests"). */
const labels = (request: PairRequest, asked: StoredRequest | null, hostDigest: string | null) =>
  asked === null
    ? { kind: deviceKind(request.device_kind), platform: platformLabel(request.platform), hostDigest }
    : { kind: asked.deviceKind, platform: asked.platform, hostDigest: asked.hostDigest }

async function issue(rotating: boolean, nowMs: number): Promise<Issued> {
  if (!rotating) {
    const token = newSecret()
    const expiresAtMs = nowMs + STATIC_TOKEN_TTL_MS
    return {
      credential: { k: 'static', digest: await digestOf(token), expiresAtMs },
      fields: { token, expires_at: toWireTime(expiresAtMs) },
    }
  }
  const refreshToken = newSecret()
  const accessToken = newSecret()
  const accessExpiresAtMs = nowMs + ACCESS_TOKEN_TTL_MS
  const [current, access] = await Promise.all([digestOf(refreshToken), digestOf(accessToken)])
  return {
    credential: {
      k: 'rotating',
      family: { current, previous: null, access: { digest: access, expiresAtMs: accessExpiresAtMs } },
    },
    fields: {
      refresh_token: refreshToken,
      access_token: accessToken,
      access_expires_at: toWireTime(accessExpiresAtMs),
    },
  }
}
