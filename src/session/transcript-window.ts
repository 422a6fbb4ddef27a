import { loadMessages, type StoredMessage } from '../storage/session/messages.ts'
import type { Sql } from '../storage/session/sql.ts'

/** More text than this is read anew for each turn rather than kept: many objects share one memory. */
const MAX_KEPT_UNITS = 2 * 1024 * 1024

/**
 * The newest messages of a session, kept from turn to turn: to read a thousand rows takes longer than all the rest of a
 * decision. What is kept is always a row of what is stored; whoever stores says what has changed.
 */
export class TranscriptWindow {
  readonly #sql: Sql
  /** Consecutive messages, oldest first. */
  #kept: readonly StoredMessage[] = []

  constructor(sql: Sql) {
    this.#sql = sql
  }

  /** At most `limit` messages from `fromSeq` on, oldest first, with their calls. */
  read(fromSeq: number, limit: number): readonly StoredMessage[] {
    const start = this.#kept.findIndex(({ seq }) => seq === fromSeq)
    const known = start < 0 ? [] : this.#kept.slice(start, start + limit)
    const missing = limit - known.length
    const read = missing > 0 ? loadMessages(this.#sql, fromSeq + known.length, missing) : []
    const messages = read.length === 0 ? known : [...known, ...read]
    this.#kept = unitsOf(messages) <= MAX_KEPT_UNITS ? messages : []
    return messages
  }

  /** Messages from this one on were stored or changed; null: none was. */
  changed(fromSeq: number | null): void {
    if (fromSeq !== null) this.#kept = this.#kept.filter(({ seq }) => seq < fromSeq)
  }
}

/** The texts that can be long: what was said, what tools were given and what they gave. */
const unitsOf = (messages: readonly StoredMessage[]): number =>
  messages
    .flatMap(({ text, calls }) => [
      text,
      ...calls.flatMap(({ arguments: given, result }) => [...Object.values(given), result]),
    ])
    .reduce<number>((units, value) => units + (typeof value === 'string' ? value.length : 0), 0)
