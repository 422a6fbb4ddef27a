import type { Challenge, PairingFailure } from '../../core/gateway/challenge.ts'
import type { OpenRequest } from '../../core/gateway/connect-requests.ts'
import type { DeviceKind } from '../../protocol/remote/handshake-request.ts'
import { numberOf, type Sql, textOf } from '../session/sql.ts'

/** A connection request as it is kept: what is decided from, and what the owner is shown and accepts. */
export type StoredRequest = OpenRequest & {
  deviceName: string
  deviceKind: DeviceKind
  platform: string | null
  hostDigest: string | null
  createdAtMs: number
}

/** The one challenge that is open, or was until its time passed. */
export function loadChallenge(sql: Sql): Challenge | null {
  const row = sql.rows('SELECT body FROM challenge')[0]
  return row ? JSON.parse(textOf(row, 'body')) : null
}

export function saveChallenge(sql: Sql, challenge: Challenge | null): void {
  if (challenge === null) sql.rows('DELETE FROM challenge')
  else
    sql.rows(
      `INSERT INTO challenge (id, body) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body`,
      JSON.stringify(challenge),
    )
}

export function loadFailures(sql: Sql): PairingFailure[] {
  const row = sql.rows('SELECT body FROM pairing_failures')[0]
  return row ? JSON.parse(textOf(row, 'body')) : []
}

export function saveFailures(sql: Sql, failures: readonly PairingFailure[]): void {
  sql.rows(
    `INSERT INTO pairing_failures (id, body) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body`,
    JSON.stringify(failures),
  )
}

/** The oldest first. */
export const loadRequests = (sql: Sql): StoredRequest[] =>
  sql
    .rows('SELECT body FROM connect_requests')
    .map((row): StoredRequest => JSON.parse(textOf(row, 'body')))
    .sort((a, b) => a.createdAtMs - b.createdAtMs || (a.requestId < b.requestId ? -1 : 1))

export function saveRequest(sql: Sql, request: StoredRequest): void {
  sql.rows(
    `INSERT INTO connect_requests (request_id, body) VALUES (?, ?)
     ON CONFLICT (request_id) DO UPDATE SET body = excluded.body`,
    request.requestId,
    JSON.stringify(request),
  )
}

export function dropRequest(sql: Sql, requestId: string): void {
  sql.rows('DELETE FROM connect_requests WHERE request_id = ?', requestId)
}

export const loadDenials = (sql: Sql): { address: string; untilMs: number }[] =>
  sql.rows('SELECT address, until FROM connect_denials').map((row) => ({
    address: textOf(row, 'address'),
    untilMs: numberOf(row, 'until'),
  }))

/** Notes a denial, and forgets those that are over. */
export function saveDenial(sql: Sql, address: string, untilMs: number, nowMs: number): void {
  sql.rows('DELETE FROM connect_denials WHERE until <= ?', nowMs)
  sql.rows(
    `INSERT INTO connect_denials (address, until) VALUES (?, ?)
     ON CONFLICT (address) DO UPDATE SET until = excluded.until`,
    address,
    untilMs,
  )
}
