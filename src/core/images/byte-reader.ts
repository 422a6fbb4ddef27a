import { cutShort } from './malformed.ts'

/** The next piece of a file, null behind the last one. Pieces may have any length. */
export type NextPiece = () => Uint8Array | null

/** Reads a file byte by byte from its pieces, of which one is held at a time (D39). */
export class ByteReader {
  readonly #next: NextPiece
  #piece: Uint8Array = new Uint8Array(0)
  #at = 0

  constructor(next: NextPiece) {
    this.#next = next
  }

  /** The next byte, -1 at the end. */
  byteOrEnd(): number {
    while (this.#at === this.#piece.length) {
      const piece = this.#next()
      if (piece === null) return -1
      this.#piece = piece
      this.#at = 0
    }
    return this.#piece[this.#at++] ?? -1
  }

  /** @throws {Malformed} at the end */
  byte(): number {
    const byte = this.byteOrEnd()
    if (byte < 0) throw cutShort()
    return byte
  }

  /** Two bytes, the higher one first. */
  uint16(): number {
    return (this.byte() << 8) | this.byte()
  }

  skip(bytes: number): void {
    for (let left = bytes; left > 0; left--) this.byte()
  }
}
