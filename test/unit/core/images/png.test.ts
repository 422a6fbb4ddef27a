import { deflateRawSync, deflateSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { checkImage } from '../../../../src/core/images/check.ts'
import { MAX_IMAGE_SIDE } from '../../../../src/protocol/remote/limits.ts'
import {
  check,
  makePng,
  PALETTE,
  PNG_SIGNATURE,
  pngChunk,
  pngHeader,
  pngLines,
} from '../../../support/node/pictures.ts'

const checkPng = (...parts: Uint8Array[]) => check('image/png', Buffer.concat(parts))
const END = pngChunk('IEND')
const DATA = pngChunk('IDAT', deflateSync(pngLines()))
const whole = (data: Uint8Array) => checkPng(PNG_SIGNATURE, pngHeader(), pngChunk('IDAT', data), END)

describe('[D39] a PNG is read to its end', () => {
  const kinds = [
    ...[1, 2, 4, 8, 16].map((depth) => [0, depth]),
    ...[8, 16].map((depth) => [2, depth]),
    ...[1, 2, 4, 8].map((depth) => [3, depth]),
    ...[8, 16].map((depth) => [4, depth]),
    ...[8, 16].map((depth) => [6, depth]),
  ]
  const sizes = [
    [1, 1],
    [3, 9],
    [8, 8],
    [13, 17],
    [129, 5],
  ] as const

  test.each(kinds)('of colour type %i with %i bits, interlaced or not', (colour, depth) => {
    for (const [width, height] of sizes) {
      for (const interlaced of [false, true]) {
        const file = makePng({ width, height, colour, depth, interlaced })
        expect(check('image/png', file)).toEqual({ ok: true, value: { width, height } })
      }
    }
  })

  test('however its data was compressed, and however it is cut into chunks and pieces', () => {
    const lines = pngLines({ width: 200, height: 200 })
    for (const options of [{ level: 0 }, { level: 1 }, { level: 9 }, { strategy: 2 }, { strategy: 4 }]) {
      const data = deflateSync(lines, options)
      const third = Math.ceil(data.length / 3)
      // One of them is empty.
      const cuts = [0, third, third, 2 * third, data.length]
      const chunks = cuts.slice(1).map((to, n) => pngChunk('IDAT', data.subarray(cuts[n], to)))
      const file = Buffer.concat([
        PNG_SIGNATURE,
        pngHeader({ width: 200, height: 200 }),
        pngChunk('tEXt', Buffer.from('a\0b')),
        ...chunks,
        pngChunk('tIME', Buffer.alloc(7)),
        END,
      ])
      for (const pieceBytes of [1, 7, 100_000])
        expect(check('image/png', file, pieceBytes)).toMatchObject({ ok: true })
    }
  })

  test('up to the largest size', () => {
    const side = MAX_IMAGE_SIDE
    expect(check('image/png', makePng({ width: side, height: 1, colour: 0, depth: 1 }))).toMatchObject({
      ok: true,
    })
    expect(check('image/png', makePng({ width: 1, height: side, colour: 0, depth: 1 }))).toMatchObject({
      ok: true,
    })
    for (const shape of [
      { width: side + 1, height: 1 },
      { width: 1, height: side + 1 },
    ])
      expect(check('image/png', makePng({ ...shape, colour: 0, depth: 1 }))).toEqual({
        ok: false,
        error: 'a picture may have at most 4096 × 4096 pixels',
      })
  })

  test('but not further than its picture goes: what grows without end is stopped', () => {
    const bomb = Buffer.concat([
      PNG_SIGNATURE,
      pngHeader(),
      pngChunk('IDAT', deflateSync(Buffer.alloc(50_000_000))),
      END,
    ])
    let read = 0
    const checked = checkImage('image/png', () => bomb.subarray(512 * read, 512 * ++read))
    expect(checked).toEqual({ ok: false, error: 'the PNG has more data than its picture' })
    expect(read).toBeLessThan(5)
  })
})

describe('what is no whole PNG is refused', () => {
  const parts = [PNG_SIGNATURE, pngHeader(), DATA, END]

  test('one that ends anywhere before its end', () => {
    const file = makePng({ interlaced: true })
    for (let length = 0; length < file.length; length++)
      expect(check('image/png', file.subarray(0, length)).ok).toBe(false)
  })

  test('one with any bit changed', () => {
    const file = makePng()
    for (let bit = 0; bit < file.length * 8; bit++) {
      const changed = Buffer.from(file)
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      expect(check('image/png', changed).ok).toBe(false)
    }
  })

  test.each<[string, Uint8Array[]]>([
    ['one with something behind it', [...parts, Buffer.from([0])]],
    ['one without its header', [PNG_SIGNATURE, DATA, END]],
    ['one with two headers', [PNG_SIGNATURE, pngHeader(), pngHeader(), DATA, END]],
    ['one without data', [PNG_SIGNATURE, pngHeader(), END]],
    ['one with data in two places', [PNG_SIGNATURE, pngHeader(), DATA, pngChunk('tIME'), DATA, END]],
    ['one that lacks its palette', [PNG_SIGNATURE, pngHeader({ colour: 3 }), DATA, END]],
    ['one with two palettes', [PNG_SIGNATURE, pngHeader(), PALETTE, PALETTE, DATA, END]],
    ['one with a palette behind its data', [PNG_SIGNATURE, pngHeader(), DATA, PALETTE, END]],
    ['a grey one with a palette', [PNG_SIGNATURE, pngHeader({ colour: 0 }), PALETTE, DATA, END]],
    ['one with half a colour', [PNG_SIGNATURE, pngHeader(), pngChunk('PLTE', Buffer.alloc(4)), DATA, END]],
    ['one with a part that has to be known', [PNG_SIGNATURE, pngHeader(), pngChunk('ABCD'), DATA, END]],
    ['one with a name that is none', [PNG_SIGNATURE, pngHeader(), pngChunk('a1cd'), DATA, END]],
    ['one whose end has content', [PNG_SIGNATURE, pngHeader(), DATA, pngChunk('IEND', Buffer.alloc(1))]],
    ['one of no width', [PNG_SIGNATURE, pngHeader({ width: 0 }), DATA, END]],
    ['one of no height', [PNG_SIGNATURE, pngHeader({ height: 0 }), DATA, END]],
    ['one of a depth that its colours do not have', [PNG_SIGNATURE, pngHeader({ depth: 4 }), DATA, END]],
    ['one of an unknown colour type', [PNG_SIGNATURE, pngHeader({ colour: 5 }), DATA, END]],
    ['a JPEG', [Buffer.from([0xff, 0xd8, 0xff, 0xd9])]],
  ])('%s', (_, file) => {
    expect(checkPng(...file)).toMatchObject({ ok: false })
  })

  test.each<[string, Uint8Array]>([
    ['a line less', deflateSync(pngLines({ height: 2 }))],
    ['a line more', deflateSync(pngLines({ height: 4 }))],
    ['a byte less', deflateSync(pngLines().subarray(1))],
    ['a filter that does not exist', deflateSync(pngLines({}, () => 5))],
    ['no frame around its data', deflateRawSync(pngLines())],
    ['something behind its data', Buffer.concat([deflateSync(pngLines()), Buffer.from([1])])],
    ['a wrong checksum', changedAt(deflateSync(pngLines()), -1)],
    ['a dictionary that nobody has', deflateSync(pngLines(), { dictionary: Buffer.from('abc') })],
  ])('one with %s', (_, data) => {
    expect(whole(data)).toMatchObject({ ok: false })
  })

  test('the same data as it should be is taken', () => {
    expect(whole(deflateSync(pngLines()))).toEqual({ ok: true, value: { width: 5, height: 3 } })
  })
})

function changedAt(bytes: Buffer, at: number): Buffer {
  const changed = Buffer.from(bytes)
  const index = (at + bytes.length) % bytes.length
  changed[index] = (changed[index] ?? 0) ^ 1
  return changed
}
