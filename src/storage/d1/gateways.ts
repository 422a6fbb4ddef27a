import { and, eq, isNull, sql } from 'drizzle-orm'
import type { NotedRevocation } from '../../core/gateway/revocation.ts'
import { toHex } from '../../protocol/hex.ts'
import type { Database } from './database.ts'
import { orFault } from './fault.ts'
import { deviceRevocations, gateways, users } from './schema.ts'

/**
 * Which gateway is whose, and the revocations that a gateway could not store itself. What a gateway holds is in its own
 * object.
 */

/** A gateway with the revocations that were noted for it. */
export type FoundGateway = {
  userId: string
  gatewayId: string
  /** It belongs to the deployment's first account (D14). */
  firstAccount: boolean
  notedRevocations: NotedRevocation[]
}

const GATEWAY_ID_BYTES = 16

/** 32 hex digits. */
export const newGatewayId = (): string => toHex(crypto.getRandomValues(new Uint8Array(GATEWAY_ID_BYTES)))

export const insertGateway = (db: Database, userId: string, gatewayId: string, nowMs: number) =>
  db.insert(gateways).values({ userId, gatewayId, createdAt: nowMs })

/** Its row outlives its deletion. */
const FIRST_ACCOUNT = sql`(SELECT id FROM users ORDER BY created_at, id LIMIT 1)`

/** One statement: the gateway of a working account, repeated for each revocation that was noted for it. */
const selectGateway = (db: Database) =>
  db
    .select({
      userId: gateways.userId,
      gatewayId: gateways.gatewayId,
      isFirst: sql<number>`${gateways.userId} = ${FIRST_ACCOUNT}`,
      deviceId: deviceRevocations.deviceId,
      reason: deviceRevocations.reason,
    })
    .from(gateways)
    .innerJoin(users, and(eq(users.id, gateways.userId), isNull(users.disabledAt)))
    .leftJoin(deviceRevocations, eq(deviceRevocations.userId, gateways.userId))

/** The gateway of this id; null for an unknown one, or that of a disabled account (D41). */
export async function findGateway(db: Database, gatewayId: string): Promise<FoundGateway | null> {
  return toGateway(await orFault(selectGateway(db).where(eq(gateways.gatewayId, gatewayId))))
}

/**
 * The gateway of the account that was made first (D42). It never passes to another: once that account is gone there is
 * none.
 */
export async function findFirstGateway(db: Database): Promise<FoundGateway | null> {
  return toGateway(await orFault(selectGateway(db).where(eq(gateways.userId, FIRST_ACCOUNT))))
}

/** A user's own gateway. An account that an older release made during a deploy gets its id here (D32). */
export async function ownGateway(db: Database, userId: string, nowMs: number): Promise<FoundGateway | null> {
  const select = () => selectGateway(db).where(eq(gateways.userId, userId))
  const found = toGateway(await orFault(select()))
  if (found !== null) return found
  const [, rows] = await orFault(
    db.batch([
      db
        .insert(gateways)
        .select(
          db
            .select({
              userId: users.id,
              gatewayId: sql<string>`${newGatewayId()}`.as('gateway_id'),
              createdAt: sql<number>`${nowMs}`.as('created_at'),
            })
            .from(users)
            .where(and(eq(users.id, userId), isNull(users.disabledAt))),
        )
        .onConflictDoNothing(),
      select(),
    ]),
  )
  return toGateway(rows)
}

type GatewayRow = {
  userId: string
  gatewayId: string
  isFirst: number
  deviceId: string | null
  reason: string | null
}

function toGateway(rows: readonly GatewayRow[]): FoundGateway | null {
  const [first] = rows
  if (first === undefined) return null
  const { userId, gatewayId, isFirst } = first
  const notedRevocations = rows.flatMap(({ deviceId, reason }) =>
    deviceId === null ? [] : [{ deviceId, reason: toReason(reason) }],
  )
  return { userId, gatewayId, firstAccount: isFirst === 1, notedRevocations }
}

/** A reason that this release does not know is a revocation all the same. */
const toReason = (stored: string | null): NotedRevocation['reason'] =>
  stored === 'token_replayed' ? stored : 'revoked'

/** Notes that a device is revoked, until its gateway has stored that. The first note of a device stays. */
export async function noteRevocation(
  db: Database,
  { userId, deviceId, reason, nowMs }: NotedRevocation & { userId: string; nowMs: number },
): Promise<void> {
  await orFault(
    db.insert(deviceRevocations).values({ userId, deviceId, reason, createdAt: nowMs }).onConflictDoNothing(),
  )
}

/** The gateway has it, or the device is gone: the note has done its part. */
export async function dropNote(db: Database, userId: string, deviceId: string): Promise<void> {
  await orFault(
    db
      .delete(deviceRevocations)
      .where(and(eq(deviceRevocations.userId, userId), eq(deviceRevocations.deviceId, deviceId))),
  )
}
