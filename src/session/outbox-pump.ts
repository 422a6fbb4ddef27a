import { type CopyBatch, writeCopy } from '../storage/d1/copy.ts'
import { openDatabase } from '../storage/d1/database.ts'
import { sessionExists } from '../storage/d1/sessions.ts'
import { MAX_BATCH_STATEMENTS } from '../storage/limits.ts'
import { drain, retryDelayMs } from '../storage/outbox.ts'
import { type Checkpoint, EMPTY_OUTBOX, isDrained, type Outbox } from '../storage/session/checkpoint.ts'
import { loadOwed, type OwedChange, settleOwed } from '../storage/session/memories.ts'
import { loadMessages } from '../storage/session/messages.ts'
import { loadSession } from '../storage/session/session-row.ts'
import type { Sql } from '../storage/session/sql.ts'
import { loadTurns } from '../storage/session/turns.ts'
import { ANSWER_WAIT_MS, atMost, D1_DEADLINE_MS, withDeadline } from './waiting.ts'

type Batch = CopyBatch & { rev: number; messagesTo: number | null; turnsTo: number | null }

export type PumpDeps = {
  sql: Sql
  db: D1Database
  checkpoint(): Checkpoint
  /** Stores the outbox, and wakes the object at its retry. */
  saveOutbox(outbox: Outbox): void
}

/** Carries the session's rows to D1, one flush at a time (D26). */
export class OutboxPump {
  readonly #deps: PumpDeps
  #running: Promise<void> | null = null

  constructor(deps: PumpDeps) {
    this.#deps = deps
  }

  /** Starts a flush unless one is under way, and waits for it a moment. Never throws. */
  async flush(): Promise<void> {
    if (isDrained(this.#deps.checkpoint().outbox)) return
    this.#running ??= this.#drain().finally(() => {
      this.#running = null
    })
    await atMost(this.#running, ANSWER_WAIT_MS)
  }

  async #drain(): Promise<void> {
    const { sql, db, checkpoint, saveOutbox } = this.#deps
    const database = openDatabase(db)
    await drain<Batch>({
      next: () => nextBatch(sql, checkpoint()),
      write: (batch) => withDeadline(writeCopy(database, batch), D1_DEADLINE_MS),
      written: (batch) => saveOutbox(afterWrite(checkpoint(), batch, settleOwed(sql, batch.memory))),
      stillWanted: () =>
        withDeadline(sessionExists(database, loadSession(sql)?.sessionId ?? ''), D1_DEADLINE_MS),
      // What is remembered of the user outlives the session.
      discard: () => saveOutbox({ ...EMPTY_OUTBOX, memory: settleOwed(sql, ofSession(loadOwed(sql))) }),
      failed: (error) => {
        const { outbox } = checkpoint()
        const failures = outbox.failures + 1
        saveOutbox({ ...outbox, failures, retryAtMs: Date.now() + retryDelayMs(failures) })
        console.warn(
          `copy to D1 failed (${failures} in a row): ${error instanceof Error ? error.name : 'error'}`,
        )
      },
    })
  }
}

function nextBatch(sql: Sql, { outbox, counters }: Checkpoint): Batch | null {
  if (isDrained(outbox)) return null
  const session = loadSession(sql)
  if (!session || session.deletedAtMs !== null) return null
  const room = MAX_BATCH_STATEMENTS - 1
  const messages = outbox.messagesFrom === null ? [] : loadMessages(sql, outbox.messagesFrom, room)
  const turnRoom = room - messages.length
  const turns = outbox.turnsFrom === null || turnRoom === 0 ? [] : loadTurns(sql, outbox.turnsFrom, turnRoom)
  const memoryRoom = turnRoom - turns.length
  return {
    session,
    messages,
    turns,
    memory: outbox.memory && memoryRoom > 0 ? loadOwed(sql, memoryRoom) : [],
    rev: counters.rev,
    messagesTo: messages.length === room ? (messages.at(-1)?.seq ?? null) : null,
    turnsTo: turns.length === turnRoom ? (turns.at(-1)?.seq ?? null) : null,
  }
}

const ofSession = (owed: readonly OwedChange[]): OwedChange[] =>
  owed.filter(({ change }) => change.scope === 'session')

/** What is still owed after a batch: nothing new may be forgotten that was committed while it was on its way. */
function afterWrite({ outbox, counters }: Checkpoint, batch: Batch, memory: boolean): Outbox {
  const calm: Outbox = { ...outbox, memory, failures: 0, retryAtMs: null }
  if (counters.rev !== batch.rev) return calm
  const turnsSent = batch.turns.length > 0 || batch.messagesTo === null
  return {
    ...calm,
    session: false,
    messagesFrom: batch.messagesTo === null ? null : batch.messagesTo + 1,
    turnsFrom: !turnsSent ? outbox.turnsFrom : batch.turnsTo === null ? null : batch.turnsTo + 1,
  }
}
