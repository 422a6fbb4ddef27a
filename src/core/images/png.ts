import { MAX_IMAGE_SIDE } from '../../protocol/remote/limits.ts'
import type { ByteReader } from './byte-reader.ts'
import { makeCrcTable } from './crc.ts'
import type { Dimensions } from './dimensions.ts'
import { inflate } from './inflate.ts'
import { Malformed } from './malformed.ts'
import { type Raster, ScanlineCounter } from './scanlines.ts'

const SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
const HEADER_BYTES = 13
const MAX_PALETTE = 256

/** Samples per pixel of each colour type, and the depths that it may have (PNG, "Image header"). */
const COLOUR_TYPES: ReadonlyMap<number, { samples: number; depths: readonly number[] }> = new Map([
  [0, { samples: 1, depths: [1, 2, 4, 8, 16] }],
  [2, { samples: 3, depths: [8, 16] }],
  [3, { samples: 1, depths: [1, 2, 4, 8] }],
  [4, { samples: 2, depths: [8, 16] }],
  [6, { samples: 4, depths: [8, 16] }],
])
const GREY = 0
const INDEXED = 3
const GREY_WITH_ALPHA = 4

/**
 * Reads a PNG to its end: every chunk with its checksum, and every line of the picture, of which none is kept (D39).
 * @throws {Malformed}
 */
export function readPng(bytes: ByteReader): Dimensions {
  for (const expected of SIGNATURE) if (bytes.byte() !== expected) throw new Malformed('this is no PNG')
  return new PngReader(bytes).run()
}

class PngReader {
  readonly #bytes: ByteReader
  readonly #crcTable = makeCrcTable()
  #crc = 0
  #type = ''
  #left = 0

  constructor(bytes: ByteReader) {
    this.#bytes = bytes
  }

  run(): Dimensions {
    const header = this.#header()
    let palette = 0
    let pixels = false
    let type = this.#begin()
    while (type !== 'IEND') {
      if (type === 'IDAT') {
        if (pixels) throw new Malformed('the PNG has its data in several places')
        if (header.colour === INDEXED && palette === 0) throw new Malformed('the PNG lacks its palette')
        type = this.#pixels(header)
        pixels = true
        continue
      }
      if (type === 'PLTE') {
        if (palette > 0 || pixels) throw new Malformed('the PNG has a palette too many')
        palette = this.#palette(header)
      } else if (isCritical(type)) throw new Malformed('the PNG has a part that is not known')
      while (this.#left > 0) this.#data()
      this.#end()
      type = this.#begin()
    }
    if (!pixels || this.#left > 0) throw new Malformed('the PNG ends wrongly')
    this.#end()
    if (this.#bytes.byteOrEnd() >= 0) throw new Malformed('something stands behind the end of the PNG')
    return header
  }

  /** Length and type of the next chunk. */
  #begin(): string {
    const high = this.#bytes.uint16()
    this.#left = high * 65536 + this.#bytes.uint16()
    if (high > 0x7fff) throw new Malformed('a part of the PNG is too long')
    this.#crc = -1
    this.#type = ''
    for (let n = 0; n < 4; n++) {
      const letter = this.#sumByte()
      if (!isLetter(letter)) throw new Malformed('a part of the PNG has no valid name')
      this.#type += String.fromCharCode(letter)
    }
    return this.#type
  }

  #sumByte(): number {
    const byte = this.#bytes.byte()
    this.#crc = (this.#crcTable[(this.#crc ^ byte) & 255] ?? 0) ^ (this.#crc >>> 8)
    return byte
  }

  /** The next byte of the chunk, which has one. */
  #data(): number {
    this.#left--
    return this.#sumByte()
  }

  #data32(): number {
    return ((this.#data() << 24) | (this.#data() << 16) | (this.#data() << 8) | this.#data()) >>> 0
  }

  #end(): void {
    const found = (this.#bytes.uint16() << 16) | this.#bytes.uint16()
    if (found !== ~this.#crc) throw new Malformed('a checksum of the PNG is wrong')
  }

  #header(): Raster & { colour: number } {
    if (this.#begin() !== 'IHDR' || this.#left !== HEADER_BYTES)
      throw new Malformed('the PNG has no valid header')
    const width = this.#data32()
    const height = this.#data32()
    const depth = this.#data()
    const colour = this.#data()
    const compression = this.#data()
    const filter = this.#data()
    const interlace = this.#data()
    this.#end()
    if (width < 1 || height < 1) throw new Malformed('the picture has no pixels')
    if (width > MAX_IMAGE_SIDE || height > MAX_IMAGE_SIDE)
      throw new Malformed(`a picture may have at most ${MAX_IMAGE_SIDE} × ${MAX_IMAGE_SIDE} pixels`)
    const kind = COLOUR_TYPES.get(colour)
    if (!kind?.depths.includes(depth) || compression !== 0 || filter !== 0 || interlace > 1)
      throw new Malformed('the PNG has no valid header')
    return { width, height, bitsPerPixel: kind.samples * depth, interlaced: interlace === 1, colour }
  }

  /** How many colours it has. */
  #palette({ colour, bitsPerPixel }: Raster & { colour: number }): number {
    const colours = this.#left / 3
    const most = colour === INDEXED ? 2 ** bitsPerPixel : MAX_PALETTE
    const may = colour !== GREY && colour !== GREY_WITH_ALPHA
    if (!may || colours < 1 || colours > most || !Number.isInteger(colours))
      throw new Malformed('the palette of the PNG is broken')
    return colours
  }

  /** All chunks of data, which follow one another. Returns the type of the chunk behind them, which has been begun. */
  #pixels(header: Raster): string {
    const counter = new ScanlineCounter(header)
    const byte = () => {
      if (!this.#moveToData()) throw new Malformed('the data of the PNG ends too early')
      return this.#data()
    }
    inflate(byte, (piece, from, to) => counter.take(piece, from, to))
    counter.finish()
    if (this.#moveToData()) throw new Malformed('the PNG has more data than its picture')
    return this.#type
  }

  /** Whether a byte of data is there; if not, another chunk has begun. */
  #moveToData(): boolean {
    while (this.#left === 0 && this.#type === 'IDAT') {
      this.#end()
      this.#begin()
    }
    return this.#type === 'IDAT'
  }
}

const isLetter = (code: number): boolean => (code >= 65 && code <= 90) || (code >= 97 && code <= 122)

/** What has to be understood to show the picture begins with a capital letter. */
const isCritical = (type: string): boolean => type.charCodeAt(0) < 97
