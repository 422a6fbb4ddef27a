import { expect, test } from 'vitest'
import { fromBase64, toBase64 } from '../../../src/protocol/base64.ts'

const bytes = (length: number) => Uint8Array.from({ length }, (_, n) => (n * 89 + (n >> 3)) & 255)

test('bytes of every length, in pieces of any length, are written as others write them', () => {
  for (const length of [0, 1, 2, 3, 4, 5, 255, 98_303, 98_304, 98_305, 300_000]) {
    const all = bytes(length)
    const text = Buffer.from(all).toString('base64')
    for (const piece of [1000, 98_304, 131_072, 1_000_000]) {
      const pieces = Array.from({ length: Math.ceil(length / piece) }, (_, n) =>
        all.subarray(n * piece, (n + 1) * piece),
      )
      expect(toBase64(pieces) === text).toBe(true)
    }
    expect(fromBase64(text)).toEqual(all)
  }
})

test('what others write in two ways is read in one', () => {
  expect(fromBase64('+/+/')).toEqual(Uint8Array.of(251, 255, 191))
  for (const text of [
    '-_-_',
    'AA',
    'AA=',
    'A===',
    '====',
    '=AAA',
    'A=AA',
    'AB==',
    'AAB=',
    'AA AA',
    'AAAA\n',
    'AAA*',
    'AA==AA==',
  ])
    expect(fromBase64(text), text).toBeNull()
})
