import { nextAlarm } from '../core/deadlines.ts'
import { LEASE_HEARTBEAT_MS } from '../core/run/state.ts'
import { D1_DEADLINE_MS } from '../storage/d1/deadline.ts'
import { type Checkpoint, isDrained } from '../storage/session/checkpoint.ts'

export type ObjectAlarmDeps = {
  checkpoint(): Checkpoint
  /** When the gateway is told of the session's row again, and of its events; null for not at all. */
  listingRetryAtMs(): number | null
  followersRetryAtMs(): number | null
  /** Something waits that nobody will ask for: a queued prompt, or a turn that was cut off. */
  hasSuccessor(): boolean
  /** Null takes the alarm back. */
  setAlarm(atMs: number | null): void
}

/** A prompt that was queued begins long before that. */
const SUCCESSOR_MS = 30_000

/** The one alarm of the object: when it has to wake for what it owes, if it has not been done by then. */
export class ObjectAlarm {
  readonly #deps: ObjectAlarmDeps
  /** Undefined until something had to be set: what the platform has stored is not asked for. */
  #atMs: number | null | undefined

  constructor(deps: ObjectAlarmDeps) {
    this.#deps = deps
  }

  /** It rang: the platform holds none now. */
  rang(): void {
    this.#atMs = null
  }

  /** Something that it is set by has changed. */
  arm(): void {
    const { checkpoint, listingRetryAtMs, followersRetryAtMs, setAlarm } = this.#deps
    const { state, outbox } = checkpoint()
    const at = nextAlarm({
      leaseHeartbeatAtMs: state?.active ? state.active.leaseUntilMs - 2 * LEASE_HEARTBEAT_MS : null,
      outboxRetryAtMs: this.#flushAtMs(),
      // What is on its way needs no alarm: if it is lost with the object, the gateway asks for it after a while.
      listingRetryAtMs: outbox.listing === null ? null : listingRetryAtMs(),
      followersRetryAtMs: followersRetryAtMs(),
      // Whoever is to go on with it may die before it has; then the alarm starts the object, and that begins with it.
      successorAtMs: this.#successorAtMs(),
    })
    if (at === this.#atMs) return
    this.#atMs = at
    setAlarm(at)
  }

  /** When something that waits for nobody else has to be looked at, if it has not begun by then. */
  #successorAtMs(): number | null {
    const { checkpoint, hasSuccessor } = this.#deps
    const isWaiting = checkpoint().state?.active == null && hasSuccessor()
    return isWaiting ? (this.#atMs ?? Date.now() + SUCCESSOR_MS) : null
  }

  /**
   * When the alarm has to send what D1 is owed. A flush follows each commit and takes the alarm back when it is through;
   * the alarm is for the one that fails, or that a crash leaves nobody to start (D26).
   */
  #flushAtMs(): number | null {
    const { state, outbox } = this.#deps.checkpoint()
    if (isDrained(outbox)) return null
    const nowMs = Date.now()
    if (outbox.retryAtMs !== null && outbox.retryAtMs > nowMs) return outbox.retryAtMs
    return state?.active ? null : (this.#atMs ?? nowMs + D1_DEADLINE_MS)
  }
}
