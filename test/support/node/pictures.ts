/** Small pictures as files, and the parts that they are made of. */

import { crc32, deflateSync } from 'node:zlib'
import { checkImage, type UploadedKind } from '../../../src/core/images/check.ts'
import jpegs from './jpegs.json' with { type: 'json' }

/** A chunk of a PNG with its checksum. */
export function pngChunk(type: string, data: Uint8Array = new Uint8Array(0)): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const frame = Buffer.alloc(8)
  frame.writeUInt32BE(data.length, 0)
  frame.writeUInt32BE(crc32(named), 4)
  return Buffer.concat([frame.subarray(0, 4), named, frame.subarray(4)])
}

export const PNG_SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

export type PngShape = {
  width?: number
  height?: number
  depth?: number
  colour?: number
  interlaced?: boolean
}

export function pngHeader({
  width = 5,
  height = 3,
  depth = 8,
  colour = 2,
  interlaced = false,
}: PngShape = {}) {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header[8] = depth
  header[9] = colour
  header[12] = interlaced ? 1 : 0
  return pngChunk('IHDR', header)
}

const SAMPLES: Record<number, number> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }

/** Which pass of an interlaced picture each pixel of a square of 8 × 8 belongs to, as the standard draws it. */
const PASSES = [
  '16462646',
  '77777777',
  '56565656',
  '77777777',
  '36463646',
  '77777777',
  '56565656',
  '77777777',
]

/** The lines of a picture whose samples count up, each led by a filter: `filter` of the number of the line. */
export function pngLines(
  { width = 5, height = 3, depth = 8, colour = 2, interlaced = false }: PngShape = {},
  filter: (line: number) => number = (line) => line % 5,
): Buffer {
  const passes = interlaced ? '1234567' : '0'
  const lines: Buffer[] = []
  for (const pass of passes) {
    for (let y = 0; y < height; y++) {
      const columns = Array.from({ length: width }, (_, x) => x).filter(
        (x) => pass === '0' || PASSES[y % 8]?.[x % 8] === pass,
      )
      if (columns.length === 0) continue
      const bytes = Math.ceil((columns.length * (SAMPLES[colour] ?? 1) * depth) / 8)
      const line = Buffer.from(Array.from({ length: bytes + 1 }, (_, n) => (n * 7 + y * 31) & 255))
      line[0] = filter(lines.length)
      lines.push(line)
    }
  }
  return Buffer.concat(lines)
}

export const PALETTE = pngChunk('PLTE', Buffer.from([0, 0, 0, 255, 255, 255]))

/** A whole PNG. */
export function makePng(shape: PngShape = {}): Buffer {
  return Buffer.concat([
    PNG_SIGNATURE,
    pngHeader(shape),
    ...(shape.colour === 3 ? [PALETTE] : []),
    pngChunk('IDAT', deflateSync(pngLines(shape))),
    pngChunk('IEND'),
  ])
}

/** A PNG of about so many bytes, which says nothing and compresses badly. */
export function makeLongPng(bytes: number): Buffer {
  const comment = Buffer.alloc(bytes, 'x')
  return Buffer.concat([
    PNG_SIGNATURE,
    pngHeader(),
    pngChunk('teXt', comment),
    pngChunk('IDAT', deflateSync(pngLines())),
    pngChunk('IEND'),
  ])
}

/** Files of a common encoder with a random picture, 43 × 29 and 21 × 15 pixels. */
export const JPEGS: readonly (readonly [name: string, file: Buffer])[] = Object.entries(jpegs).map(
  ([name, base64]) => [name, Buffer.from(base64, 'base64')],
)

export function jpegNamed(name: keyof typeof jpegs): Buffer {
  return Buffer.from(jpegs[name], 'base64')
}

/** Checks a file that comes in pieces of so many bytes. */
export function check(kind: UploadedKind, file: Uint8Array, pieceBytes = 128 * 1024) {
  let at = 0
  return checkImage(kind, () => {
    if (at >= file.length) return null
    const piece = file.subarray(at, at + pieceBytes)
    at += pieceBytes
    return piece
  })
}

/** A segment of a JPEG with its length. */
export function jpegSegment(marker: number, data: readonly number[]): Buffer {
  const length = data.length + 2
  return Buffer.from([0xff, marker, length >> 8, length & 255, ...data])
}

const PROGRESSIVE = 0xc2
const SIXTEEN_TIMES_ONE = Array.from({ length: 64 }, () => 1)

/** Tables with codes of a bit or two: all values are 0, and 0xe0 ends the band in many blocks at once. */
const CODES = [
  jpegSegment(0xc4, [0x00, 1, ...Array.from({ length: 15 }, () => 0), 0]),
  jpegSegment(0xc4, [0x10, 1, 1, ...Array.from({ length: 14 }, () => 0), 0, 0xe0]),
]

/** The beginning of a white picture, up to its first scan. */
export function blankJpeg(width: number, height: number, components: number, kind = PROGRESSIVE): Buffer {
  const parts = Array.from({ length: components }, (_, n) => [n + 1, 0x11, 0]).flat()
  return Buffer.concat([
    Buffer.from([0xff, 0xd8]),
    jpegSegment(0xdb, [0, ...SIXTEEN_TIMES_ONE]),
    jpegSegment(kind, [8, height >> 8, height & 255, width >> 8, width & 255, components, ...parts]),
    ...CODES,
  ])
}

/** A scan of one component or all of them. `bits`: as many as it takes, all of them 0, filled up with ones. */
export function blankScan(
  components: readonly number[],
  [first, last, high, low]: readonly [number, number, number, number],
  bits: number,
): Buffer {
  const data = Buffer.alloc(Math.ceil(bits / 8))
  if (bits % 8 > 0) data[data.length - 1] = 0xff >> (bits % 8)
  const parts = components.flatMap((id) => [id, 0])
  return Buffer.concat([
    jpegSegment(0xda, [components.length, ...parts, first, last, (high << 4) | low]),
    data,
  ])
}

export const JPEG_END = Buffer.from([0xff, 0xd9])
