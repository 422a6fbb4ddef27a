import fc from 'fast-check'
import { expect, test } from 'vitest'
import { base64urlBytes, fromBase64url, toBase64url } from '../../../src/protocol/base64url.ts'

test('[EC 17.1] bytes are written as base64url without padding, and read back', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const text = toBase64url(bytes)
      expect(text).toBe(Buffer.from(bytes).toString('base64url'))
      expect(fromBase64url(text)).toEqual(new Uint8Array(bytes))
    }),
    { numRuns: 200, seed: 1 },
  )
})

test('[EC 17.1] each byte string has exactly one spelling', () => {
  const letters = fc.string({ unit: fc.constantFrom(...'AQgwBCDxyz019-_+/= \n\u0000é\u2003'), maxLength: 9 })
  fc.assert(
    fc.property(letters, (text) => {
      const bytes = fromBase64url(text)
      expect(base64urlBytes(text)).toBe(bytes?.length ?? null)
      // What is read at all is written the same way.
      if (bytes !== null) expect(toBase64url(bytes)).toBe(text)
      // Node reads anything; what it reads and writes the same way is what we read.
      else expect(Buffer.from(text, 'base64url').toString('base64url')).not.toBe(text)
    }),
    { numRuns: 1_000, seed: 2 },
  )
})

test.each([
  ['padding', 'AA=='],
  ['the other alphabet', '+/AA'],
  ['a length that cannot be', 'AAAAA'],
  ['bits left over', 'AB'],
  ['bits left over in the third letter', 'AAB'],
  ['a space', 'AA A'],
  ['a letter beyond ASCII', 'AAAÁ'],
])('[EC 17.1] %s is refused', (_, text) => {
  expect(fromBase64url(text)).toBeNull()
})

test('a text of many megabytes is written and read, also one that is wrong at its end', () => {
  const text = toBase64url(new Uint8Array(6 * 1024 * 1024 + 1).fill(0xa5))
  expect(text).toBe(Buffer.alloc(6 * 1024 * 1024 + 1, 0xa5).toString('base64url'))
  expect(fromBase64url(text)?.length).toBe(6 * 1024 * 1024 + 1)
  expect(base64urlBytes(`${text}=`)).toBeNull()
})

test('nothing at all is no bytes', () => {
  expect(fromBase64url('')).toEqual(new Uint8Array())
  expect(toBase64url(new Uint8Array())).toBe('')
})
