import type { ByteReader } from './byte-reader.ts'
import { type CodeTable, FAST_BITS, FAST_MASK, LONGEST_CODE } from './huffman.ts'
import { cutShort, Malformed } from './malformed.ts'

/** Reads the bits of the entropy-coded data of a JPEG, up to the next marker. */
export class JpegBits {
  readonly #bytes: ByteReader
  #held = 0
  #count = 0
  /** The marker that ended the data; 0: none yet. */
  #marker = 0

  constructor(bytes: ByteReader) {
    this.#bytes = bytes
  }

  #fill(): void {
    while (this.#count <= 24 && this.#marker === 0) {
      let byte = this.#bytes.byte()
      if (byte === 0xff) {
        let next = this.#bytes.byte()
        while (next === 0xff) next = this.#bytes.byte()
        if (next !== 0) {
          this.#marker = next
          return
        }
        byte = 0xff
      }
      this.#held = (this.#held << 8) | byte
      this.#count += 8
    }
  }

  /** The next bits as a number, at most 16 of them. */
  take(bits: number): number {
    if (bits === 0) return 0
    if (this.#count < bits) this.#need(bits)
    this.#count -= bits
    return (this.#held >>> this.#count) & ((1 << bits) - 1)
  }

  #need(bits: number): void {
    this.#fill()
    if (this.#count < bits) throw cutShort()
  }

  /** @throws {Malformed} at a sequence of bits that is no code */
  symbol({ fast, counts, symbols }: CodeTable): number {
    if (this.#count < LONGEST_CODE) this.#fill()
    const count = this.#count
    const ahead =
      count >= FAST_BITS
        ? (this.#held >>> (count - FAST_BITS)) & FAST_MASK
        : (this.#held << (FAST_BITS - count)) & FAST_MASK
    const entry = fast[ahead] ?? 0
    if (entry !== 0) {
      const length = entry & 31
      if (length > count) throw cutShort()
      this.#count = count - length
      return entry >> 5
    }
    let code = 0
    let first = 0
    let at = 0
    for (let length = 1; length <= LONGEST_CODE; length++) {
      code |= this.take(1)
      const codes = counts[length] ?? 0
      if (code - first < codes) return symbols[at + code - first] ?? 0
      at += codes
      first = (first + codes) << 1
      code <<= 1
    }
    throw new Malformed('the JPEG has an unknown code')
  }

  /** Drops what is left before the next marker, and returns that. */
  toMarker(): number {
    while (this.#marker === 0) {
      this.#count = 0
      this.#fill()
    }
    const marker = this.#marker
    this.#marker = 0
    this.#count = 0
    return marker
  }
}
