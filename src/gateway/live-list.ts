import { byId, inDoubt, nextLookMs, toDelist } from '../core/gateway/live-list.ts'
import type { RemoteSessionInfo } from '../protocol/remote/session-info.ts'
import {
  type Delisting,
  dropDelisting,
  dropRow,
  loadDelistings,
  loadRows,
  type StoredRow,
  saveDelisting,
  saveRow,
} from '../storage/gateway/live-rows.ts'
import type { Sql } from '../storage/session/sql.ts'
import type { UnlistReason } from './rpc.ts'

/** A row that turned to running is stored when it stays so this long: most turns are over by then, and one row does. */
const SETTLE_MS = 2_000
/** Sessions that left and are remembered in memory: a word is late by seconds, not more. */
const MAX_REMEMBERED = 256
/** Changes within this time after a push leave together. */
const PUSH_EVERY_MS = 250

export type LiveListDeps = {
  sql: Sql
  /** A registration is not listed any more; called before the change of the list is (RF 11). */
  ended(sessionId: string, epoch: number, reason: UnlistReason): void
  /** Somebody follows the list. */
  isFollowed(): boolean
  /** The list has changed. Called at once, then at most every `PUSH_EVERY_MS`. */
  changed(): void
  /** Sessions have to be told that they were taken off (`owed`). */
  delisted(): void
}

/** The sessions that are listed live. Their rows come whole from the sessions; which stay is decided here (D03). */
export class LiveList {
  readonly #deps: LiveListDeps
  readonly #rows = new Map<string, StoredRow & { heardAtMs: number }>()
  /** The newest registration of sessions that left a while ago, for words that were late. */
  readonly #removed = new Map<string, number>()
  /** Rows that are newer in memory than in storage. */
  readonly #unstored = new Set<string>()
  #storing: ReturnType<typeof setTimeout> | null = null
  #pushing: ReturnType<typeof setTimeout> | null = null
  #pushedAtMs = 0

  constructor(deps: LiveListDeps) {
    this.#deps = deps
    for (const stored of loadRows(deps.sql))
      this.#rows.set(stored.row.session_id, { ...stored, heardAtMs: stored.touchedAtMs })
  }

  /** In the order in which clients show them (RF 11). */
  get rows(): RemoteSessionInfo[] {
    return byId([...this.#rows.values()].map(({ row }) => row))
  }

  /** The row that a session is listed with; null when it is not. */
  row(sessionId: string): RemoteSessionInfo | null {
    return this.#rows.get(sessionId)?.row ?? null
  }

  /** When a session will have been idle for too long, or has to be asked. */
  get nextLookMs(): number | null {
    return nextLookMs(this.#listed())
  }

  /** The sessions that have to be asked whether they still run. Each is named once, until its row changes. */
  askWhom(nowMs: number): string[] {
    const asked = inDoubt(this.#listed(), nowMs)
    for (const sessionId of asked) {
      const stored = this.#rows.get(sessionId)
      if (stored) this.#rows.set(sessionId, { ...stored, isAsked: true })
      this.#store(sessionId)
    }
    return asked
  }

  /** Registrations that ended here, and whose sessions do not know. */
  get owed(): Delisting[] {
    return loadDelistings(this.#deps.sql)
  }

  told(delisting: Delisting): void {
    dropDelisting(this.#deps.sql, delisting)
  }

  /** Takes a session's row. False: this registration has ended here. */
  put(given: RemoteSessionInfo, nowMs: number): boolean {
    const { session_id: sessionId, registration_epoch: epoch } = given
    const ended = this.owed.find((delisting) => delisting.sessionId === sessionId)
    if (ended && epoch <= ended.epoch) return false
    const removed = this.#removed.get(sessionId)
    // A word that was on its way while the session left the list.
    if (removed !== undefined && epoch <= removed) return true
    const before = this.#rows.get(sessionId)
    // Only the session numbers its registrations: an older one is a late word.
    if (before && before.row.registration_epoch > epoch) return true
    // Health is ours to say: while a session is listed its object can be reached (D03).
    const row: RemoteSessionInfo = { ...given, health: 'live' }
    if (before && JSON.stringify(before.row) === JSON.stringify(row)) {
      this.#rows.set(sessionId, { ...before, heardAtMs: nowMs })
      return true
    }
    const changed = { row, touchedAtMs: nowMs, heardAtMs: nowMs, isAsked: false }
    const isPassing = before?.row.registration_epoch === epoch && row.activity === 'running'
    // Stored first: what fails to be stored is as if it had not been said, and is said again.
    if (!isPassing) saveRow(this.#deps.sql, changed)
    this.#rows.set(sessionId, changed)
    if (isPassing) this.#storeLater(sessionId)
    else this.#isStored(sessionId)
    if (before && before.row.registration_epoch < epoch)
      this.#deps.ended(sessionId, before.row.registration_epoch, 'owner_exited')
    this.#delist(nowMs, sessionId)
    this.#push(nowMs)
    return true
  }

  /** Takes a session off that is listed under this registration or an older one. */
  remove(
    {
      sessionId,
      registrationEpoch,
      reason,
    }: { sessionId: string; registrationEpoch: number; reason: UnlistReason },
    nowMs: number,
  ): void {
    this.#remember(sessionId, registrationEpoch)
    const before = this.#rows.get(sessionId)
    if (!before || before.row.registration_epoch > registrationEpoch) return
    dropRow(this.#deps.sql, sessionId)
    this.#rows.delete(sessionId)
    this.#isStored(sessionId)
    this.#deps.ended(sessionId, before.row.registration_epoch, reason)
    this.#push(nowMs)
  }

  #remember(sessionId: string, epoch: number): void {
    this.#removed.delete(sessionId)
    this.#removed.set(sessionId, epoch)
    const oldest = this.#removed.keys().next().value
    if (this.#removed.size > MAX_REMEMBERED && oldest !== undefined) this.#removed.delete(oldest)
  }

  /** Takes off what has been idle for too long. */
  expire(nowMs: number): void {
    if (this.#delist(nowMs)) this.#push(nowMs)
  }

  #listed() {
    return [...this.#rows.values()].map(({ row, touchedAtMs, heardAtMs, isAsked }) => ({
      sessionId: row.session_id,
      activity: row.activity,
      touchedAtMs,
      heardAtMs,
      isAsked,
    }))
  }

  #delist(nowMs: number, spoke?: string): boolean {
    const leaving = toDelist(this.#listed(), nowMs, spoke)
    if (leaving.length === 0) return false
    const { sql } = this.#deps
    sql.transaction(() => {
      for (const sessionId of leaving) {
        const epoch = this.#rows.get(sessionId)?.row.registration_epoch
        if (epoch !== undefined) saveDelisting(sql, { sessionId, epoch })
        dropRow(sql, sessionId)
      }
    })
    for (const sessionId of leaving) {
      const epoch = this.#rows.get(sessionId)?.row.registration_epoch
      this.#rows.delete(sessionId)
      this.#isStored(sessionId)
      if (epoch !== undefined) this.#deps.ended(sessionId, epoch, 'owner_exited')
    }
    this.#deps.delisted()
    return true
  }

  #store(sessionId: string): void {
    const stored = this.#rows.get(sessionId)
    if (stored) saveRow(this.#deps.sql, stored)
    this.#isStored(sessionId)
  }

  /** A timer that has nothing left to do would keep the gateway awake. */
  #isStored(sessionId: string): void {
    this.#unstored.delete(sessionId)
    if (this.#unstored.size > 0 || this.#storing === null) return
    clearTimeout(this.#storing)
    this.#storing = null
  }

  #storeLater(sessionId: string): void {
    this.#unstored.add(sessionId)
    // If the object dies before, the session's next word repairs it: a turn that goes on speaks every 30 s.
    this.#storing ??= setTimeout(() => {
      this.#storing = null
      for (const waiting of [...this.#unstored]) this.#store(waiting)
    }, SETTLE_MS)
  }

  #push(nowMs: number): void {
    if (this.#pushing !== null || !this.#deps.isFollowed()) return
    const waitMs = this.#pushedAtMs + PUSH_EVERY_MS - nowMs
    const push = (): void => {
      this.#pushing = null
      this.#pushedAtMs = Date.now()
      this.#deps.changed()
    }
    if (waitMs <= 0) push()
    else this.#pushing = setTimeout(push, waitMs)
  }

  /** The gateway goes away. */
  stop(): void {
    if (this.#storing !== null) clearTimeout(this.#storing)
    if (this.#pushing !== null) clearTimeout(this.#pushing)
    this.#unstored.clear()
  }
}
