import { optionalNumber, optionalText, type Sql, textOf } from '../session/sql.ts'

/** Whose gateway the object is. */
export type StoredIdentity = {
  userId: string
  /** Null until the Worker has named it: a session may list itself before. */
  gatewayId: string | null
  /** Minted once; a new one would refuse every cursor (D04). */
  instanceId: string
  /** Connection requests are taken until then (D41). */
  listenUntilMs: number | null
}

export function loadIdentity(sql: Sql): StoredIdentity | null {
  const row = sql.rows('SELECT user_id, gateway_id, instance_id, listen_until FROM gateway')[0]
  if (!row) return null
  return {
    userId: textOf(row, 'user_id'),
    gatewayId: optionalText(row, 'gateway_id'),
    instanceId: textOf(row, 'instance_id'),
    listenUntilMs: optionalNumber(row, 'listen_until'),
  }
}

export function saveIdentity(sql: Sql, identity: StoredIdentity): void {
  sql.rows(
    `INSERT INTO gateway (id, user_id, gateway_id, instance_id, listen_until) VALUES (1, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET gateway_id = excluded.gateway_id, listen_until = excluded.listen_until`,
    identity.userId,
    identity.gatewayId,
    identity.instanceId,
    identity.listenUntilMs,
  )
}
