import type { Dimensions } from './dimensions.ts'
import { Malformed } from './malformed.ts'

export type Raster = Dimensions & { bitsPerPixel: number; interlaced: boolean }

/** Rows of one pass over the picture; each is led by the number of its filter. */
type Pass = { rows: number; bytes: number }

/** The seven passes of an interlaced picture: where each begins, and its steps (PNG, "Interlaced data order"). */
const ADAM7: readonly (readonly [x: number, y: number, dx: number, dy: number])[] = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
]
const LAST_FILTER = 4

/** Counts the rows of a PNG as they are inflated. Nothing of them is kept (D39). */
export class ScanlineCounter {
  readonly #passes: Pass[]
  #pass = 0
  #row = 0
  /** Bytes of the row that are still to come; 0: its filter is next. */
  #left = 0

  constructor(raster: Raster) {
    this.#passes = passesOf(raster)
  }

  /** @throws {Malformed} at a filter that does not exist, and at more data than the picture has */
  take(bytes: Uint8Array, from: number, to: number): void {
    for (let at = from; at < to; ) {
      if (this.#left === 0) {
        const pass = this.#passes[this.#pass]
        if (pass === undefined) throw new Malformed('the PNG has more data than its picture')
        if ((bytes[at++] ?? 0) > LAST_FILTER) throw new Malformed('a line of the PNG has an unknown filter')
        this.#left = pass.bytes
        this.#row++
        if (this.#row === pass.rows) {
          this.#pass++
          this.#row = 0
        }
      }
      const skipped = Math.min(this.#left, to - at)
      this.#left -= skipped
      at += skipped
    }
  }

  /** @throws {Malformed} when lines are missing */
  finish(): void {
    if (this.#left > 0 || this.#pass < this.#passes.length)
      throw new Malformed('the data of the PNG ends too early')
  }
}

function passesOf({ width, height, bitsPerPixel, interlaced }: Raster): Pass[] {
  const steps = interlaced ? ADAM7 : ([[0, 0, 1, 1]] as const)
  return steps
    .map(([x, y, dx, dy]) => ({ columns: Math.ceil((width - x) / dx), rows: Math.ceil((height - y) / dy) }))
    .filter(({ columns, rows }) => columns > 0 && rows > 0)
    .map(({ columns, rows }) => ({ rows, bytes: Math.ceil((columns * bitsPerPixel) / 8) }))
}
