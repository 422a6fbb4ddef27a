import { errorName } from '../protocol/error-name.ts'
import { OWNER_TIMEOUT_MS } from '../protocol/remote/limits.ts'
import type { RemoteResult } from '../protocol/remote/results.ts'
import type { ReceiptStatus, SessionRpc } from '../session/rpc.ts'
import { withDeadline } from '../storage/d1/deadline.ts'
import { loadRequestSession } from '../storage/gateway/request-sessions.ts'
import type { Sql } from '../storage/session/sql.ts'
import type { HostOperations } from './host/host.ts'
import type { LiveList } from './live-list.ts'

export type RequestStatusDeps = {
  sql: Sql
  list: LiveList
  session(sessionId: string): Pick<SessionRpc, 'requestStatus'>
  userId(): string
  host: Pick<HostOperations, 'status' | 'deletedStatus'>
}

/** `get_request_status`, as it came. */
export type StatusQuestion = {
  deviceId: string
  target: string
  sessionId: string | null
  registrationEpoch: number | null
}

type Place = { sessionId: string; epoch: number | null }

/** What became of an earlier request (remote protocol, "Receipts"; RF 28). It never fails: not to know is an answer. */
export class RequestStatus {
  readonly #deps: RequestStatusDeps

  constructor(deps: RequestStatusDeps) {
    this.#deps = deps
  }

  async of(question: StatusQuestion): Promise<RemoteResult> {
    const { deviceId, target } = question
    let status: ReceiptStatus | null = null
    try {
      // A request that names a session asks that session; one that names none may have been a host-wide one.
      const host = () => this.#deps.host.status(deviceId, target)
      status =
        question.sessionId === null
          ? (host() ?? (await this.#ofSession(question)))
          : ((await this.#ofSession(question)) ?? host())
    } catch (error) {
      console.warn('the status of a request could not be told:', errorName(error))
    }
    const known = status ?? { receipt: 'unknown' as const }
    return {
      type: 'request_status',
      target_request_id: target,
      receipt: known.receipt,
      ...('result' in known && known.result !== undefined ? { result: known.result } : {}),
    }
  }

  async #ofSession({
    deviceId,
    target,
    sessionId,
    registrationEpoch,
  }: StatusQuestion): Promise<ReceiptStatus | null> {
    const { sql, list, host } = this.#deps
    const noted = loadRequestSession(sql, deviceId, target)
    const named = sessionId === null ? noted : { sessionId, epoch: registrationEpoch }
    const ask = (place: Place) => this.#ask(deviceId, target, place)
    if (named !== null) {
      const listedEpoch = list.row(named.sessionId)?.registration_epoch ?? null
      if (sessionId !== null && listedEpoch !== null) {
        // Nothing of an older registration applies to a session that is listed.
        const isAnother = registrationEpoch !== null && registrationEpoch !== listedEpoch
        return isAnother ? null : ask({ sessionId, epoch: listedEpoch })
      }
      // Receipts outlive the listing (D29); but no object is asked that never had a request of this device.
      const known = noted?.sessionId === named.sessionId ? await ask(named) : null
      if (known !== null) return known
    } else {
      const asked = list.rows.map((row) => ask({ sessionId: row.session_id, epoch: row.registration_epoch }))
      // "Does not know" from one session is no answer.
      const known = await Promise.any(
        asked.map((answer) => answer.then((status) => status ?? Promise.reject())),
      ).catch(() => null)
      if (known !== null) return known
    }
    return host.deletedStatus({ deviceId, requestId: target, ...(named ?? { sessionId: null, epoch: null }) })
  }

  /** Null: it does not know, or does not answer. */
  async #ask(deviceId: string, target: string, { sessionId, epoch }: Place): Promise<ReceiptStatus | null> {
    const { session, userId } = this.#deps
    const place = { requestId: target, registrationEpoch: epoch }
    const asked = session(sessionId).requestStatus(userId(), deviceId, place)
    return withDeadline(asked, OWNER_TIMEOUT_MS).catch((error: unknown) => {
      console.warn(`session ${sessionId} did not answer what became of a request:`, errorName(error))
      return null
    })
  }
}
