import type { EventPush, GatewayRpc } from '../gateway/rpc.ts'
import { errorName } from '../protocol/error-name.ts'
import { byteLength } from '../storage/limits.ts'
import type { RingLine } from '../storage/session/ring-segments.ts'
import type { HeldSnapshot } from './rpc.ts'

/** Where followers are told of events. */
export type EventGateway = Pick<GatewayRpc, 'pushEvents'>

export type EventPusherDeps = {
  gateway(): EventGateway
  /** Whose events they are; null while the session is not listed: then nobody may follow it. */
  registration(): { userId: string; sessionId: string; epoch: number } | null
  /** The newest number, and what no event tells. */
  head(): { last: number; cutId: string }
  after(sequence: number): RingLine[]
  /** What was gathered of the model's words becomes events: a snapshot has them. */
  settle(): void
  snapshot(): HeldSnapshot
  /** The gateway says that nobody follows any more. */
  unwatched(): void
  /** The gateway could not be told for a while: the object has to wake at `retryAtMs`. */
  failed(): void
  keepAlive(work: Promise<unknown>): void
}

/** Events beyond this in one call are left for the gateway to pull. */
const MAX_PUSH_BYTES = 512 * 1024
/** A gateway that has not answered by then is called again. */
const PUSH_DEADLINE_MS = 30_000
/** A gateway that cannot be told is tried again after these times, and then each time the object's alarm rings for it. */
const RETRY_MS: readonly number[] = [500, 1_000, 2_000, 4_000]
/** So much later than the failure before it. */
const ALARM_RETRY_MS = 30_000

/**
 * Tells the gateway what happens while devices follow: one call at a time, everything since the one before in it, and no
 * turn ever waits for it (D34). What is lost on the way the gateway finds missing, and pulls.
 */
export class EventPusher {
  readonly #deps: EventPusherDeps
  #watched: boolean
  /** Up to here the gateway has been told. */
  #sent: { last: number; cutId: string } | null = null
  #pushing: { done: Promise<void>; startedAtMs: number } | null = null
  /** How often somebody began to follow: an answer that is older does not know of it. */
  #began = 0
  #failures = 0
  #retryAtMs: number | null = null
  #retry: ReturnType<typeof setTimeout> | null = null

  /** `watched`: devices followed when the object was last alive. What they were told by then is not known. */
  constructor(deps: EventPusherDeps, watched: boolean) {
    this.#deps = deps
    this.#watched = watched
  }

  get watched(): boolean {
    return this.#watched
  }

  /** Somebody begins to follow from here; whoever follows already may be told of this part once more. */
  watch(): void {
    this.#began++
    if (this.#watched) return
    this.#watched = true
    this.#sent = this.#deps.head()
  }

  /** Something happened, or is to be told again. */
  changed(): void {
    if (!this.#watched) return
    const registration = this.#deps.registration()
    if (registration === null) return
    if (this.#pushing !== null && Date.now() < this.#pushing.startedAtMs + PUSH_DEADLINE_MS) return
    const head = this.#deps.head()
    if (this.#sent?.last === head.last && this.#sent.cutId === head.cutId) return
    this.#stopRetry()
    const pushing = { startedAtMs: Date.now(), done: Promise.resolve() }
    const began = this.#began
    this.#pushing = pushing
    pushing.done = this.#push(registration).then(
      ({ told, watched }) => {
        if (this.#pushing !== pushing) return
        this.#pushing = null
        this.#failures = 0
        this.#retryAtMs = null
        this.#sent = told
        if (watched || began !== this.#began) this.changed()
        else this.#unwatched()
      },
      (error: unknown) => {
        if (this.#pushing !== pushing) return
        this.#pushing = null
        console.warn(`telling the devices failed: ${errorName(error)}`)
        // What reached it is not known: it compares, and pulls what its devices lack.
        this.#sent = null
        this.#retryLater()
      },
    )
    this.#deps.keepAlive(pushing.done)
  }

  /** When a gateway that could not be told is told again by the object's alarm; null when that is not owed. */
  get retryAtMs(): number | null {
    return this.#watched ? this.#retryAtMs : null
  }

  close(): void {
    this.#watched = false
    this.#pushing = null
    this.#stopRetry()
  }

  #unwatched(): void {
    this.#watched = false
    this.#deps.unwatched()
  }

  async #push({
    userId,
    sessionId,
    epoch,
  }: {
    userId: string
    sessionId: string
    epoch: number
  }): Promise<{ told: { last: number; cutId: string }; watched: boolean }> {
    this.#deps.settle()
    const { last, cutId } = this.#deps.head()
    const sent = this.#sent
    const lines = sent === null ? [] : this.#deps.after(sent.last)
    const events = sendable(lines, sent?.last ?? last, last)
    const push: EventPush = {
      sessionId,
      registrationEpoch: epoch,
      first: last - events.length + 1,
      events,
      last,
      snapshot: sent?.cutId === cutId ? null : this.#deps.snapshot(),
    }
    const { watched } = await this.#deps.gateway().pushEvents(userId, push)
    return { told: { last, cutId }, watched }
  }

  #retryLater(): void {
    const waitMs = RETRY_MS[this.#failures]
    this.#failures++
    if (waitMs === undefined) {
      this.#retryAtMs = Date.now() + ALARM_RETRY_MS
      this.#deps.failed()
      return
    }
    this.#retry ??= setTimeout(() => {
      this.#retry = null
      this.changed()
    }, waitMs)
  }

  #stopRetry(): void {
    if (this.#retry !== null) clearTimeout(this.#retry)
    this.#retry = null
  }
}

/** The events from `after` to `last`, if they are all held and not too many: else none of them. */
function sendable(lines: readonly RingLine[], after: number, last: number): string[] {
  if (lines[0]?.seq !== after + 1 || lines.at(-1)?.seq !== last || lines.length !== last - after) return []
  let bytes = 0
  for (const { json } of lines) bytes += byteLength(json)
  return bytes > MAX_PUSH_BYTES ? [] : lines.map(({ json }) => json)
}
