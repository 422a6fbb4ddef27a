import type { TokenFamily } from '../../core/gateway/rotation.ts'
import type { DeviceKind } from '../../protocol/remote/handshake-request.ts'
import { MAX_RETIRED_FINGERPRINTS } from '../../protocol/remote/limits.ts'
import { numberOf, optionalNumber, optionalText, type Sql, type SqlRow, textOf } from '../session/sql.ts'

/** How a device proves itself: with one token for 30 days, or with tokens that are replaced. Only digests. */
export type DeviceCredential =
  | { k: 'static'; digest: string; expiresAtMs: number }
  | { k: 'rotating'; family: TokenFamily }

/** A paired device, or one whose pairing has ended by a replay, which the owner is to see. */
export type StoredDevice = {
  deviceId: string
  name: string
  kind: DeviceKind
  platform: string | null
  hostDigest: string | null
  installDigest: string | null
  pairedAtMs: number
  lastSeenAtMs: number | null
  /** Null once the pairing has ended. */
  credential: DeviceCredential | null
  revokedReason: 'token_replayed' | null
  /** When it ended; null while it holds. */
  endedAtMs: number | null
}

/** 64 bits of a digest (remote protocol, "Rotating tokens"). */
const FINGERPRINT_HEX_CHARS = 16
const fingerprintOf = (digest: string): string => digest.slice(0, FINGERPRINT_HEX_CHARS)

export function loadDevice(sql: Sql, deviceId: string): StoredDevice | null {
  const row = sql.rows('SELECT * FROM devices WHERE device_id = ?', deviceId)[0]
  return row ? toDevice(row) : null
}

/** All devices, the newest first. */
export const loadDevices = (sql: Sql): StoredDevice[] =>
  sql.rows('SELECT * FROM devices ORDER BY paired_at DESC, device_id').map(toDevice)

export function saveDevice(sql: Sql, device: StoredDevice): void {
  const { credential } = device
  sql.rows(
    `INSERT INTO devices (device_id, name, kind, platform, host_digest, install_digest, paired_at, last_seen_at,
       token_digest, expires_at, family, revoked_reason, ended_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (device_id) DO UPDATE SET name = excluded.name, last_seen_at = excluded.last_seen_at,
       token_digest = excluded.token_digest, expires_at = excluded.expires_at, family = excluded.family,
       revoked_reason = excluded.revoked_reason, ended_at = excluded.ended_at`,
    device.deviceId,
    device.name,
    device.kind,
    device.platform,
    device.hostDigest,
    device.installDigest,
    device.pairedAtMs,
    device.lastSeenAtMs,
    credential?.k === 'static' ? credential.digest : null,
    credential?.k === 'static' ? credential.expiresAtMs : null,
    credential?.k === 'rotating' ? JSON.stringify(credential.family) : null,
    device.revokedReason,
    device.endedAtMs,
  )
}

/** Forgets the device and every token it ever had. */
export function dropDevice(sql: Sql, deviceId: string): void {
  sql.rows('DELETE FROM devices WHERE device_id = ?', deviceId)
  dropRetired(sql, deviceId)
}

export function dropRetired(sql: Sql, deviceId: string): void {
  sql.rows('DELETE FROM retired_tokens WHERE device_id = ?', deviceId)
}

/** The token was this device's once, and is one of those retired most recently. */
export const isRetired = (sql: Sql, deviceId: string, digest: string): boolean =>
  sql.rows(
    'SELECT 1 FROM retired_tokens WHERE device_id = ? AND fingerprint = ?',
    deviceId,
    fingerprintOf(digest),
  ).length > 0

/** Remembers retired tokens by their fingerprints; the oldest beyond the limit are dropped. */
export function retire(sql: Sql, deviceId: string, digests: readonly string[]): void {
  for (const digest of digests) {
    const newest = sql.rows('SELECT max(n) AS n FROM retired_tokens WHERE device_id = ?', deviceId)[0]
    const n = ((newest && optionalNumber(newest, 'n')) ?? 0) + 1
    sql.rows(
      'INSERT INTO retired_tokens (device_id, n, fingerprint) VALUES (?, ?, ?)',
      deviceId,
      n,
      fingerprintOf(digest),
    )
    sql.rows(
      'DELETE FROM retired_tokens WHERE device_id = ? AND n <= ?',
      deviceId,
      n - MAX_RETIRED_FINGERPRINTS,
    )
  }
}

function toDevice(row: SqlRow): StoredDevice {
  const kind = textOf(row, 'kind')
  return {
    deviceId: textOf(row, 'device_id'),
    name: textOf(row, 'name'),
    kind: kind === 'desktop' || kind === 'cli' ? kind : 'phone',
    platform: optionalText(row, 'platform'),
    hostDigest: optionalText(row, 'host_digest'),
    installDigest: optionalText(row, 'install_digest'),
    pairedAtMs: numberOf(row, 'paired_at'),
    lastSeenAtMs: optionalNumber(row, 'last_seen_at'),
    credential: toCredential(row),
    revokedReason: optionalText(row, 'revoked_reason') === 'token_replayed' ? 'token_replayed' : null,
    endedAtMs: optionalNumber(row, 'ended_at'),
  }
}

function toCredential(row: SqlRow): DeviceCredential | null {
  const family = optionalText(row, 'family')
  if (family !== null) return { k: 'rotating', family: JSON.parse(family) }
  const digest = optionalText(row, 'token_digest')
  const expiresAtMs = optionalNumber(row, 'expires_at')
  return digest === null || expiresAtMs === null ? null : { k: 'static', digest, expiresAtMs }
}
