import { derivedTitle, liveRow } from '../core/live-row.ts'
import type { RunInput } from '../core/turn-view.ts'
import type { RemoteSessionInfo } from '../protocol/remote/session-info.ts'
import { type Checkpoint, runsBegun } from '../storage/session/checkpoint.ts'
import { newestMessageAtMs, nextUserMessage } from '../storage/session/live-facts.ts'
import { countQueued } from '../storage/session/prompt-queue.ts'
import { loadClearInput } from '../storage/session/run-input.ts'
import type { SessionRow } from '../storage/session/session-row.ts'
import type { Sql } from '../storage/session/sql.ts'

/** The root of the latest run's workspace, and the title that the user's words give; null where there is none. */
export type SessionLabels = { workspace: string | null; derivedTitle: string | null }

/**
 * Makes a session's row of the live list. It is made with every step: what would have to be searched for in a long session,
 * or read out of a large row, is remembered.
 */
export class RowSource {
  readonly #sql: Sql
  /** Undefined: not looked for yet. */
  #workspace: string | null | undefined
  #title: string | null = null
  /** Up to here the transcript was searched for words that make a title. */
  #searchedTo = 0
  #runs: number | undefined

  constructor(sql: Sql) {
    this.#sql = sql
  }

  /** A run begins with this. */
  begins({ workspace }: RunInput): void {
    this.#workspace = workspace.root
  }

  /** What every list shows of the session beside its own row. */
  labels({ keyId }: SessionRow, { state }: Pick<Checkpoint, 'state'>): SessionLabels {
    if (this.#workspace === undefined)
      this.#workspace = state === null ? null : loadClearInput(this.#sql).workspace.root
    return { workspace: this.#workspace, derivedTitle: keyId === null ? this.#derivedTitle() : null }
  }

  row(session: SessionRow & { epoch: number }, { state, counters }: Checkpoint): RemoteSessionInfo {
    // Counted once where an older release has not.
    this.#runs = counters.runs ?? this.#runs ?? runsBegun(this.#sql, counters)
    return liveRow(state, {
      sessionId: session.sessionId,
      registrationEpoch: session.epoch,
      title: session.title,
      ...this.labels(session, { state }),
      runs: this.#runs,
      queued: countQueued(this.#sql),
      lastMessageAtMs: newestMessageAtMs(this.#sql),
    })
  }

  #derivedTitle(): string | null {
    while (this.#title === null) {
      const said = nextUserMessage(this.#sql, this.#searchedTo)
      if (said === null) return null
      this.#searchedTo = said.seq
      this.#title = derivedTitle(said.text)
    }
    return this.#title
  }
}
