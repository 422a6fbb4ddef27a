import { Malformed } from './malformed.ts'

/** Codes up to this many bits are looked up in one step. Longer ones are rare, and a table for them is dear to make. */
export const FAST_BITS = 9
export const FAST_MASK = (1 << FAST_BITS) - 1
export const LONGEST_CODE = 16

/** Canonical prefix codes, as DEFLATE and JPEG have them: those of one length are consecutive numbers. */
export type CodeTable = {
  /** By the next `FAST_BITS` bits, in the order of the stream: the symbol times 32, plus the length; 0: not known so. */
  fast: Uint16Array
  /** Codes of each length. */
  counts: Uint16Array
  /** In the order of their codes. */
  symbols: Uint16Array
  /** How many codes could still be added: 0 means that every sequence of bits is one. */
  unused: number
}

/**
 * @param counts codes of each length, from 0 to 16; those of length 0 are none
 * @param symbols in the order of their codes
 * @param lowFirst the stream has the first bit of a code in the lowest place, as DEFLATE does
 * @throws {Malformed} where there are more codes than their lengths allow
 */
export function makeCodeTable(counts: Uint16Array, symbols: Uint16Array, lowFirst: boolean): CodeTable {
  const fast = new Uint16Array(1 << FAST_BITS)
  let code = 0
  let at = 0
  let unused = 1
  for (let length = 1; length <= LONGEST_CODE; length++) {
    const count = counts[length] ?? 0
    unused = unused * 2 - count
    if (unused < 0) throw new Malformed('a code table has too many codes')
    for (let n = 0; n < count; n++, at++, code++) {
      if (length <= FAST_BITS) fill(fast, code, length, ((symbols[at] ?? 0) << 5) | length, lowFirst)
    }
    code <<= 1
  }
  return { fast, counts, symbols, unused }
}

function fill(fast: Uint16Array, code: number, length: number, entry: number, lowFirst: boolean): void {
  const spare = FAST_BITS - length
  if (!lowFirst) {
    fast.fill(entry, code << spare, (code + 1) << spare)
    return
  }
  let reversed = 0
  for (let bit = 0; bit < length; bit++) reversed |= ((code >> bit) & 1) << (length - 1 - bit)
  for (let index = reversed; index <= FAST_MASK; index += 1 << length) fast[index] = entry
}
