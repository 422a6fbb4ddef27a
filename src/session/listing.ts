import { isNews } from '../core/live-row.ts'
import { type Bucket, type BucketRate, takeToken } from '../core/token-bucket.ts'
import type { GatewayRpc, UnlistReason } from '../gateway/rpc.ts'
import { errorName } from '../protocol/error-name.ts'
import type { RemoteSessionInfo } from '../protocol/remote/session-info.ts'
import { retryDelaySinceMs } from '../storage/outbox.ts'
import type { SessionRow } from '../storage/session/session-row.ts'

/** What a session asks of its user's gateway. */
export type ListGateway = Pick<GatewayRpc, 'putRow' | 'removeRow'>

export type ListingDeps = {
  gateway(userId: string): ListGateway
  session(): SessionRow | null
  row(session: SessionRow & { epoch: number }): RemoteSessionInfo
  /** A turn is being served. */
  isServing(): boolean
  /** Since when the gateway may lack the newest row; null when it has it. */
  owedSinceMs(): number | null
  /** The gateway has the newest row. */
  paid(): void
  /** The gateway could not be told: the object has to wake at `retryAtMs`. */
  failed(): void
  /** The gateway took this registration off. `byRun`: it said so of a row that a run had caused. */
  lost(epoch: number, byRun: boolean): void
  keepAlive(work: Promise<unknown>): void
}

/** A plain turn has two or three rows to tell, at once; more of them leave one by one (D33). */
const PUSH_RATE: BucketRate = { periodMs: 1_000, burst: 4 }
/** A call that has no answer by then is given up when there is something new to tell: as long as we wait for D1. */
const PUSH_DEADLINE_MS = 30_000

type Told = { k: 'row'; row: RemoteSessionInfo } | { k: 'gone'; epoch: number }
type Telling = { userId: string } & (
  | { k: 'row'; row: RemoteSessionInfo }
  | { k: 'gone'; epoch: number; sessionId: string; reason: UnlistReason }
)

/**
 * Keeps the user's gateway told of this session's row in the live list (D03): one call at a time, the newest row each
 * time, and never so that a turn waits for it. What it knows of the gateway is in memory; that something is owed is stored.
 */
export class Listing {
  readonly #deps: ListingDeps
  /** Calls over one stub arrive in the order in which they were made. One that failed may be broken. */
  #stub: ListGateway | null = null
  /** What the gateway has; null when that is not known. */
  #told: Told | null = null
  #telling: { startedAtMs: number; done: Promise<void> } | null = null
  #bucket: Bucket | undefined
  #timer: ReturnType<typeof setTimeout> | null = null
  #retryAtMs: number | null = null
  /** A run went on since the gateway was last told something. */
  #byRun = false
  #closed = false

  constructor(deps: ListingDeps) {
    this.#deps = deps
  }

  /** When a gateway that could not be told is told again. */
  get retryAtMs(): number | null {
    return this.#retryAtMs
  }

  /** Something was stored that the row may be made of. Never throws: the list is worth no turn. */
  changed(): void {
    this.#byRun ||= this.#deps.isServing()
    this.#look(false)
  }

  /** The object's alarm rang. `again`: what the gateway has is told once more, since it may have forgotten it. */
  ring({ again }: { again: boolean }): void {
    if (again) this.#told = null
    this.changed()
  }

  /** The gateway says that it took this registration off by itself. */
  wasTakenOff(epoch: number): void {
    this.#told = { k: 'gone', epoch }
  }

  /** Resolves when the gateway has been told, or could not be; not while a row waits for its time. */
  async told(): Promise<void> {
    while (this.#telling !== null) await this.#telling.done
  }

  /** Nothing is told any more. */
  close(): void {
    this.#closed = true
    this.#stopTimer()
    this.#telling = null
  }

  /** The session is being deleted: it leaves the list for good. Throws when the gateway could not be told. */
  async end({ sessionId, userId, epoch }: SessionRow): Promise<void> {
    this.close()
    // Told even if nothing seems to be owed: what is known of the gateway is in memory, and this is the last word.
    if (epoch === null) return
    await this.#tell({ k: 'gone', userId, sessionId, epoch, reason: 'owner_exited' })
  }

  #look(waited: boolean): void {
    if (this.#closed || this.#deps.owedSinceMs() === null) return
    // Its last word is `end`.
    if (this.#deps.session()?.deletedAtMs != null) return
    const nowMs = Date.now()
    if (this.#telling !== null) {
      if (nowMs < this.#telling.startedAtMs + PUSH_DEADLINE_MS) return
      this.#telling = null
      this.#stub = null
    }
    if (this.#retryAtMs !== null && nowMs < this.#retryAtMs) return
    try {
      const next = this.#next()
      if (next === null) this.#deps.paid()
      else if (waited || this.#isUrgent(next)) this.#start(next)
      else if (this.#timer === null) {
        const { bucket, waitMs } = takeToken(this.#bucket, PUSH_RATE, nowMs)
        this.#bucket = bucket
        if (waitMs === 0) this.#start(next)
        else {
          const rowIsDue = (): void => this.#waited()
          this.#timer = setTimeout(rowIsDue, waitMs)
        }
      }
    } catch (error) {
      console.error('the row of the live list could not be made:', errorName(error))
    }
  }

  /** Leaving, and a registration that the gateway has not heard of: whoever caused it goes on with it at once. */
  #isUrgent(next: Telling): boolean {
    if (next.k === 'gone') return true
    return this.#told?.k !== 'row' || this.#told.row.registration_epoch !== next.row.registration_epoch
  }

  #waited(): void {
    this.#timer = null
    this.#bucket = { tokens: 0, updatedAtMs: Date.now() }
    this.#look(true)
  }

  /** What the gateway has to be told; null when it knows. */
  #next(): Telling | null {
    const session = this.#deps.session()
    if (session === null || session.epoch === null || session.deletedAtMs !== null) return null
    const { sessionId, userId, epoch } = session
    if (session.listed) {
      const row = this.#deps.row({ ...session, epoch })
      return this.#told?.k === 'row' && !isNews(this.#told.row, row) ? null : { k: 'row', userId, row }
    }
    if (this.#told?.k === 'gone' && this.#told.epoch === epoch) return null
    const byOwner = session.sharingOff && session.archivedAtMs === null
    return { k: 'gone', userId, sessionId, epoch, reason: byOwner ? 'sharing_disabled' : 'owner_exited' }
  }

  #start(next: Telling): void {
    this.#stopTimer()
    this.#retryAtMs = null
    const byRun = this.#byRun
    this.#byRun = false
    const telling = { startedAtMs: Date.now(), done: Promise.resolve() }
    this.#telling = telling
    telling.done = this.#tell(next).then(
      (isKept) => {
        if (this.#telling !== telling) return
        this.#telling = null
        this.#answered(next, isKept, byRun)
      },
      (error: unknown) => {
        if (this.#telling !== telling) return
        this.#telling = null
        this.#byRun ||= byRun
        const nowMs = Date.now()
        this.#retryAtMs = nowMs + retryDelaySinceMs(this.#deps.owedSinceMs() ?? nowMs, nowMs)
        console.warn(`telling the live list failed: ${errorName(error)}`)
        this.#deps.failed()
      },
    )
    this.#deps.keepAlive(telling.done)
  }

  #answered(next: Telling, isKept: boolean, byRun: boolean): void {
    if (next.k === 'row' && isKept) this.#told = { k: 'row', row: next.row }
    else {
      const epoch = next.k === 'row' ? next.row.registration_epoch : next.epoch
      this.#told = { k: 'gone', epoch }
      if (next.k === 'row') this.#deps.lost(epoch, byRun)
    }
    this.#look(false)
  }

  async #tell(next: Telling): Promise<boolean> {
    this.#stub ??= this.#deps.gateway(next.userId)
    const stub = this.#stub
    try {
      if (next.k === 'row') return await stub.putRow(next.userId, next.row)
      const { sessionId, epoch: registrationEpoch, reason } = next
      await stub.removeRow(next.userId, { sessionId, registrationEpoch, reason })
      return true
    } catch (error) {
      if (this.#stub === stub) this.#stub = null
      throw error
    }
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }
}
