import type { GatewayRpc } from '../gateway/rpc.ts'
import { mapBounded } from '../providers/map-bounded.ts'
import type { SessionRpc } from '../session/rpc.ts'
import { removeDeletedUser } from '../storage/d1/accounts.ts'
import type { Database } from '../storage/d1/database.ts'
import { listSessionIds } from '../storage/d1/export.ts'
import { deleteSession } from '../storage/d1/sessions.ts'

export type DeletionDeps = {
  db: Database
  session(id: string): SessionRpc
  gateway(userId: string): Pick<GatewayRpc, 'remove'>
  now(): number
}

/** Sessions that are read from D1 at a time. */
const PAGE = 100
/** An object answers before D1 has done its part, if that takes long: the second pass finds the rows that were late. */
const PASSES = 2
/** Objects that are asked at a time. */
const WIDTH = 8

/**
 * Takes away what a marked account has: its gateway with the devices, which lose their connections at once, each session
 * through its object, then its rows. Stops at the deadline. Never throws: what fails stays listed and is tried again by
 * the next clean-up, which may start anywhere in this.
 */
export async function finishAccountDeletion(
  deps: DeletionDeps,
  userId: string,
  deadlineMs: number,
): Promise<void> {
  const { db, now } = deps
  try {
    const gatewayGone = await removeGateway(deps, userId)
    let sessionsSeen = 0
    for (let pass = 0; pass < PASSES; pass++) {
      for (let after: string | undefined = ''; after !== undefined && now() < deadlineMs; ) {
        const ids = await listSessionIds(db, userId, after, PAGE)
        sessionsSeen += ids.length
        await mapBounded(ids, WIDTH, async (id) => {
          if (now() < deadlineMs) await removeSession(deps, userId, id)
        })
        after = ids.at(-1)
      }
    }
    // A session that was still busy may have told its gateway something after that had gone.
    if (gatewayGone && sessionsSeen === 0) await removeDeletedUser(db, userId)
    else if (await removeGateway(deps, userId)) await removeDeletedUser(db, userId)
  } catch (error) {
    console.error(`deleting account ${userId} is not finished:`, error)
  }
}

/** False when the gateway has to be asked again: it holds up no session. */
async function removeGateway({ gateway }: DeletionDeps, userId: string): Promise<boolean> {
  try {
    await gateway(userId).remove(userId)
    return true
  } catch (error) {
    console.error(`the gateway of deleted account ${userId} is not removed:`, error)
    return false
  }
}

/** One session that cannot be removed holds up no other. */
async function removeSession(
  { db, session }: DeletionDeps,
  userId: string,
  sessionId: string,
): Promise<void> {
  try {
    const removed = await session(sessionId).remove(userId)
    // The object has gone before, or is on its way: the row in D1 is all that is left to do here.
    if (!removed.ok) await deleteSession(db, userId, sessionId)
  } catch (error) {
    console.error(`session ${sessionId} of a deleted account is not removed:`, error)
  }
}
