import { errorName } from '../protocol/error-name.ts'
import type { SessionRpc } from '../session/rpc.ts'
import { withDeadline } from '../storage/d1/deadline.ts'
import { retryDelayMs } from '../storage/outbox.ts'
import type { LiveList } from './live-list.ts'

/** What a gateway asks of a session. */
export type ListedSession = Pick<
  SessionRpc,
  'delisted' | 'relist' | 'attach' | 'pull' | 'operate' | 'requestStatus' | 'share'
>

/** A session that does not answer by then is tried again. */
const CALL_DEADLINE_MS = 30_000

export type SessionCallsDeps = {
  session(sessionId: string): Pick<ListedSession, 'delisted' | 'relist'>
  userId(): string
  list: LiveList
  arm(): void
}

/** What the gateway says to sessions of its own accord (D03). One call after the other; whoever starts it does not wait. */
export class SessionCalls {
  readonly #deps: SessionCallsDeps
  #failures = 0
  #telling: Promise<void> | null = null

  constructor(deps: SessionCallsDeps) {
    this.#deps = deps
  }

  /** When sessions have to be told, at the latest, that they left the list; null when all of them know. */
  get retryAtMs(): number | null {
    if (this.#deps.list.owed.length === 0) return null
    return Date.now() + (this.#failures === 0 ? CALL_DEADLINE_MS : retryDelayMs(this.#failures))
  }

  /** Tells sessions that they were taken off the list. What fails is tried again by the alarm. */
  tellDelisted(): Promise<void> {
    this.#telling ??= this.#tellAll().finally(() => {
      this.#telling = null
      this.#deps.arm()
    })
    return this.#telling
  }

  /** Has sessions push their rows; one that is gone leaves the list. What fails stays as it is. */
  async ask(sessionIds: readonly string[]): Promise<void> {
    const { list, session, userId } = this.#deps
    for (const sessionId of sessionIds) {
      const registrationEpoch = list.row(sessionId)?.registration_epoch ?? 0
      try {
        const isThere = await withDeadline(session(sessionId).relist(userId()), CALL_DEADLINE_MS)
        if (!isThere) list.remove({ sessionId, registrationEpoch, reason: 'owner_exited' }, Date.now())
      } catch (error) {
        console.warn(`session ${sessionId} could not be asked for its row:`, errorName(error))
      }
    }
  }

  async #tellAll(): Promise<void> {
    const { list, session, userId } = this.#deps
    let hasFailed = false
    for (const delisting of list.owed) {
      const { sessionId, epoch } = delisting
      try {
        await withDeadline(session(sessionId).delisted(userId(), epoch), CALL_DEADLINE_MS)
        list.told(delisting)
      } catch (error) {
        console.warn(`session ${sessionId} could not be told that it left the list:`, errorName(error))
        hasFailed = true
      }
    }
    this.#failures = hasFailed ? this.#failures + 1 : 0
  }
}
