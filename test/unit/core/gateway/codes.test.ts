import { describe, expect, test } from 'vitest'
import { formatCode, normalizeCode, sameDigest } from '../../../../src/core/gateway/codes.ts'

describe('[RF 2] a manual code', () => {
  test.each([
    [0, '0000-0000'],
    [42, '0000-0042'],
    [12_345_678, '1234-5678'],
    [99_999_999, '9999-9999'],
  ])('%d is shown as %s', (value, shown) => {
    expect(formatCode(value)).toBe(shown)
  })

  test.each([-1, 100_000_000, 0.5, Number.NaN])('%d is no code', (value) => {
    expect(() => formatCode(value)).toThrow('invariant broken')
  })
})

describe('[RF 4] what was typed', () => {
  test.each([
    ['4821-9034', '48219034'],
    ['48219034', '48219034'],
    [' 48 21--90 34 ', '48219034'],
    ['', ''],
  ])('%j is compared as %j', (typed, compared) => {
    expect(normalizeCode(typed)).toBe(compared)
  })

  test.each(['4821\t9034', '4821\u00a09034', '4821\u20139034', '4821.9034', '4821_9034'])(
    'nothing but hyphens and spaces is removed from %j',
    (typed) => {
      expect(normalizeCode(typed)).toBe(typed)
    },
  )
})

describe('[RF 4] comparing digests', () => {
  const digest = '0123456789abcdef'.repeat(4)

  test('a digest is the same as itself, and as nothing that differs in one place', () => {
    expect(sameDigest(digest, digest)).toBe(true)
    const altered = Array.from(digest, (char, at) => {
      const other = char === '0' ? '1' : '0'
      return digest.slice(0, at) + other + digest.slice(at + 1)
    })
    expect(altered.filter((other) => sameDigest(digest, other))).toEqual([])
  })

  test('a part of it, and nothing, are different', () => {
    expect(sameDigest(digest, digest.slice(1))).toBe(false)
    expect(sameDigest(digest, `${digest}0`)).toBe(false)
    expect(sameDigest(digest, '')).toBe(false)
  })

  test('every character is read, wherever the first difference is', () => {
    const readsOf = (other: string): number => {
      let reads = 0
      const watched = new Proxy(Object(digest), {
        get: (_, name) => {
          if (name === 'length') return digest.length
          return (at: number) => {
            reads++
            return digest.charCodeAt(at)
          }
        },
      })
      sameDigest(watched, other)
      return reads
    }
    expect([readsOf(digest), readsOf(`f${digest.slice(1)}`), readsOf(`${digest.slice(1)}0`)]).toEqual([
      64, 64, 64,
    ])
  })
})
