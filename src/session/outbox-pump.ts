import { errorName } from '../protocol/error-name.ts'
import { type CopyBatch, writeCopy } from '../storage/d1/copy.ts'
import { openDatabase } from '../storage/d1/database.ts'
import { D1_DEADLINE_MS, withDeadline } from '../storage/d1/deadline.ts'
import { sessionExists } from '../storage/d1/sessions.ts'
import { MAX_BATCH_BYTES, MAX_BATCH_STATEMENTS } from '../storage/limits.ts'
import { drain, retryDelayMs } from '../storage/outbox.ts'
import { type Checkpoint, EMPTY_OUTBOX, isDrained, type Outbox } from '../storage/session/checkpoint.ts'
import { newestReceiptSeq, receiptsToCopy } from '../storage/session/copy-receipts.ts'
import { messagesToCopy, turnsToCopy } from '../storage/session/copy-rows.ts'
import { loadOwed, type OwedChange, settleOwed } from '../storage/session/memories.ts'
import { loadSession, type SessionRow } from '../storage/session/session-row.ts'
import type { Sql } from '../storage/session/sql.ts'
import type { SessionLabels } from './row-source.ts'
import { ANSWER_WAIT_MS, atMost } from './waiting.ts'

type Batch = CopyBatch & {
  rev: number
  messagesTo: number | null
  /** Null when it holds the last of them; undefined when it had no room for any. */
  turnsTo: number | null | undefined
}

export type PumpDeps = {
  sql: Sql
  db: D1Database
  checkpoint(): Checkpoint
  /** What lists show of the session beside its own row. */
  labels(session: SessionRow): SessionLabels
  /** Stores the outbox, and wakes the object at its retry. */
  saveOutbox(outbox: Outbox): void
}

/** Carries the session's rows to D1, one flush at a time (D26). */
export class OutboxPump {
  readonly #deps: PumpDeps
  #running: Promise<void> | null = null
  #abandoned = false

  constructor(deps: PumpDeps) {
    this.#deps = deps
  }

  /** Starts a flush unless one is under way, and waits for it a moment. Never throws. */
  async flush(): Promise<void> {
    if (isDrained(this.#deps.checkpoint().outbox)) return
    // Even what failed may fail to be noted. Whoever waits here has an answer to give, and the alarm is set.
    this.#running ??= this.#drain()
      .catch((error) => console.error('the copy to D1 failed, and so did noting it:', error))
      .finally(() => {
        this.#running = null
      })
    await atMost(this.#running, ANSWER_WAIT_MS)
  }

  /** The session is being deleted: nothing is sent any more, and what is on its way has nowhere to be noted. */
  abandon(): void {
    this.#abandoned = true
  }

  async #drain(): Promise<void> {
    const { sql, db, checkpoint, labels, saveOutbox } = this.#deps
    const database = openDatabase(db)
    await drain<Batch>({
      next: () => (this.#abandoned ? null : nextBatch(sql, checkpoint(), labels)),
      write: (batch) => withDeadline(writeCopy(database, batch), D1_DEADLINE_MS),
      written: (batch) => {
        if (this.#abandoned) return
        saveOutbox(afterWrite(sql, checkpoint(), batch))
      },
      stillWanted: async () =>
        this.#abandoned ||
        withDeadline(sessionExists(database, loadSession(sql)?.sessionId ?? ''), D1_DEADLINE_MS),
      discard: () => {
        if (this.#abandoned) return
        // What is remembered of the user outlives the session.
        saveOutbox({ ...EMPTY_OUTBOX, memory: settleOwed(sql, ofSession(loadOwed(sql))) })
      },
      failed: (error) => {
        if (this.#abandoned) return
        const { outbox } = checkpoint()
        const failures = outbox.failures + 1
        saveOutbox({ ...outbox, failures, retryAtMs: Date.now() + retryDelayMs(failures) })
        console.warn(`copy to D1 failed (${failures} in a row): ${errorName(error)}`)
      },
    })
  }
}

function nextBatch(sql: Sql, { outbox, counters }: Checkpoint, labelsOf: PumpDeps['labels']): Batch | null {
  if (isDrained(outbox)) return null
  const session = loadSession(sql)
  if (!session || session.deletedAtMs !== null) return null
  const room = MAX_BATCH_STATEMENTS - 1
  const bytes = MAX_BATCH_BYTES
  const sealed = session.keyId !== null
  const messages =
    outbox.messagesFrom === null
      ? NO_ROWS
      : messagesToCopy(sql, outbox.messagesFrom, { rows: room, bytes }, sealed)
  const turnRoom = room - messages.rows.length
  // While messages are left over, turns wait: what a batch weighs is then bounded by one limit after the other.
  const turns =
    outbox.turnsFrom === null
      ? NO_ROWS
      : turnRoom === 0 || messages.to !== null
        ? { rows: [], to: undefined }
        : turnsToCopy(sql, outbox.turnsFrom, { rows: turnRoom, bytes }, sealed)
  const memoryRoom = turnRoom - turns.rows.length
  const memory = outbox.memory && memoryRoom > 0 ? loadOwed(sql, memoryRoom) : []
  const receiptRoom = memoryRoom - memory.length
  return {
    session,
    shown: { ...labelsOf(session), messageCount: counters.message },
    messages: messages.rows,
    turns: turns.rows,
    memory,
    receipts:
      outbox.receiptsFrom !== null && receiptRoom > 0
        ? receiptsToCopy(sql, outbox.receiptsFrom, receiptRoom)
        : [],
    rev: counters.rev,
    messagesTo: messages.to,
    turnsTo: turns.to,
  }
}

const NO_ROWS = { rows: [], to: null }

const ofSession = (owed: readonly OwedChange[]): OwedChange[] =>
  owed.filter(({ change }) => change.scope === 'session')

/** What is still owed after a batch: nothing new may be forgotten that was committed while it was on its way. */
function afterWrite(sql: Sql, { outbox, counters }: Checkpoint, batch: Batch): Outbox {
  const calm: Outbox = {
    ...outbox,
    memory: settleOwed(sql, batch.memory),
    receiptsFrom: receiptsAfter(sql, outbox, batch),
    failures: 0,
    retryAtMs: null,
  }
  if (counters.rev !== batch.rev) return calm
  const { messagesTo, turnsTo } = batch
  return {
    ...calm,
    session: false,
    messagesFrom: messagesTo === null ? null : messagesTo + 1,
    turnsFrom: turnsTo === undefined ? outbox.turnsFrom : turnsTo === null ? null : turnsTo + 1,
  }
}

/** Receipts do not change, so that only their number tells what is left of them. */
function receiptsAfter(sql: Sql, { receiptsFrom }: Outbox, { receipts }: Batch): number | null {
  const last = receipts.at(-1)
  if (receiptsFrom === null) return null
  const from = last === undefined ? receiptsFrom : last.seq + 1
  return newestReceiptSeq(sql) >= from ? from : null
}
