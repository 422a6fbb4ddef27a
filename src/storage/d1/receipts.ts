import { and, desc, eq, isNull, sql } from 'drizzle-orm'
import { MAX_BATCH_STATEMENTS } from '../limits.ts'
import type { CopiedReceipt } from '../session/copy-receipts.ts'
import type { Database } from './database.ts'
import { orFault } from './fault.ts'
import { receipts, users } from './schema.ts'

/** One statement of a batch. A receipt never changes: what is there stays. Of an account that is gone nothing is stored. */
export const insertReceipt = (
  db: Database,
  { userId, sessionId }: { userId: string; sessionId: string },
  { deviceId, requestId, epoch, receipt, code, createdAtMs }: CopiedReceipt,
) =>
  db
    .insert(receipts)
    .select(
      db
        .select({
          userId: users.id,
          deviceId: sql<string>`${deviceId}`.as('device_id'),
          requestId: sql<string>`${requestId}`.as('request_id'),
          sessionId: sql<string>`${sessionId}`.as('session_id'),
          epoch: sql<number>`${epoch}`.as('epoch'),
          receipt: sql<string>`${receipt}`.as('receipt'),
          code: sql<string>`${code}`.as('code'),
          createdAt: sql<number>`${createdAtMs}`.as('created_at'),
        })
        .from(users)
        .where(and(eq(users.id, userId), isNull(users.deletedAt))),
    )
    .onConflictDoNothing()

/** Copies receipts of a session by themselves: of one that is being deleted, which sends no other rows any more (D26). */
export async function writeReceipts(
  db: Database,
  owned: { userId: string; sessionId: string },
  rows: readonly CopiedReceipt[],
): Promise<void> {
  for (let from = 0; from < rows.length; from += MAX_BATCH_STATEMENTS) {
    const batch = rows.slice(from, from + MAX_BATCH_STATEMENTS).map((row) => insertReceipt(db, owned, row))
    const [first, ...others] = batch
    if (first !== undefined) await orFault(db.batch([first, ...others]))
  }
}

/** Which request is asked about. Null: not said. */
export type ReceiptTarget = {
  deviceId: string
  requestId: string
  sessionId: string | null
  epoch: number | null
}

/** The newest copy of a receipt that fits; null when D1 has none. */
export async function findCopiedReceipt(
  db: Database,
  userId: string,
  { deviceId, requestId, sessionId, epoch }: ReceiptTarget,
): Promise<{ receipt: 'applied' | 'rejected'; code: string } | null> {
  const rows = await orFault(
    db
      .select({ receipt: receipts.receipt, code: receipts.code })
      .from(receipts)
      .where(
        and(
          eq(receipts.userId, userId),
          eq(receipts.deviceId, deviceId),
          eq(receipts.requestId, requestId),
          sessionId === null ? undefined : eq(receipts.sessionId, sessionId),
          epoch === null ? undefined : eq(receipts.epoch, epoch),
        ),
      )
      .orderBy(desc(receipts.createdAt), desc(receipts.epoch))
      .limit(1),
  )
  const row = rows[0]
  return row === undefined
    ? null
    : { receipt: row.receipt === 'applied' ? 'applied' : 'rejected', code: row.code }
}
