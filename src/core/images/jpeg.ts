import type { ByteReader } from './byte-reader.ts'
import type { Dimensions } from './dimensions.ts'
import { type CodeTable, LONGEST_CODE, makeCodeTable } from './huffman.ts'
import { JpegBits } from './jpeg-bits.ts'
import { type Component, type Frame, readFrame } from './jpeg-frame.ts'
import { readScan, type Scan } from './jpeg-scan.ts'
import { Malformed } from './malformed.ts'

const START = 0xd8
const END = 0xd9
const BASELINE = 0xc0
const EXTENDED = 0xc1
const PROGRESSIVE = 0xc2
const CODE_TABLES = 0xc4
const QUANTIZATION_TABLES = 0xdb
const RESTART_INTERVAL = 0xdd
const SCAN = 0xda
const COMMENT = 0xfe

/** Programs write about ten; each goes over the whole picture. */
const MAX_SCANS = 100
/** Blocks of a unit, as far as several components stand in one scan (JPEG, B.2.3). */
const MAX_UNIT_BLOCKS = 10
const MAX_LOW_BIT = 13

/**
 * Reads a JPEG to its end marker, every block of every scan, without keeping a pixel (D39): what is coded by Huffman
 * codes with eight bits per colour, progressive or not. What stands behind the end marker is no part of the picture.
 * @throws {Malformed}
 */
export function readJpeg(bytes: ByteReader): Dimensions {
  if (bytes.byte() !== 0xff || bytes.byte() !== START) throw new Malformed('this is no JPEG')
  return new JpegReader(bytes).run()
}

class JpegReader {
  readonly #bytes: ByteReader
  readonly #bits: JpegBits
  #frame: Frame | null = null
  #scans = 0
  #restartInterval = 0
  readonly #quantizations = new Set<number>()
  /** By class (0: of the first coefficient, 1: of the others) times four, plus number. */
  readonly #codes = new Map<number, CodeTable>()

  constructor(bytes: ByteReader) {
    this.#bytes = bytes
    this.#bits = new JpegBits(bytes)
  }

  run(): Dimensions {
    let marker = this.#marker()
    while (marker !== END) marker = this.#segment(marker) ?? this.#marker()
    if (this.#frame === null || !this.#frame.components.every(isWhole))
      throw new Malformed('the JPEG lacks a part of its picture')
    return this.#frame
  }

  #marker(): number {
    if (this.#bytes.byte() !== 0xff) throw new Malformed('a part of the JPEG does not begin where it should')
    let marker = this.#bytes.byte()
    while (marker === 0xff) marker = this.#bytes.byte()
    return marker
  }

  /** Reads a segment. The marker behind it, where that had to be read with it. */
  #segment(marker: number): number | null {
    const isData = marker === COMMENT || (marker >= 0xe0 && marker <= 0xef)
    const known = [BASELINE, EXTENDED, PROGRESSIVE, CODE_TABLES, QUANTIZATION_TABLES, RESTART_INTERVAL, SCAN]
    if (!isData && !known.includes(marker)) throw new Malformed('the JPEG has a part that is not known')
    const length = this.#bytes.uint16() - 2
    if (length < 0) throw new Malformed('a part of the JPEG has no length')
    switch (marker) {
      case BASELINE:
      case EXTENDED:
      case PROGRESSIVE:
        if (this.#frame !== null) throw new Malformed('the JPEG has two pictures in one')
        this.#frame = readFrame(this.#bytes, length, marker === PROGRESSIVE)
        return null
      case CODE_TABLES:
        this.#readCodes(length)
        return null
      case QUANTIZATION_TABLES:
        this.#readQuantizations(length)
        return null
      case RESTART_INTERVAL:
        if (length !== 2) throw new Malformed('a part of the JPEG has a wrong length')
        this.#restartInterval = this.#bytes.uint16()
        return null
      case SCAN:
        return this.#readScan(length)
      default:
        this.#bytes.skip(length)
        return null
    }
  }

  #readQuantizations(length: number): void {
    for (let left = length; left > 0; ) {
      const head = this.#bytes.byte()
      const size = head >> 4 === 0 ? 64 : 128
      left -= 1 + size
      if (head >> 4 > 1 || (head & 15) > 3 || left < 0) throw new Malformed('a table of the JPEG is broken')
      this.#bytes.skip(size)
      this.#quantizations.add(head & 15)
    }
  }

  #readCodes(length: number): void {
    for (let left = length; left > 0; ) {
      const head = this.#bytes.byte()
      const counts = new Uint16Array(LONGEST_CODE + 1)
      let codes = 0
      for (let bits = 1; bits <= LONGEST_CODE; bits++) {
        const count = this.#bytes.byte()
        counts[bits] = count
        codes += count
      }
      left -= 1 + LONGEST_CODE + codes
      if (head >> 4 > 1 || (head & 15) > 3 || codes > 256 || left < 0)
        throw new Malformed('a table of the JPEG is broken')
      const symbols = Uint16Array.from({ length: codes }, () => this.#bytes.byte())
      this.#codes.set((head >> 4) * 4 + (head & 15), makeCodeTable(counts, symbols, false))
    }
  }

  /** Returns the marker behind the scan. */
  #readScan(length: number): number {
    const frame = this.#frame
    if (frame === null) throw new Malformed('the JPEG has a scan before its header')
    if (++this.#scans > MAX_SCANS) throw new Malformed('the JPEG has too many scans')
    const scan = this.#scanHeader(frame, length)
    for (const { component } of scan.parts) {
      if (frame.progressive) noteProgress(component, scan)
      else if (component.isRead) throw new Malformed('the JPEG has a part of its picture twice')
      component.isRead = true
    }
    readScan(frame, scan, this.#bits, this.#restartInterval)
    return this.#bits.toMarker()
  }

  #scanHeader(frame: Frame, length: number): Scan {
    const count = this.#bytes.byte()
    if (count < 1 || count > 4 || length !== 4 + 2 * count)
      throw new Malformed('a scan of the JPEG is broken')
    const chosen = Array.from({ length: count }, () => ({
      id: this.#bytes.byte(),
      tables: this.#bytes.byte(),
    }))
    const first = this.#bytes.byte()
    const last = this.#bytes.byte()
    const approximation = this.#bytes.byte()
    const [high, low] = [approximation >> 4, approximation & 15]
    if (frame.progressive) {
      const isBand = first === 0 ? last === 0 : count === 1 && first <= last && last < 64
      if (!isBand || low > MAX_LOW_BIT || (high !== 0 && high !== low + 1))
        throw new Malformed('a scan of the JPEG is broken')
    }
    const needsDc = !frame.progressive || (first === 0 && high === 0)
    const needsAc = !frame.progressive || first > 0
    const parts = chosen.map(({ id, tables }) => {
      const component = frame.components.find((known) => known.id === id)
      if (component === undefined || !this.#quantizations.has(component.quantization))
        throw new Malformed('a scan of the JPEG is broken')
      const dc = needsDc ? this.#codes.get(tables >> 4) : null
      const ac = needsAc ? this.#codes.get(4 + (tables & 15)) : null
      if (dc === undefined || ac === undefined || tables >> 4 > 3 || (tables & 15) > 3)
        throw new Malformed('a scan of the JPEG lacks a table')
      return { component, dc, ac }
    })
    const blocks = parts.reduce((sum, { component: { across, down } }) => sum + across * down, 0)
    const isDouble = new Set(chosen.map(({ id }) => id)).size !== count
    if (isDouble || (count > 1 && blocks > MAX_UNIT_BLOCKS))
      throw new Malformed('a scan of the JPEG is broken')
    return { parts, first, last, high, low }
  }
}

/**
 * A progressive picture comes bit by bit: each scan goes on where the ones before ended. Held to that, the work on a
 * picture stays within what its size allows.
 */
function noteProgress(component: Component, { first, last, high, low }: Scan): void {
  const { precision } = component
  if (first > 0 && precision[0] === -1) throw new Malformed('the JPEG has its scans in a wrong order')
  for (let k = first; k <= last; k++) {
    const known = precision[k] ?? -1
    if (high === 0 ? known !== -1 : known !== high)
      throw new Malformed('the JPEG has its scans in a wrong order')
    precision[k] = low
  }
  if (first > 0) component.nonzero ??= new Uint32Array(2 * component.allAcross * component.allDown)
}

const isWhole = ({ isRead, precision }: Component): boolean => isRead || precision[0] !== -1
