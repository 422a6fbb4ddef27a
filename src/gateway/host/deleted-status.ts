import type { ReceiptStatus } from '../../session/rpc.ts'
import type { Database } from '../../storage/d1/database.ts'
import { findCopiedReceipt, type ReceiptTarget } from '../../storage/d1/receipts.ts'
import { refusal } from '../refusal.ts'

/**
 * What became of a request whose session is gone, or not listed any more: the copy knows a code and no words (D26). Null:
 * it does not know the request.
 */
export async function deletedStatus(
  db: Database,
  userId: string,
  target: ReceiptTarget,
): Promise<ReceiptStatus | null> {
  const copied = await findCopiedReceipt(db, userId, target)
  if (copied === null) return null
  if (copied.receipt === 'applied') return { receipt: 'applied' }
  // Loaded when it is asked for: an object that starts would build the schemas.
  const { RemoteErrorCode } = await import('../../protocol/remote/errors.ts')
  const code = RemoteErrorCode.safeParse(copied.code)
  if (!code.success) return { receipt: 'rejected' }
  return {
    receipt: 'rejected',
    result: refusal(code.data, 'the request was refused; the session that it was for is not there any more'),
  }
}
