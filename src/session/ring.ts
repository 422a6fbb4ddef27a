import type { RunEvent } from '../core/run/events.ts'
import type { RingLine, RingStore } from '../storage/session/ring-segments.ts'

/** An event with its place in the session's one sequence. */
export type SequencedEvent = { seq: number; atMs: number; event: RunEvent }

/** Sequences are reserved in blocks before use, so that a crash never gives one out twice (D33). */
export const RING_RESERVE_BLOCK = 1024
/** Text is stored at the latest after this long … (D33). */
export const RING_FLUSH_MS = 1_000
/** … or when this much of it waits (D33). */
const RING_FLUSH_UNITS = 8 * 1024
/** A text event is closed at this length, so that no event grows without bound (D33). */
const MAX_DELTA_UNITS = 2 * 1024

type OpenDelta = { type: 'text_delta' | 'reasoning_delta'; text: string; atMs: number }

/**
 * The session's latest events. Text gathers in memory and is stored every second or every 8 KiB; everything else is
 * stored with the step that caused it, text before it first, so the stored order is the order of what happened.
 */
export class Ring {
  readonly #store: RingStore
  #next: number
  #reserved: number
  #open: OpenDelta | null = null
  #waiting: SequencedEvent[] = []
  #waitingUnits = 0

  /** `reserved` is the first sequence that was not reserved before: what lies below may have been used and lost. */
  constructor(store: RingStore, reserved: number) {
    this.#store = store
    this.#next = reserved + 1
    this.#reserved = reserved
  }

  /** The newest sequence that was given out. */
  get lastSequence(): number {
    return this.#next - 1
  }

  /** Text of the model. Returns true when it should be stored now. */
  delta(type: OpenDelta['type'], text: string, atMs: number): boolean {
    if (this.#open && (this.#open.type !== type || this.#open.text.length + text.length > MAX_DELTA_UNITS))
      this.#close()
    if (this.#open) this.#open.text += text
    else this.#open = { type, text, atMs }
    this.#waitingUnits += text.length
    return this.#waitingUnits >= RING_FLUSH_UNITS
  }

  /** True while text waits to be stored. */
  get hasUnstored(): boolean {
    return this.#open !== null || this.#waiting.length > 0
  }

  /**
   * Stores what waits and then `events`; call it inside a transaction that also stores the returned bound of what is
   * reserved.
   */
  store(events: readonly RunEvent[], atMs: number): number {
    this.#close()
    for (const event of events) this.#push(event, atMs)
    const lines: RingLine[] = this.#waiting.map((sequenced) => ({
      seq: sequenced.seq,
      line: JSON.stringify(sequenced),
    }))
    this.#store.append(lines)
    this.#waiting = []
    this.#waitingUnits = 0
    return this.#reserved
  }

  /** Events after a sequence, or null when the ring no longer reaches back that far. */
  after(sequence: number): SequencedEvent[] | null {
    const extent = this.#store.extent()
    if (sequence > this.lastSequence) return null
    if (extent === null) return sequence === this.lastSequence ? [] : null
    if (sequence < extent.firstSeq - 1) return null
    return this.#store
      .read(sequence)
      .map((line): SequencedEvent => JSON.parse(line))
      .filter(({ seq }) => seq > sequence)
  }

  #close(): void {
    if (this.#open === null) return
    const { type, text, atMs } = this.#open
    this.#open = null
    this.#push({ type, text }, atMs)
  }

  #push(event: RunEvent, atMs: number): void {
    const seq = this.#next++
    if (seq > this.#reserved) this.#reserved += RING_RESERVE_BLOCK
    this.#waiting.push({ seq, atMs, event })
  }
}
