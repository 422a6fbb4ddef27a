import { deviceName } from '../core/gateway/labels.ts'
import type { NotedRevocation, RevocationReason } from '../core/gateway/revocation.ts'
import { errorName } from '../protocol/error-name.ts'
import { type Failure, failure } from '../protocol/execution/errors.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import {
  dropDevice,
  dropRetired,
  loadDevice,
  loadDevices,
  type StoredDevice,
  saveDevice,
} from '../storage/gateway/devices.ts'
import { dropRequestSessions } from '../storage/gateway/request-sessions.ts'
import type { GatewayParts } from './parts.ts'
import type { DeviceRecord } from './rpc.ts'

/** Pairings that ended by a replay are shown until the owner takes them off, but no more than so many. */
const MAX_ENDED_SHOWN = 32
/** A revocation that could not be stored is tried again this much later. */
const RETRY_MS = 5_000

const noSuchDevice = (): Failure => ({
  ...failure('invalid_request', 'there is no such device'),
  status: 404,
})

/** The registry of paired devices: what its owner sees and changes, and how a pairing ends. */
export class Devices {
  readonly #parts: GatewayParts
  /** Revoked, and not stored yet: refused while the object is in memory. */
  readonly #refused = new Map<string, RevocationReason>()

  constructor(parts: GatewayParts) {
    this.#parts = parts
  }

  /** The device, if its pairing holds. */
  paired(deviceId: string): StoredDevice | null {
    if (this.#refused.has(deviceId)) return null
    const device = loadDevice(this.#parts.sql, deviceId)
    return device?.credential == null ? null : device
  }

  list(): DeviceRecord[] {
    return loadDevices(this.#parts.sql)
      .filter(({ deviceId }) => this.#refused.get(deviceId) !== 'revoked')
      .map((device) => this.#toRecord(device))
  }

  rename(deviceId: string, name: string): Result<DeviceRecord, Failure> {
    const device = loadDevice(this.#parts.sql, deviceId)
    if (device === null || this.#refused.get(deviceId) === 'revoked') return err(noSuchDevice())
    const renamed = { ...device, name: deviceName(name) }
    saveDevice(this.#parts.sql, renamed)
    return ok(this.#toRecord(renamed))
  }

  /**
   * Ends a pairing: stored first, then every socket of it is closed (RF 5). Throws when it could not be stored; then the
   * device is refused and its sockets are closed all the same, and it is tried again.
   */
  async revoke(deviceId: string, reason: RevocationReason): Promise<Result<true, Failure>> {
    const { sql, sync } = this.#parts
    try {
      if (loadDevice(sql, deviceId) === null) return err(noSuchDevice())
      this.#write(deviceId, reason)
      await sync()
      this.#refused.delete(deviceId)
    } catch (error) {
      this.#refused.set(deviceId, reason)
      this.#parts.arm()
      throw error
    } finally {
      this.#close(deviceId)
    }
    return ok(true)
  }

  /** `revoke` for the gateway itself: what could not be stored here is noted elsewhere. */
  async end(deviceId: string, reason: RevocationReason): Promise<void> {
    try {
      await this.revoke(deviceId, reason)
    } catch (error) {
      console.error(`revoking device ${deviceId} could not be stored:`, errorName(error))
      await this.#parts
        .noteRevocation(deviceId, reason)
        .catch((also) => console.error(`and could not be noted elsewhere:`, errorName(also)))
    }
  }

  /**
   * Applies revocations that an earlier object could not store, before anybody is served. What still cannot be stored is
   * refused all the same.
   */
  applyNoted(noted: readonly NotedRevocation[]): void {
    for (const { deviceId, reason } of noted) {
      const device = loadDevice(this.#parts.sql, deviceId)
      const isStored = device === null || (reason === 'token_replayed' && device.credential === null)
      if (isStored) {
        this.#dropNote(deviceId)
        continue
      }
      this.#refused.set(deviceId, reason)
      this.#close(deviceId)
      this.#tryToStore(deviceId, reason)
    }
  }

  get retryAtMs(): number | null {
    return this.#refused.size === 0 ? null : Date.now() + RETRY_MS
  }

  /** Stores what could not be stored before. */
  retry(): void {
    for (const [deviceId, reason] of this.#refused) this.#tryToStore(deviceId, reason)
  }

  #tryToStore(deviceId: string, reason: RevocationReason): void {
    try {
      this.#store(deviceId, reason)
    } catch (error) {
      console.error(`the revocation of device ${deviceId} could not be stored:`, errorName(error))
      this.#parts.arm()
    }
  }

  /** Notes when a device was last heard of. */
  seen(deviceId: string, atMs: number): void {
    const device = loadDevice(this.#parts.sql, deviceId)
    if (device?.credential != null) saveDevice(this.#parts.sql, { ...device, lastSeenAtMs: atMs })
  }

  /** Stores what was noted elsewhere, and then takes the note away. */
  #store(deviceId: string, reason: RevocationReason): void {
    this.#write(deviceId, reason)
    this.#refused.delete(deviceId)
    this.#dropNote(deviceId)
  }

  /** Takes the note of a device away once this object has stored what it says. */
  #dropNote(deviceId: string): void {
    const { keepAlive, sync, dropNote } = this.#parts
    const dropped = sync().then(() => dropNote(deviceId))
    // A note that stays is applied again, to no effect.
    keepAlive(dropped.catch((error) => console.warn('a noted revocation stays noted:', errorName(error))))
  }

  #write(deviceId: string, reason: RevocationReason): void {
    const { sql } = this.#parts
    sql.transaction(() => {
      const device = loadDevice(sql, deviceId)
      dropRequestSessions(sql, deviceId)
      // One that ended by a replay stays to be seen; what its owner revokes is gone (RF 5).
      if (device === null || reason === 'revoked') {
        dropDevice(sql, deviceId)
        return
      }
      saveDevice(sql, { ...device, credential: null, revokedReason: reason, endedAtMs: Date.now() })
      dropRetired(sql, deviceId)
      const ended = loadDevices(sql)
        .filter(({ credential }) => credential === null)
        .sort((a, b) => (b.endedAtMs ?? 0) - (a.endedAtMs ?? 0))
      for (const { deviceId: oldest } of ended.slice(MAX_ENDED_SHOWN)) dropDevice(sql, oldest)
    })
  }

  #close(deviceId: string): void {
    const { sockets } = this.#parts
    for (const [socket] of sockets.devices(deviceId)) sockets.end(socket, REVOKED)
  }

  #toRecord(device: StoredDevice): DeviceRecord {
    const { credential } = device
    const sockets = this.#parts.sockets.devices(device.deviceId)
    const heardAtMs = sockets.map(([socket, state]) => this.#parts.sockets.lastHeardMs(socket, state))
    const lastSeenAtMs = Math.max(device.lastSeenAtMs ?? 0, ...heardAtMs)
    return {
      deviceId: device.deviceId,
      name: device.name,
      kind: device.kind,
      platform: device.platform,
      pairedAtMs: device.pairedAtMs,
      lastSeenAtMs: lastSeenAtMs === 0 ? null : lastSeenAtMs,
      online: sockets.length > 0,
      expiresAtMs: credential?.k === 'static' ? credential.expiresAtMs : null,
      revokedReason: this.#refused.get(device.deviceId) ?? device.revokedReason,
    }
  }
}

/** What every socket of a revoked device is told. */
export const REVOKED = {
  code: 'revoked',
  message: 'this device was revoked; pair it again to use it',
} as const
