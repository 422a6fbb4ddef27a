import { errorTrace } from '../../protocol/error-name.ts'
import type { RequestEnvelope } from '../../protocol/remote/decode-request.ts'
import { MAX_RECEIPT_WAITERS } from '../../protocol/remote/limits.ts'
import type { RemoteOperation } from '../../protocol/remote/operations.ts'
import type { OutrightResult, ReceiptState } from '../../protocol/remote/results.ts'
import {
  dropHostReceipt,
  type HostRequest,
  hasNewerReceipt,
  loadHostReceipt,
  saveReceived,
  settleHostReceipt,
} from '../../storage/gateway/host-receipts.ts'
import type { Sql } from '../../storage/session/sql.ts'
import { refusal } from '../refusal.ts'
import { requestDigest } from '../request-digest.ts'
import type { HostOutcome } from './outcome.ts'

/** Every mutation is answered by then, done or not (remote protocol, "Background gateway and mobile-created sessions"). */
const ANSWER_DEADLINE_MS = 15_000

export type HostAnswer = { receipt: ReceiptState; result: OutrightResult }

/** `received`: it is being carried out. */
export type KnownOutcome =
  | { receipt: 'applied' | 'rejected'; result: OutrightResult }
  | { receipt: 'received' }

/** Carries out an operation. The same one may be carried out twice: that must come to the same. */
type Work = (operation: RemoteOperation) => Promise<HostOutcome>

export type HostReceiptsDeps = {
  sql: Sql
  work: Work
  /** Work that goes on after the event that began it. */
  keepAlive(work: Promise<unknown>): void
  now(): number
}

const CONFLICT: HostAnswer = {
  receipt: 'rejected',
  result: refusal('request_conflict', 'this request_id was used for another request of this device'),
}
const TOO_MANY_WAIT: HostAnswer = {
  receipt: 'rejected',
  result: refusal('rate_limited', 'this request is being served, and others wait for its answer already'),
}
const FAULT: HostOutcome = {
  receipt: 'undecided',
  result: refusal('internal', 'the router failed to serve this request; ask for its status'),
}
const LATE: HostAnswer = {
  receipt: 'unknown',
  result: refusal('owner_unavailable', 'there is no answer yet; ask for the status of this request'),
}

/**
 * Host-wide mutations happen at most once for each request id of a device (RF 24, RF 28). What was asked is stored before
 * anything is done; what a crash or a fault left without an end is carried out by whoever asks again, the operations being
 * such that twice is as good as once.
 */
export class HostReceipts {
  readonly #deps: HostReceiptsDeps
  readonly #inFlight = new Map<string, { waiters: number; done: Promise<HostOutcome> }>()

  constructor(deps: HostReceiptsDeps) {
    this.#deps = deps
  }

  async serve(deviceId: string, request: RequestEnvelope): Promise<HostAnswer> {
    const { sql, now } = this.#deps
    const { requestId, operation } = request
    const digest = await requestDigest(request)
    // From here to the note that it was received nothing is waited for: of two at once one is first.
    const stored = loadHostReceipt(sql, deviceId, requestId)
    if (stored !== null && stored.digest !== digest) return CONFLICT
    if (stored !== null && stored.receipt !== 'received')
      return { receipt: stored.receipt, result: stored.result }
    const known = { deviceId, requestId, digest, operation }
    const running = this.#inFlight.get(keyOf(known))
    if (running !== undefined && running.waiters >= MAX_RECEIPT_WAITERS) return TOO_MANY_WAIT
    if (running !== undefined) running.waiters++
    if (stored === null) saveReceived(sql, known, now())
    const outcome = await byDeadline(running?.done ?? this.#begin(known))
    if (outcome === null) return LATE
    return { receipt: outcome.receipt === 'undecided' ? 'unknown' : outcome.receipt, result: outcome.result }
  }

  /** What became of a request; null when it is not known. One that was left without an end is taken up again. */
  status(deviceId: string, requestId: string): KnownOutcome | null {
    const { sql, keepAlive } = this.#deps
    const stored = loadHostReceipt(sql, deviceId, requestId)
    if (stored === null) return null
    if (stored.receipt !== 'received') return { receipt: stored.receipt, result: stored.result }
    if (!this.#inFlight.has(keyOf(stored))) {
      // Carried out now it might undo what was asked for later.
      if (hasNewerReceipt(sql, stored.seq)) {
        dropHostReceipt(sql, stored)
        return null
      }
      keepAlive(this.#begin(stored))
    }
    return { receipt: 'received' }
  }

  #begin(request: HostRequest): Promise<HostOutcome> {
    const key = keyOf(request)
    const done = this.#carryOut(request).finally(() => this.#inFlight.delete(key))
    this.#inFlight.set(key, { waiters: 1, done })
    this.#deps.keepAlive(done)
    return done
  }

  /** Never rejects. */
  async #carryOut(request: HostRequest): Promise<HostOutcome> {
    try {
      const outcome = await this.#deps.work(request.operation)
      if (outcome.receipt !== 'undecided')
        settleHostReceipt(this.#deps.sql, request, { receipt: outcome.receipt, result: outcome.result })
      return outcome
    } catch (error) {
      console.error(`serving ${request.operation.type} failed:`, errorTrace(error))
      return FAULT
    }
  }
}

const keyOf = ({ deviceId, requestId }: Pick<HostRequest, 'deviceId' | 'requestId'>): string =>
  JSON.stringify([deviceId, requestId])

/** Null when there is no outcome in time; the work goes on. */
async function byDeadline(work: Promise<HostOutcome>): Promise<HostOutcome | null> {
  const { promise: limit, resolve } = Promise.withResolvers<null>()
  const timer = setTimeout(() => resolve(null), ANSWER_DEADLINE_MS)
  try {
    return await Promise.race([work, limit])
  } finally {
    clearTimeout(timer)
  }
}
