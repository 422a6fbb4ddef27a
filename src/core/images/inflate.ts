import { type CodeTable, FAST_MASK, makeCodeTable } from './huffman.ts'
import { Malformed } from './malformed.ts'

/** Gets what was inflated, in order: `bytes` from `from` to before `to`. It may not keep them. */
export type Sink = (bytes: Uint8Array, from: number, to: number) => void

/** What a distance can reach back over, twice: one half is written while the other is still reached for. */
const WINDOW_BYTES = 64 * 1024
const WINDOW_MASK = WINDOW_BYTES - 1

const LENGTH_BASES = [
  3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195,
  227, 258,
]
const LENGTH_BITS = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0]
const DISTANCE_BASES = [
  1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097,
  6145, 8193, 12289, 16385, 24577,
]
const DISTANCE_BITS = [
  0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13,
]
const CODE_LENGTH_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]

const END_OF_BLOCK = 256
const MAX_LITERALS = 286
const MAX_DISTANCES = 30

/**
 * Inflates a zlib stream (RFC 1950, RFC 1951) and hands on what comes out, piece by piece. The platform's own
 * decompression is not used because it holds all that one piece of input grows into (D39).
 * @param byte the next byte of the stream; it throws `Malformed` behind the last one
 * @throws {Malformed} also what `sink` throws
 */
export function inflate(byte: () => number, sink: Sink): void {
  new Inflater(byte, sink).run()
}

class Inflater {
  readonly #byte: () => number
  readonly #sink: Sink
  readonly #window = new Uint8Array(WINDOW_BYTES)
  /** Bytes written so far, all together. */
  #written = 0
  /** Those that were handed on. */
  #given = 0
  #held = 0
  #bits = 0
  #sumA = 1
  #sumB = 0

  constructor(byte: () => number, sink: Sink) {
    this.#byte = byte
    this.#sink = sink
  }

  run(): void {
    const method = this.#byte()
    const flags = this.#byte()
    if ((method & 15) !== 8 || method >> 4 > 7 || ((method << 8) | flags) % 31 !== 0 || (flags & 32) !== 0)
      throw new Malformed('the compressed data has no valid beginning')
    for (let last = false; !last; ) {
      last = this.#take(1) === 1
      const kind = this.#take(2)
      if (kind === 0) this.#stored()
      else if (kind === 1) this.#compressed(fixedTable(), fixedDistances())
      else if (kind === 2) this.#compressed(...this.#readTables())
      else throw new Malformed('a block of the compressed data is of no known kind')
    }
    this.#handOn()
    this.#dropPartOfByte()
    let sum = 0
    for (let n = 0; n < 4; n++) sum = sum * 256 + this.#take(8)
    if (sum !== this.#sumB * 65536 + this.#sumA) throw new Malformed('the checksum of the data is wrong')
  }

  #need(bits: number): void {
    while (this.#bits < bits) {
      this.#held |= this.#byte() << this.#bits
      this.#bits += 8
    }
  }

  /** At most 16 bits. */
  #take(bits: number): number {
    this.#need(bits)
    const value = this.#held & ((1 << bits) - 1)
    this.#held >>>= bits
    this.#bits -= bits
    return value
  }

  #dropPartOfByte(): void {
    this.#held >>>= this.#bits & 7
    this.#bits -= this.#bits & 7
  }

  #stored(): void {
    this.#dropPartOfByte()
    const length = this.#take(16)
    if (this.#take(16) !== (length ^ 0xffff)) throw new Malformed('a block of the compressed data is broken')
    for (let left = length; left > 0; left--) this.#put(this.#take(8))
  }

  #compressed(literals: CodeTable, distances: CodeTable): void {
    for (;;) {
      const symbol = this.#symbol(literals)
      if (symbol < END_OF_BLOCK) this.#put(symbol)
      else if (symbol === END_OF_BLOCK) return
      else this.#copy(symbol - END_OF_BLOCK - 1, distances)
    }
  }

  #copy(lengthCode: number, distances: CodeTable): void {
    const length = (LENGTH_BASES[lengthCode] ?? 0) + this.#take(LENGTH_BITS[lengthCode] ?? 0)
    const code = this.#symbol(distances)
    const distance = (DISTANCE_BASES[code] ?? 0) + this.#take(DISTANCE_BITS[code] ?? 0)
    if (distance > this.#written || length < 3 || distance < 1)
      throw new Malformed('the compressed data points to what is not there')
    const window = this.#window
    for (let left = length; left > 0; left--) this.#put(window[(this.#written - distance) & WINDOW_MASK] ?? 0)
  }

  #put(byte: number): void {
    this.#window[this.#written & WINDOW_MASK] = byte
    this.#written++
    if (this.#written - this.#given === WINDOW_BYTES / 2) this.#handOn()
  }

  #handOn(): void {
    const from = this.#given & WINDOW_MASK
    const to = from + (this.#written - this.#given)
    this.#sink(this.#window, from, to)
    this.#sum(from, to)
    this.#given = this.#written
  }

  /** Adler-32. So many bytes fit before the sums have to be reduced. */
  #sum(from: number, to: number): void {
    for (let at = from; at < to; ) {
      const end = Math.min(at + 3800, to)
      for (; at < end; at++) {
        this.#sumA += this.#window[at] ?? 0
        this.#sumB += this.#sumA
      }
      this.#sumA %= 65521
      this.#sumB %= 65521
    }
  }

  #symbol({ fast, counts, symbols }: CodeTable): number {
    // What stands behind the last code is the checksum, so that a look ahead of nine bits never needs more than there is.
    this.#need(FAST_LOOK)
    const entry = fast[this.#held & FAST_MASK] ?? 0
    if (entry !== 0) {
      const length = entry & 31
      this.#held >>>= length
      this.#bits -= length
      return entry >> 5
    }
    let code = 0
    let first = 0
    let at = 0
    for (let length = 1; length < counts.length - 1; length++) {
      code |= this.#take(1)
      const count = counts[length] ?? 0
      if (code - first < count) return symbols[at + code - first] ?? 0
      at += count
      first = (first + count) << 1
      code <<= 1
    }
    throw new Malformed('the compressed data has an unknown code')
  }

  #readTables(): [CodeTable, CodeTable] {
    const literals = this.#take(5) + 257
    const distances = this.#take(5) + 1
    const given = this.#take(4) + 4
    if (literals > MAX_LITERALS || distances > MAX_DISTANCES) throw new Malformed('a code table is too long')
    const meta = new Uint8Array(19)
    for (let n = 0; n < given; n++) meta[CODE_LENGTH_ORDER[n] ?? 0] = this.#take(3)
    const metaTable = tableOf(meta)
    if (metaTable.unused !== 0) throw new Malformed('a code table is incomplete')
    const lengths = new Uint8Array(literals + distances)
    for (let at = 0; at < lengths.length; ) {
      const symbol = this.#symbol(metaTable)
      if (symbol < 16) {
        lengths[at++] = symbol
        continue
      }
      if (symbol === 16 && at === 0) throw new Malformed('a code table repeats nothing')
      const value = symbol === 16 ? (lengths[at - 1] ?? 0) : 0
      const times = symbol === 16 ? 3 + this.#take(2) : symbol === 17 ? 3 + this.#take(3) : 11 + this.#take(7)
      if (at + times > lengths.length) throw new Malformed('a code table is too long')
      lengths.fill(value, at, at + times)
      at += times
    }
    if (lengths[END_OF_BLOCK] === 0) throw new Malformed('a block of the compressed data has no end')
    return [complete(tableOf(lengths.subarray(0, literals))), complete(tableOf(lengths.subarray(literals)))]
  }
}

const FAST_LOOK = 9

/** A table may only be incomplete where it has one code of one bit, or none. */
function complete(table: CodeTable): CodeTable {
  const codes = table.counts.reduce((sum, count) => sum + count, 0)
  if (table.unused === 0 || codes === 0 || (codes === 1 && table.counts[1] === 1)) return table
  throw new Malformed('a code table is incomplete')
}

function tableOf(lengths: Uint8Array): CodeTable {
  const counts = new Uint16Array(17)
  for (const length of lengths) if (length > 0) counts[length] = (counts[length] ?? 0) + 1
  const places = new Uint16Array(17)
  for (let length = 1; length < 16; length++)
    places[length + 1] = (places[length] ?? 0) + (counts[length] ?? 0)
  const symbols = new Uint16Array(lengths.length)
  for (const [symbol, length] of lengths.entries()) {
    if (length === 0) continue
    const place = places[length] ?? 0
    symbols[place] = symbol
    places[length] = place + 1
  }
  return makeCodeTable(counts, symbols, true)
}

let fixedLiterals: CodeTable | null = null
let fixedDistance: CodeTable | null = null

/** Made when first needed, not at start-up. */
function fixedTable(): CodeTable {
  if (fixedLiterals === null) {
    const lengths = new Uint8Array(288).fill(8)
    lengths.fill(9, 144, 256)
    lengths.fill(7, 256, 280)
    fixedLiterals = tableOf(lengths)
  }
  return fixedLiterals
}

function fixedDistances(): CodeTable {
  fixedDistance ??= tableOf(new Uint8Array(32).fill(5))
  return fixedDistance
}
