import { closingEvents } from '../core/turn-events.ts'
import type { TurnEvent } from '../protocol/execution/stream.ts'
import type { TurnResponse } from '../protocol/execution/turn.ts'

/** How a turn ended for those who wait for it. */
export type Ending = { k: 'outcome'; outcome: TurnResponse } | { k: 'superseded'; traceId: string }

/** A comment this often keeps proxies from closing a stream that is silent while a model thinks. */
const KEEP_ALIVE_MS = 15_000
/** Too short to be seen, long enough for a fast model to have said more. */
const GATHER_MS = 5
/**
 * What a turn's stream keeps for those who come back; beyond it the oldest events go. Its end is kept besides: it repeats
 * what was said, so it is about as long as that at most.
 */
export const MAX_HELD_UNITS = 4 * 1024 * 1024
/** What is kept of it once another turn is served: readers that keep up are never so far behind. */
export const MAX_RETIRED_UNITS = 256 * 1024
/** What a reader is given at once, and so all that waits for one that does not take it: an event that is longer goes in pieces. */
export const MAX_PIECE_UNITS = 64 * 1024
const KEEP_ALIVE = ': keep-alive\n\n'

/** A place before everything that is held: a reader from there gets the end alone. */
export const END_ONLY = -1

const encoder = new TextEncoder()

/**
 * The live side of one served turn: its stream events, and its ending. Any number of readers follow it, each at its own
 * pace, from any event that is still held; none of them holds the turn up, and the turn needs none (D21). What is held is
 * held once for all of them: of its own a reader has a place in it, and one piece (U12).
 */
export class TurnChannel {
  readonly turnId: string
  #frames: string[] = []
  #heldUnits = 0
  #mostUnits = MAX_HELD_UNITS
  #endFrames = 0
  #endUnits = 0
  /** How many events were dropped at the front. */
  #dropped = 0
  #ending: Ending | null = null
  #closing = false
  #readers = 0
  #opened = false
  #waiters = new Set<() => void>()

  constructor(turnId: string) {
    this.turnId = turnId
  }

  push(event: TurnEvent): void {
    const frame = `id: ${this.turnId}.${this.#dropped + this.#frames.length + 1}\ndata: ${JSON.stringify(event)}\n\n`
    this.#frames.push(frame)
    this.#heldUnits += frame.length
    if (this.#closing) {
      this.#endFrames++
      this.#endUnits += frame.length
    }
    // The last events come all at once and may be as large as all before: whoever follows has not had his turn yet.
    if (!this.#closing) this.#trim()
    this.#wake()
  }

  #trim(): void {
    let count = 0
    // The end does not count: in a sealed session it says everything twice.
    while (
      this.#heldUnits - this.#endUnits > this.#mostUnits &&
      count < this.#frames.length - Math.max(1, this.#endFrames)
    ) {
      this.#heldUnits -= this.#frames[count]?.length ?? 0
      count++
    }
    if (count > 0) this.#frames.splice(0, count)
    this.#dropped += count
  }

  /** Another turn is served now: whoever is far behind in this one gets its end alone. */
  retire(): void {
    this.#mostUnits = MAX_RETIRED_UNITS
    this.#trim()
  }

  /** Units of the events that are held. */
  get heldUnits(): number {
    return this.#heldUnits
  }

  /** Everything that can refuse the turn beforehand has passed: a stream may begin now (EC 18). */
  open(): void {
    this.#opened = true
    this.#wake()
  }

  /** The ending of a turn that failed before its stream could begin: an ordinary HTTP error (EC 18). */
  get refused(): Ending | null {
    const ending = this.#ending
    return !this.#opened && ending?.k === 'outcome' && ending.outcome.status === 'error' ? ending : null
  }

  /** What the turn came to; null while it is served, and for one that was superseded. */
  get outcome(): TurnResponse | null {
    return this.#ending?.k === 'outcome' ? this.#ending.outcome : null
  }

  end(ending: Ending): void {
    if (this.#ending) return
    const outcome: TurnResponse =
      ending.k === 'outcome' ? ending.outcome : { status: 'idle', data: { trace_id: ending.traceId } }
    this.#closing = true
    for (const event of closingEvents(outcome)) this.push(event)
    this.#ending = ending
    if (this.#readers === 0) this.#trim()
    this.#wake()
  }

  /** Resolves when a stream may begin, or the turn is over. */
  async opened(): Promise<void> {
    while (!this.#opened && this.#ending === null) await this.#change()
  }

  async ending(): Promise<Ending> {
    while (this.#ending === null) await this.#change()
    return this.#ending
  }

  /** True when every event after the n-th is still held. */
  holdsAfter(n: number): boolean {
    return n >= this.#dropped && n <= this.#dropped + this.#frames.length
  }

  /**
   * The events after the n-th as server-sent events, then those to come, up to the end. From a place that is not held
   * the end alone; who has seen the end gets it once more, for a stream always ends with it (D19).
   */
  read(afterN: number): ReadableStream<Uint8Array> {
    const last = this.#dropped + this.#frames.length
    let next = !this.holdsAfter(afterN) ? END_ONLY : this.#ending ? Math.min(afterN, last - 1) : afterN
    let left = false
    this.#readers++
    const leave = () => {
      if (left) return
      left = true
      this.#readers--
      if (this.#ending && this.#readers === 0) this.#trim()
    }
    let cancelled = false
    let sent = false
    /** What was taken of the events and not given yet. */
    let rest = ''
    let cancelWait: (() => void) | null = null
    /** False when nothing happened for so long that the silence has to be broken. */
    const changed = () =>
      new Promise<boolean>((resolve) => {
        const timer = setTimeout(() => done(false), KEEP_ALIVE_MS)
        const onChange = () => done(true)
        const done = (change: boolean) => {
          clearTimeout(timer)
          this.#waiters.delete(onChange)
          cancelWait = null
          resolve(change)
        }
        cancelWait = onChange
        this.#waiters.add(onChange)
      })
    // Nothing is taken before somebody asks: what waits for a reader waits here, where it is held once for all.
    return new ReadableStream(
      {
        type: 'bytes',
        pull: async (controller) => {
          // What comes close together is sent together: to send a piece costs more than the piece. The first is not held.
          if (rest === '' && sent && !this.#ending) await gathered()
          while (rest === '') {
            if (cancelled) return
            const from = next - this.#dropped
            // A reader that fell behind what is held gets the end alone, never a stream with a hole (D19).
            const lagging = from < 0
            if (lagging && this.#ending) next = this.#dropped + this.#frames.length - 1
            else if (!lagging && from < this.#frames.length) {
              const frames = this.#framesFrom(from)
              next += frames.length
              rest = frames.join('')
              sent = true
            } else if (this.#ending) {
              leave()
              controller.close()
              return
            } else if (!(await changed())) rest = KEEP_ALIVE
          }
          if (cancelled) return
          const piece = startOf(rest, MAX_PIECE_UNITS)
          rest = rest.slice(piece.length)
          controller.enqueue(encoder.encode(piece))
        },
        cancel: () => {
          cancelled = true
          rest = ''
          leave()
          cancelWait?.()
        },
      },
      { highWaterMark: 0 },
    )
  }

  /** Events from a place on that make one piece, or one event that is longer: that one is held here anyway. */
  #framesFrom(place: number): string[] {
    const frames: string[] = []
    for (let units = 0; ; ) {
      const frame = this.#frames[place + frames.length]
      units += frame?.length ?? 0
      if (frame === undefined || (frames.length > 0 && units > MAX_PIECE_UNITS)) return frames
      frames.push(frame)
    }
  }

  #wake(): void {
    for (const waiter of [...this.#waiters]) waiter()
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      const once = () => {
        this.#waiters.delete(once)
        resolve()
      }
      this.#waiters.add(once)
    })
  }
}

/** The beginning of a text, of at most so many units, without half of a pair of surrogates. */
function startOf(text: string, units: number): string {
  if (text.length <= units) return text
  const last = text.charCodeAt(units - 1)
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? units - 1 : units)
}

const gathered = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, GATHER_MS))

/** A finished turn's events as a stream of their own, under ids that no other event of the turn had. */
export function eventStream(turnId: string, events: readonly TurnEvent[]): ReadableStream<Uint8Array> {
  const text = events
    .map((event, index) => `id: ${turnId}.end${events.length - index}\ndata: ${JSON.stringify(event)}\n\n`)
    .join('')
  return new ReadableStream({
    type: 'bytes',
    start: (controller) => {
      controller.enqueue(encoder.encode(text))
      controller.close()
    },
  })
}
