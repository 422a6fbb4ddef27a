import { describe, expect, test } from 'vitest'
import { MAX_IMAGE_SIDE } from '../../../../src/protocol/remote/limits.ts'
import {
  blankJpeg,
  blankScan,
  check,
  JPEG_END,
  JPEGS,
  jpegNamed,
  jpegSegment,
  makePng,
} from '../../../support/node/pictures.ts'

const checkJpeg = (...parts: Uint8Array[]) => check('image/jpeg', Buffer.concat(parts))
const DC = [0, 0, 0, 0] as const
/** Units of 8 × 8 pixels, each with a bit per component. */
const SIXTEEN = blankJpeg(32, 32, 1)
const FIRST = blankScan([1], DC, 16)
const BASELINE = 0xc0

describe('[D39] a JPEG is read to its end', () => {
  test.each(JPEGS)('%s', (_name, file) => {
    const size =
      file.length > 0 && _name.startsWith('CMYK') ? { width: 21, height: 15 } : { width: 43, height: 29 }
    for (const pieceBytes of [1, 13, 100_000])
      expect(check('image/jpeg', file, pieceBytes)).toEqual({ ok: true, value: size })
  })

  test('whatever a camera puts behind its end', () => {
    expect(checkJpeg(jpegNamed('grey'), makePng())).toMatchObject({ ok: true })
  })

  test('up to the largest size', () => {
    const wide = (width: number, height: number) =>
      checkJpeg(
        blankJpeg(width, height, 1),
        blankScan([1], DC, Math.ceil(width / 8) * Math.ceil(height / 8)),
        JPEG_END,
      )
    expect(wide(MAX_IMAGE_SIDE, 1)).toEqual({ ok: true, value: { width: MAX_IMAGE_SIDE, height: 1 } })
    expect(wide(1, MAX_IMAGE_SIDE)).toMatchObject({ ok: true })
    const error = 'a picture may have at most 4096 × 4096 pixels'
    expect(wide(MAX_IMAGE_SIDE + 1, 1)).toEqual({ ok: false, error })
    expect(wide(1, MAX_IMAGE_SIDE + 1)).toEqual({ ok: false, error })
  })

  test('with the last bit of a scan, and not before', () => {
    expect(checkJpeg(SIXTEEN, FIRST, JPEG_END)).toEqual({ ok: true, value: { width: 32, height: 32 } })
    expect(checkJpeg(SIXTEEN, blankScan([1], DC, 8), JPEG_END)).toEqual({
      ok: false,
      error: 'the file ends too early',
    })
  })
})

describe('what is no whole JPEG is refused', () => {
  test.each(JPEGS)('%s, cut anywhere', (_name, file) => {
    for (let length = 0; length < file.length; length++)
      expect(check('image/jpeg', file.subarray(0, length)).ok).toBe(false)
  })

  test.each(JPEGS)('%s, with data missing before its end marker', (_name, file) => {
    const scan = file.lastIndexOf(Buffer.from([0xff, 0xda]))
    const cut = Math.floor((scan + file.length) / 2)
    expect(checkJpeg(file.subarray(0, cut), JPEG_END)).toMatchObject({ ok: false })
  })

  const twice = blankScan([1], DC, 16)
  const baseline = blankJpeg(32, 32, 1, BASELINE)
  const rest = blankScan([1], [1, 63, 0, 0], 32)
  test.each<[string, Uint8Array[]]>([
    ['a PNG', [makePng()]],
    ['one without a scan', [SIXTEEN, JPEG_END]],
    ['one without its end', [SIXTEEN, FIRST]],
    ['one with two headers', [SIXTEEN, jpegSegment(0xc2, [8, 0, 8, 0, 8, 1, 1, 0x11, 0]), FIRST, JPEG_END]],
    ['one whose scan lacks its tables', [SIXTEEN, blankScan([1], DC, 16).fill(0x33, 6, 7), JPEG_END]],
    ['one with a scan of a component that it has not', [SIXTEEN, blankScan([2], DC, 16), JPEG_END]],
    ['one that lacks a component', [blankJpeg(32, 32, 3), blankScan([1], DC, 16), JPEG_END]],
    [
      'one with the same component twice in a scan',
      [blankJpeg(32, 32, 3), blankScan([1, 1], DC, 32), JPEG_END],
    ],
    ['a progressive one that begins again', [SIXTEEN, FIRST, twice, JPEG_END]],
    ['a progressive one that begins with its details', [SIXTEEN, rest, JPEG_END]],
    ['one with a band that is none', [SIXTEEN, FIRST, blankScan([1], [5, 4, 0, 0], 32), JPEG_END]],
    ['one with a band over all', [SIXTEEN, FIRST, blankScan([1], [0, 63, 0, 0], 32), JPEG_END]],
    [
      'one that leaves out a bit',
      [SIXTEEN, blankScan([1], [0, 0, 0, 3], 16), blankScan([1], [0, 0, 2, 1], 16), JPEG_END],
    ],
    ['a plain one that begins again', [baseline, blankScan([1], DC, 32), blankScan([1], DC, 32), JPEG_END]],
    [
      'one of twelve bits',
      [Buffer.from([0xff, 0xd8]), jpegSegment(0xc1, [12, 0, 8, 0, 8, 1, 1, 0x11, 0]), JPEG_END],
    ],
    ['one of no size', [blankJpeg(0, 0, 1), JPEG_END]],
    ['one of five components', [blankJpeg(32, 32, 5), JPEG_END]],
    [
      'one without loss',
      [Buffer.from([0xff, 0xd8]), jpegSegment(0xc3, [8, 0, 8, 0, 8, 1, 1, 0x11, 0]), JPEG_END],
    ],
    ['one with arithmetic codes', [blankJpeg(32, 32, 1, 0xc9), FIRST, JPEG_END]],
    [
      'one with a table of too many codes',
      [
        Buffer.from([0xff, 0xd8]),
        jpegSegment(0xc4, [0, 3, ...Array.from({ length: 15 }, () => 0), 1, 2, 3]),
        SIXTEEN.subarray(2),
        FIRST,
        JPEG_END,
      ],
    ],
    [
      'one with a part of no length',
      [Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 1]), SIXTEEN.subarray(2), FIRST, JPEG_END],
    ],
    ['one with bytes between its parts', [SIXTEEN, Buffer.from([0]), FIRST, JPEG_END]],
    ['one whose restarts are missing', [SIXTEEN, jpegSegment(0xdd, [0, 2]), FIRST, JPEG_END]],
  ])('%s', (_, file) => {
    expect(checkJpeg(...file)).toMatchObject({ ok: false })
  })

  test('one that goes over its picture again and again', () => {
    const scans = Array.from({ length: 13 }, (_, n) =>
      blankScan([1], [0, 0, n === 0 ? 0 : 13 - n + 1, 13 - n], 16),
    )
    expect(checkJpeg(SIXTEEN, ...scans, JPEG_END)).toMatchObject({ ok: true })
    const bands = Array.from({ length: 63 }, (_, n) => blankScan([1], [n + 1, n + 1, 0, 1], 16))
    const again = Array.from({ length: 63 }, (_, n) => blankScan([1], [n + 1, n + 1, 1, 0], 16))
    expect(checkJpeg(SIXTEEN, FIRST, ...bands, JPEG_END)).toMatchObject({ ok: true })
    expect(checkJpeg(SIXTEEN, FIRST, ...bands, ...again, JPEG_END)).toEqual({
      ok: false,
      error: 'the JPEG has too many scans',
    })
  })
})
