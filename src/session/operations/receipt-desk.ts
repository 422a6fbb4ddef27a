import type { Refusal } from '../../core/operations/refusal.ts'
import { MAX_RECEIPT_WAITERS } from '../../protocol/remote/limits.ts'
import {
  findReceipt,
  loadReceipt,
  type ReceiptKey,
  type StoredReceipt,
} from '../../storage/session/receipts.ts'
import type { Sql } from '../../storage/session/sql.ts'
import type { OperationAnswer, ReceiptStatus } from '../rpc.ts'

type InFlight = { epoch: number; digest: string; answer: Promise<OperationAnswer>; waiting: number }

/** A mutation as its receipt names it. */
export type Asked = ReceiptKey & { digest: string }

/**
 * At most once: what was decided is answered again, what is being decided is waited for, and only what is new is done
 * (remote protocol, "Receipts"; RF 28). Receipts are stored by whoever does it, together with the change.
 */
export class ReceiptDesk {
  readonly #sql: Sql
  /** By device and request: one registration is listed at a time. */
  readonly #inFlight = new Map<string, InFlight>()

  constructor(sql: Sql) {
    this.#sql = sql
  }

  async once(asked: Asked, work: () => Promise<OperationAnswer>): Promise<OperationAnswer> {
    const id = idOf(asked)
    const known = this.known(asked)
    if (known !== null) return known.digest === asked.digest ? answerOf(known) : rejected(CONFLICT)
    const inFlight = this.#inFlight.get(id)
    if (inFlight !== undefined && inFlight.epoch === asked.epoch) {
      if (inFlight.digest !== asked.digest) return rejected(CONFLICT)
      if (inFlight.waiting >= MAX_RECEIPT_WAITERS) return rejected(TOO_MANY_WAIT)
      inFlight.waiting++
      return inFlight.answer
    }
    const entry: InFlight = { epoch: asked.epoch, digest: asked.digest, answer: work(), waiting: 1 }
    this.#inFlight.set(id, entry)
    try {
      return await entry.answer
    } finally {
      if (this.#inFlight.get(id) === entry) this.#inFlight.delete(id)
    }
  }

  /** The stored receipt of a request; null when nothing was decided. */
  known(asked: ReceiptKey): StoredReceipt | null {
    return loadReceipt(this.#sql, asked)
  }

  /** What became of a request; null when it is not known here. `registrationEpoch` null: under any registration. */
  status(
    deviceId: string,
    { requestId, registrationEpoch }: { requestId: string; registrationEpoch: number | null },
  ): ReceiptStatus | null {
    const stored =
      registrationEpoch === null
        ? findReceipt(this.#sql, deviceId, requestId)
        : loadReceipt(this.#sql, { deviceId, epoch: registrationEpoch, requestId })
    const inFlight = this.#inFlight.get(idOf({ deviceId, requestId }))
    const isOpen =
      inFlight !== undefined &&
      (registrationEpoch === null
        ? inFlight.epoch > (stored?.epoch ?? -1)
        : inFlight.epoch === registrationEpoch)
    if (isOpen && stored?.epoch !== inFlight.epoch) return { receipt: 'received' }
    return stored && { receipt: stored.receipt, result: stored.result }
  }
}

const CONFLICT: Refusal = {
  code: 'request_conflict',
  message: 'this request id was already used with another request',
}

const TOO_MANY_WAIT: Refusal = {
  code: 'rate_limited',
  message: 'this request is being decided, and enough of its repeats wait for the answer already',
}

const idOf = ({ deviceId, requestId }: Pick<ReceiptKey, 'deviceId' | 'requestId'>): string =>
  JSON.stringify([deviceId, requestId])

export const answerOf = ({ receipt, result }: StoredReceipt): OperationAnswer => ({ receipt, result })

/** Nothing was applied. */
export const rejected = ({ code, message }: Refusal): OperationAnswer => ({
  receipt: 'rejected',
  result: { type: 'error', code, message },
})
