import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { estimateTokens, estimateTokensOf } from '../../../src/core/tokens.ts'

/** Texts of many kinds with what two public encodings, of about 200,000 and 100,000 tokens, make of them. */
const SAMPLES = z
  .array(z.object({ kind: z.string(), o200k: z.int(), cl100k: z.int(), text: z.string() }))
  .parse(JSON.parse(readFileSync(new URL('../../support/core/token-samples.json', import.meta.url), 'utf8')))

const countOf = ({ o200k, cl100k }: { o200k: number; cl100k: number }): number => Math.max(o200k, cl100k)
/** The same cases each time. */
const RUNS = { numRuns: 500, seed: 1 }

const quarterOf = (text: string): number => Math.ceil(Array.from(text).length / 4)
const sampleOf = (kind: string) => {
  const sample = SAMPLES.find((each) => each.kind === kind)
  if (!sample) throw new Error(`there is no sample of ${kind}`)
  return sample
}

/** Any code units, with what is frequent in real texts more frequent: words, runs, scripts, halves of pairs. */
const someText = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 12 }),
      fc.string({ unit: 'grapheme-ascii', maxLength: 12 }),
      fc.constantFrom(' ', '  ', '\n', '\t', '\ud83d', '\ude00', '😀', '─', 'the', 'über', '12', '":{"'),
      fc
        .tuple(fc.constantFrom('a', 'q', 'Z', ' ', '-', '─', '字', '\n'), fc.nat({ max: 40 }))
        .map(([char, times]) => char.repeat(times)),
    ),
    { maxLength: 12 },
  )
  .map((pieces) => pieces.join(''))

describe('[EC 10.2] an estimate of tokens errs high', () => {
  test.each(SAMPLES)('$kind: no less than two tokenizers count', (sample) => {
    expect(estimateTokens(sample.text)).toBeGreaterThanOrEqual(countOf(sample))
  })

  test('the samples are of many kinds, and a quarter of the code points is too little for most of them', () => {
    expect(SAMPLES.length).toBeGreaterThanOrEqual(30)
    const tooLow = SAMPLES.filter((sample) => quarterOf(sample.text) < countOf(sample))
    expect(tooLow.length).toBeGreaterThan(SAMPLES.length / 2)
  })

  test('the samples together, in any order, cost no less than they do one by one', () => {
    const counted = SAMPLES.reduce((sum, sample) => sum + countOf(sample), 0)
    expect(estimateTokensOf(SAMPLES.map(({ text }) => text))).toBeGreaterThan(counted)
    expect(estimateTokensOf(SAMPLES.map(({ text }) => text).reverse())).toBeGreaterThan(counted)
  })

  test.each([
    'English prose',
    'English talk',
    'TypeScript',
    'Python',
    'Rust',
    'C',
    'Go',
    'SQL',
    'shell',
    'JSON',
    'diff',
  ])('%s costs at most half as much again as counted', (kind) => {
    const sample = sampleOf(kind)
    expect(estimateTokens(sample.text)).toBeLessThanOrEqual(1.5 * countOf(sample))
  })

  test('never less than a quarter of the code points, rounded up', () => {
    fc.assert(
      fc.property(someText, (text) => {
        expect(estimateTokens(text)).toBeGreaterThanOrEqual(quarterOf(text))
      }),
      RUNS,
    )
    // Where prices are low, the quarter holds: blanks, and letters that follow each other in words.
    for (const text of [' '.repeat(4001), '\n'.repeat(4001)]) expect(estimateTokens(text)).toBe(1001)
  })

  test('a digit counts one each, as some tokenizers have it', () => {
    for (const digits of ['7', '42', '1234567890', '0'.repeat(1000)])
      expect(estimateTokens(digits)).toBe(digits.length)
  })

  test('characters of scripts that no tokenizer knows cost their bytes in UTF-8', () => {
    for (const text of ['ᚠᚢᚦᚨᚱᚲ', '𒀀𒀁𒀂', '𠀀𠀁𠀂', 'ߊߋߌ', '\u{10ffff}'])
      expect(estimateTokens(text)).toBe(new TextEncoder().encode(text).length)
  })
})

describe('[EC 10.2] an estimate of tokens adds up', () => {
  test('empty text is 0, and any other at least 1', () => {
    expect(estimateTokens('')).toBe(0)
    expect(estimateTokensOf([])).toBe(0)
    expect(estimateTokensOf(['', ''])).toBe(0)
    for (let unit = 0; unit < 0x10000; unit++) {
      if (estimateTokens(String.fromCharCode(unit)) < 1) expect.fail(`unit ${unit} costs nothing`)
    }
  })

  test('parts cost what they cost put together, wherever the text is cut', () => {
    fc.assert(
      fc.property(fc.array(someText, { maxLength: 5 }), (parts) => {
        expect(estimateTokensOf(parts)).toBe(estimateTokens(parts.join('')))
      }),
      RUNS,
    )
  })

  test('a longer text never costs less', () => {
    fc.assert(
      fc.property(someText, someText, (text, more) => {
        expect(estimateTokens(text + more)).toBeGreaterThanOrEqual(estimateTokens(text))
      }),
      RUNS,
    )
  })

  test('two texts put together cost no more than each by itself and one long word', () => {
    const ONE_LONG_WORD = 7
    fc.assert(
      fc.property(someText, someText, (one, other) => {
        expect(estimateTokens(one + other)).toBeLessThanOrEqual(
          estimateTokens(one) + estimateTokens(other) + ONE_LONG_WORD,
        )
      }),
      RUNS,
    )
  })

  test('half a pair counts as one, whatever follows', () => {
    for (const text of ['\ud83d', '\ude00', '\ud83d\ud83d', '\ude00\ud83d'])
      expect(estimateTokens(text.repeat(100))).toBeGreaterThanOrEqual(quarterOf(text.repeat(100)))
    expect(estimateTokensOf(['\ud83d', '\ude00'])).toBe(estimateTokens('😀'))
  })
})
