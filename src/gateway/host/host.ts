import { usageSummary, usageWindow } from '../../core/usage-summary.ts'
import { errorTrace } from '../../protocol/error-name.ts'
import type { RequestEnvelope } from '../../protocol/remote/decode-request.ts'
import type { HostCapability } from '../../protocol/remote/host-results.ts'
import { isMutation } from '../../protocol/remote/operation-kinds.ts'
import type { RemoteOperation } from '../../protocol/remote/operations.ts'
import type { ReceiptState, RemoteResult } from '../../protocol/remote/results.ts'
import type { Actor, ReceiptStatus, SessionRpc } from '../../session/rpc.ts'
import { type Database, openDatabase } from '../../storage/d1/database.ts'
import { StorageFault } from '../../storage/d1/fault.ts'
import type { ReceiptTarget } from '../../storage/d1/receipts.ts'
import { listUsage } from '../../storage/d1/usage.ts'
import type { Sql } from '../../storage/session/sql.ts'
import { type Refusal, refusal } from '../refusal.ts'
import { deletedStatus } from './deleted-status.ts'
import type { HostOutcome } from './outcome.ts'
import { HostReceipts } from './receipts.ts'
import { type OpenList, resumeSession } from './resume-session.ts'
import { savedSessionsPage } from './saved-sessions.ts'
import { getSettings, setSettings } from './settings.ts'
import { markSession } from './thread-marks.ts'

/** What the gateway does itself for a device: operations that name no live session (remote protocol, "Operations"). */
export interface HostOperations {
  /** The optional operations that are served, as `sessions` results list them. */
  capabilities(): HostCapability[]
  /** Never rejects for bad input. `receipt` is null for what changes nothing. */
  serve(
    actor: Actor,
    request: RequestEnvelope,
  ): Promise<{ receipt: ReceiptState | null; result: RemoteResult }>
  /** What became of an earlier host-wide mutation of this device; null when it is not known here. */
  status(deviceId: string, requestId: string): ReceiptStatus | null
  /**
   * What became of a mutation of a session that is not listed any more, or was deleted (D26): to be asked when neither
   * `status` nor any listed session knows it. Null when the copy does not know it either. Throws a `StorageFault`.
   */
  deletedStatus(target: ReceiptTarget): Promise<ReceiptStatus | null>
}

export type HostDeps = {
  sql: Sql
  db: D1Database
  userId(): string
  list: OpenList
  session(sessionId: string): Pick<SessionRpc, 'share' | 'delisted'>
  /** Work that goes on after the event that began it. */
  keepAlive(work: Promise<unknown>): void
}

const CAPABILITIES: readonly HostCapability[] = [
  'saved_sessions',
  'usage_summary',
  'settings_get',
  'settings_set',
  'thread_pin',
  'thread_unpin',
  'thread_settle',
  'thread_unsettle',
]

/** Serves host-wide operations from D1 (design: who owns which fact), and keeps the receipts of those that change something. */
export class Host implements HostOperations {
  readonly #deps: HostDeps
  readonly #receipts: HostReceipts

  constructor(deps: HostDeps) {
    this.#deps = deps
    this.#receipts = new HostReceipts({
      sql: deps.sql,
      work: (operation) => this.#carryOut(operation),
      keepAlive: deps.keepAlive,
      now: Date.now,
    })
  }

  capabilities(): HostCapability[] {
    return [...CAPABILITIES]
  }

  async serve(
    actor: Actor,
    request: RequestEnvelope,
  ): Promise<{ receipt: ReceiptState | null; result: RemoteResult }> {
    const { operation } = request
    if (isMutation(operation.type))
      return isServed(operation) ? this.#receipts.serve(actor.id, request) : rejectedUnserved(operation)
    try {
      return { receipt: null, result: await this.#read(operation) }
    } catch (error) {
      return { receipt: null, result: faultOf(operation, error) }
    }
  }

  status(deviceId: string, requestId: string): ReceiptStatus | null {
    return this.#receipts.status(deviceId, requestId)
  }

  deletedStatus(target: ReceiptTarget): Promise<ReceiptStatus | null> {
    return deletedStatus(this.#db, this.#deps.userId(), target)
  }

  get #db(): Database {
    return openDatabase(this.#deps.db)
  }

  async #read(operation: RemoteOperation): Promise<RemoteResult> {
    const { list, userId } = this.#deps
    switch (operation.type) {
      case 'list_saved_sessions':
        return savedSessionsPage(this.#db, userId(), operation, (id) => list.row(id) !== null)
      case 'get_usage': {
        const window = usageWindow(Date.now())
        return usageSummary(await listUsage(this.#db, userId(), window.sinceMs), window)
      }
      case 'get_settings':
        return getSettings(this.#db, userId())
      default:
        return unserved(operation)
    }
  }

  /** What fails in D1 may have been done all the same. */
  async #carryOut(operation: RemoteOperation): Promise<HostOutcome> {
    const { list, session } = this.#deps
    const userId = this.#deps.userId()
    try {
      switch (operation.type) {
        case 'resume_session':
          return await resumeSession(
            { db: this.#db, userId, list, session, now: Date.now },
            operation.session_id,
          )
        case 'set_settings':
          return await setSettings(this.#db, userId, operation.settings)
        case 'pin_thread':
        case 'unpin_thread':
        case 'settle_thread':
        case 'unsettle_thread':
          return await markSession(this.#db, userId, operation, Date.now())
        default:
          return rejectedUnserved(operation)
      }
    } catch (error) {
      if (!(error instanceof StorageFault)) throw error
      return { receipt: 'undecided', result: faultOf(operation, error) }
    }
  }
}

const SERVED: ReadonlySet<RemoteOperation['type']> = new Set<RemoteOperation['type']>([
  'resume_session',
  'set_settings',
  'pin_thread',
  'unpin_thread',
  'settle_thread',
  'unsettle_thread',
])

const isServed = ({ type }: RemoteOperation): boolean => SERVED.has(type)

const unserved = ({ type }: RemoteOperation): Refusal =>
  refusal('unsupported_operation', `this router does not serve ${type}`)

const rejectedUnserved = (operation: RemoteOperation) =>
  ({ receipt: 'rejected', result: unserved(operation) }) as const

function faultOf({ type }: RemoteOperation, error: unknown): Refusal {
  console.error(`serving ${type} failed:`, errorTrace(error))
  const message =
    error instanceof StorageFault
      ? 'the database did not answer; try again'
      : 'the router failed to serve this request'
  return refusal('internal', message)
}
