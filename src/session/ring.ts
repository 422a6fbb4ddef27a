import { byteLength } from '../storage/limits.ts'
import type { RingLine, RingStore } from '../storage/session/ring-segments.ts'

/** Numbers are reserved in blocks before use, so that a crash never gives one out twice (D33). */
export const RING_RESERVE_BLOCK = 1024

export type RingStart = {
  /** The first number to give out. */
  next: number
  /** The last number that was reserved. */
  reserved: number
}

/**
 * The session's latest events, each under its number. An event is in memory until it is stored; whoever follows may have
 * seen it by then (D33).
 */
export class Ring {
  readonly #store: RingStore
  #next: number
  #reserved: number
  #waiting: RingLine[] = []
  #waitingBytes = 0

  constructor(store: RingStore, { next, reserved }: RingStart) {
    this.#store = store
    this.#next = next
    this.#reserved = reserved
  }

  /** The newest number that was given out. */
  get last(): number {
    return this.#next - 1
  }

  /** Up to here numbers may have been used when the object dies. */
  get reserved(): number {
    return this.#reserved
  }

  /** Bytes of events that wait to be stored. */
  get unstoredBytes(): number {
    return this.#waitingBytes
  }

  /** Gives an event its number. False: a block of numbers was begun, and has to be stored before anybody sees one of it. */
  push(json: string): boolean {
    const seq = this.#next++
    this.#waiting.push({ seq, json })
    this.#waitingBytes += byteLength(json)
    if (seq <= this.#reserved) return true
    this.#reserved += RING_RESERVE_BLOCK
    return false
  }

  /** Stores what waits. Call it inside a transaction that stores `reserved` as well. */
  store(): void {
    this.#store.append(this.#waiting)
    this.#waiting = []
    this.#waitingBytes = 0
  }

  /** All that is held behind a number, oldest first. Where numbers were lost there is a hole. */
  after(sequence: number): RingLine[] {
    const firstWaiting = this.#waiting[0]?.seq ?? this.#next
    const stored = sequence < firstWaiting - 1 ? this.#store.read(sequence) : []
    return [...stored, ...this.#waiting.filter(({ seq }) => seq > sequence)]
  }

  /** Nothing up to here is held any more. */
  get floor(): number {
    const first = this.#store.extent()?.firstSeq ?? this.#waiting[0]?.seq ?? this.#next
    return first - 1
  }

  /** The event of this number is held: it was not lost with an object that died. */
  holds(sequence: number): boolean {
    return this.after(sequence - 1)[0]?.seq === sequence
  }
}
