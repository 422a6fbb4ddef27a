import type { Context } from 'hono'
import type { RevocationReason } from '../core/gateway/revocation.ts'
import type { GatewayIdentity, GatewayRpc } from '../gateway/rpc.ts'
import { type Failure, failure } from '../protocol/execution/errors.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { type Database, openDatabase } from '../storage/d1/database.ts'
import { dropNote, ownGateway } from '../storage/d1/gateways.ts'
import type { AppEnv } from './context.ts'
import { gatewayStub } from './env.ts'

/** The gateway of whoever asks, with what is to be said to it first. */
export type OwnGateway = {
  who: GatewayIdentity
  rpc: GatewayRpc
  /** Devices whose revocation waits to be stored by it. */
  noted: ReadonlyMap<string, RevocationReason>
}

/** For the owner's calls, after `identify`. Fails only when the account has gone since its token was checked. */
export async function openOwnGateway(c: Context<AppEnv>): Promise<Result<OwnGateway, Failure>> {
  const found = await ownGateway(openDatabase(c.env.DB), c.var.identity.userId, Date.now())
  if (found === null) return err(failure('invalid_token', 'this account is gone'))
  const { userId, gatewayId, notedRevocations } = found
  const noted = new Map(notedRevocations.map(({ deviceId, reason }) => [deviceId, reason]))
  return ok({ who: { userId, gatewayId }, rpc: gatewayStub(c.env, userId), noted })
}

/** A gateway that could not be reached is asked again after so long, and then after twice that. */
const FIRST_RETRY_MS = 1_000
const RETRIES = 3

/**
 * Has the gateway carry out a revocation that was noted because it could not: a gateway that did not hear of it has closed
 * nothing. Never throws; what fails stays noted, and is applied when a device dials.
 */
export async function carryOut(
  { db, rpc }: { db: Database; rpc: Pick<GatewayRpc, 'revokeDevice'> },
  who: GatewayIdentity,
  deviceId: string,
): Promise<void> {
  for (let attempt = 0; attempt < RETRIES; attempt++) {
    await scheduler.wait(FIRST_RETRY_MS * 2 ** attempt)
    try {
      // A device that the gateway does not know is as good as revoked.
      await rpc.revokeDevice(who, deviceId)
      await dropNote(db, who.userId, deviceId)
      return
    } catch (error) {
      console.error(`the noted revocation of device ${deviceId} is not carried out yet:`, error)
    }
  }
}
