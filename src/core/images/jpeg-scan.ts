import type { CodeTable } from './huffman.ts'
import type { JpegBits } from './jpeg-bits.ts'
import type { Component, Frame } from './jpeg-frame.ts'
import { Malformed } from './malformed.ts'

/** What the header of a scan says (JPEG, B.2.3). */
export type Scan = {
  parts: { component: Component; dc: CodeTable | null; ac: CodeTable | null }[]
  /** The band of coefficients, and the bits of them, in a progressive picture. */
  first: number
  last: number
  high: number
  low: number
}

const MAX_DC_BITS = 11
const MARKER_RST0 = 0xd0

/**
 * Reads the data of a scan to its end, block by block, without keeping a value of it (D39). Of a progressive picture it is
 * noted which coefficients are not zero: later scans have a bit for each of these.
 * @param restartInterval units between two restart markers; 0: there are none
 * @throws {Malformed}
 */
export function readScan(frame: Frame, scan: Scan, bits: JpegBits, restartInterval: number): void {
  const [only, ...others] = scan.parts
  if (only === undefined) throw new Malformed('a scan of the JPEG has nothing to read')
  const reader = new BlockReader(scan, bits)
  const read = frame.progressive ? reader.progressive(scan) : reader.sequential
  const together = others.length > 0
  const across = together ? frame.unitsAcross : only.component.blocksAcross
  const down = together ? frame.unitsDown : only.component.blocksDown
  let restarts = 0
  let toRestart = restartInterval
  for (let y = 0; y < down; y++) {
    for (let x = 0; x < across; x++) {
      if (restartInterval > 0 && toRestart-- === 0) {
        if (bits.toMarker() !== MARKER_RST0 + (restarts++ & 7))
          throw new Malformed('a restart of the JPEG is missing')
        reader.restart()
        toRestart = restartInterval - 1
      }
      if (!together) read(only, y * only.component.allAcross + x)
      else {
        for (const part of scan.parts) {
          const { component } = part
          for (let v = 0; v < component.down; v++) {
            const row = (y * component.down + v) * component.allAcross + x * component.across
            for (let h = 0; h < component.across; h++) read(part, row + h)
          }
        }
      }
    }
  }
}

type Part = Scan['parts'][number]
type ReadBlock = (part: Part, block: number) => void

class BlockReader {
  readonly #bits: JpegBits
  readonly #first: number
  readonly #last: number
  /** Blocks, from this one on, that have no further coefficient in the band. */
  #ended = 0
  /** The band as bits of the two numbers of a block. */
  readonly #maskLow: number
  readonly #maskHigh: number

  constructor({ first, last }: Scan, bits: JpegBits) {
    this.#bits = bits
    this.#first = first
    this.#last = last
    this.#maskLow = maskOf(first, Math.min(last, 31))
    this.#maskHigh = maskOf(Math.max(first, 32) - 32, last - 32)
  }

  restart(): void {
    this.#ended = 0
  }

  progressive({ first, high }: Scan): ReadBlock {
    if (first === 0) return high === 0 ? this.#firstDc : this.#nextDc
    return high === 0 ? this.#firstAc : this.#nextAc
  }

  readonly sequential: ReadBlock = ({ dc, ac }) => {
    this.#dc(dc)
    if (ac === null) return
    for (let k = 1; k < 64; ) {
      const symbol = this.#bits.symbol(ac)
      const size = symbol & 15
      if (size === 0) {
        if (symbol !== 0xf0) return
        k += 16
        if (k > 63) throw new Malformed('a block of the JPEG is too long')
        continue
      }
      k += symbol >> 4
      if (k > 63) throw new Malformed('a block of the JPEG is too long')
      this.#bits.take(size)
      k++
    }
  }

  readonly #firstDc: ReadBlock = ({ dc }) => this.#dc(dc)

  #dc(dc: CodeTable | null): void {
    if (dc === null) return
    const size = this.#bits.symbol(dc)
    if (size > MAX_DC_BITS) throw new Malformed('a value of the JPEG is too large')
    this.#bits.take(size)
  }

  readonly #nextDc: ReadBlock = () => {
    this.#bits.take(1)
  }

  readonly #firstAc: ReadBlock = ({ component, ac }, block) => {
    if (this.#ended > 0) {
      this.#ended--
      return
    }
    if (ac === null || component.nonzero === null) return
    for (let k = this.#first; k <= this.#last; ) {
      const symbol = this.#bits.symbol(ac)
      const run = symbol >> 4
      const size = symbol & 15
      if (size === 0 && run < 15) {
        this.#ended = (1 << run) - 1 + this.#bits.take(run)
        return
      }
      if (size === 0) {
        k += 16
        continue
      }
      k += run
      if (k > this.#last) throw new Malformed('a block of the JPEG is too long')
      this.#bits.take(size)
      note(component.nonzero, block, k)
      k++
    }
  }

  readonly #nextAc: ReadBlock = ({ component, ac }, block) => {
    const { nonzero } = component
    if (ac === null || nonzero === null) return
    let k = this.#first
    if (this.#ended === 0) {
      for (; k <= this.#last; k++) {
        const symbol = this.#bits.symbol(ac)
        let run = symbol >> 4
        const size = symbol & 15
        if (size > 1) throw new Malformed('a value of the JPEG is too large')
        if (size === 1) this.#bits.take(1)
        else if (run < 15) {
          this.#ended = (1 << run) + this.#bits.take(run)
          break
        }
        for (; k <= this.#last; k++) {
          if (isNoted(nonzero, block, k)) this.#bits.take(1)
          else if (run-- === 0) break
        }
        if (size === 1) {
          if (k > this.#last) throw new Malformed('a block of the JPEG is too long')
          note(nonzero, block, k)
        }
      }
    }
    if (this.#ended === 0) return
    this.#ended--
    // Most blocks have nothing there.
    const low = (nonzero[2 * block] ?? 0) & this.#maskLow
    const high = (nonzero[2 * block + 1] ?? 0) & this.#maskHigh
    if ((low | high) === 0) return
    for (; k <= this.#last; k++) if (isNoted(nonzero, block, k)) this.#bits.take(1)
  }
}

const note = (nonzero: Uint32Array, block: number, k: number): void => {
  const at = 2 * block + (k >> 5)
  nonzero[at] = (nonzero[at] ?? 0) | (1 << (k & 31))
}

const isNoted = (nonzero: Uint32Array, block: number, k: number): boolean =>
  ((nonzero[2 * block + (k >> 5)] ?? 0) & (1 << (k & 31))) !== 0

/** Bits from `first` to `last` of 32. */
function maskOf(first: number, last: number): number {
  let mask = 0
  for (let bit = first; bit <= last; bit++) mask |= 1 << bit
  return mask
}
