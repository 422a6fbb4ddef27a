import { MAX_EVENT_BYTES } from './bounds.ts'

/** How a stream is cut into pieces: an event ends with a blank line, a line with its line feed. */
export type Framing = 'events' | 'lines'

const LF = 10
const CR = 13

/** Measures the piece of a stream whose end has not come, which whoever reads the stream has to hold. */
export class EventMeter {
  readonly #framing: Framing
  #heldBytes = 0
  /** Nothing but a carriage return stands in the line so far. */
  #isLineBlank = true

  constructor(framing: Framing) {
    this.#framing = framing
  }

  /** @returns false when a piece has grown beyond what is held */
  feed(chunk: Uint8Array): boolean {
    let pieceStart = 0
    let lineStart = 0
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, lineStart)) {
      if (this.#framing === 'lines' || this.#isBlank(chunk, lineStart, end)) {
        if (this.#heldBytes + end - pieceStart > MAX_EVENT_BYTES) return false
        this.#heldBytes = 0
        pieceStart = end + 1
      }
      this.#isLineBlank = true
      lineStart = end + 1
    }
    this.#isLineBlank = this.#isBlank(chunk, lineStart, chunk.length)
    this.#heldBytes += chunk.length - pieceStart
    return this.#heldBytes <= MAX_EVENT_BYTES
  }

  #isBlank(chunk: Uint8Array, start: number, end: number): boolean {
    return this.#isLineBlank && (end === start || (end === start + 1 && chunk[start] === CR))
  }
}
