import { describe, expect, test } from 'vitest'
import { estimateTokens } from '../../../src/core/tokens.ts'

describe('[EC 10.2] tokens are estimated as a quarter of the code points, rounded up', () => {
  test.each([
    ['', 0],
    ['a', 1],
    ['abcd', 1],
    ['abcde', 2],
    ['ÄÖÜß', 1],
    ['😀😀😀😀', 1],
    ['😀😀😀😀😀', 2],
    ['x'.repeat(4001), 1001],
  ])('%j: %i', (text, tokens) => {
    expect(estimateTokens(text)).toBe(tokens)
  })

  test('half a pair counts as one, whatever follows', () => {
    for (const text of ['\ud83dabc', '\ude00abc', 'abc\ud83d', '\ud83d\ud83d\ude00ab'])
      expect(estimateTokens(text)).toBe(Math.ceil(Array.from(text).length / 4))
  })
})
