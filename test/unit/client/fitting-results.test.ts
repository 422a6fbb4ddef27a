import { describe, expect, test } from 'vitest'
import { fittingResults } from '../../../src/client/fitting-results.ts'
import { MAX_READ_BYTES } from '../../../src/host/tools/read-file.ts'
import type { ToolResult } from '../../../src/protocol/execution/continue.ts'
import {
  MAX_BODY_BYTES,
  MAX_SEALED_BUNDLE_BYTES,
  MAX_TOOL_RESULT_BYTES,
} from '../../../src/storage/limits.ts'

const MIB = 1024 * 1024
const SESSION = '0197d0a2-6c1e-7c52-9a55-0c6a6f1d2b11'
const idOf = (n: number) => `0197d0a2-6c1e-7c52-9a55-0c6a6f1d${String(n).padStart(4, '0')}`
const results = (...contents: string[]): ToolResult[] =>
  contents.map((content, n) => ({ call_id: idOf(n), content, is_error: false }))

/** An envelope with a ciphertext as long as that of the text, without the work. */
const envelope = (text: string) => ({
  version: 2,
  algorithm: 'xchacha20poly1305',
  key_id: `kf2_${'k'.repeat(43)}`,
  nonce: 'n'.repeat(32),
  ciphertext: 'c'.repeat(Math.ceil(((Buffer.byteLength(text) + 16) * 4) / 3)),
})
/** The bytes of the message that carries them. */
function bodyBytes(sent: readonly ToolResult[], others?: Record<string, string>): number {
  const results = sent.map((one) => [`tool_call:${one.call_id}`, one.content] as const)
  const texts = [...Object.entries(others ?? {}), ...results]
  const encrypted = Object.fromEntries(texts.map(([ref, text]) => [ref, envelope(text)]))
  const data = { results: sent, ...(others ? { encrypted } : {}) }
  return Buffer.byteLength(JSON.stringify({ type: 'tool_results', data }))
}

describe('[D27] results of one pause, as far as they go into one request', () => {
  test('what our own tools give at most goes whole, beside the largest bundle', () => {
    const full = results(...Array.from({ length: 9 }, () => 'x'.repeat(MAX_READ_BYTES + 300)))
    expect(fittingResults(full, ['b'.repeat(MAX_SEALED_BUNDLE_BYTES)])).toEqual(full)
  })

  test.each([
    ['ASCII', 'x'],
    ['pairs of code units', '🦉'],
    ['six bytes in JSON', '\u0001'],
  ])(
    'of an encrypted session, in %s: at the edge whole, beyond it cut with a note, and the body fits',
    (_what, letter) => {
      const others = { [`run_input:${SESSION}`]: 'b'.repeat(MAX_SEALED_BUNDLE_BYTES) }
      const sent = (letters: number) => fittingResults(results(letter.repeat(letters)), Object.values(others))
      // Once as JSON, once as base64; and a little for what is around it.
      const perLetter = Buffer.byteLength(JSON.stringify(letter)) - 2 + (Buffer.byteLength(letter) * 4) / 3
      const edge = (9.5 * MIB - (MAX_SEALED_BUNDLE_BYTES * 4) / 3) / perLetter
      const whole = sent(Math.floor(edge * 0.99))
      expect(whole[0]?.content).toHaveLength(Math.floor(edge * 0.99) * letter.length)
      const [cut] = sent(Math.ceil(edge * 1.01))
      for (const results of [whole, cut ? [cut] : []])
        expect(bodyBytes(results, others)).toBeLessThan(MAX_BODY_BYTES)
      expect(cut?.content).toMatch(/\n\[The results of one answer were too long/)
      expect(cut?.content.isWellFormed()).toBe(true)
      // Little is lost to caution.
      expect(bodyBytes(cut ? [cut] : [], others)).toBeGreaterThan(0.85 * MAX_BODY_BYTES)
    },
  )

  test('many calls at once: the first ones whole, one cut, and a note for each of the rest', () => {
    const full = results(...Array.from({ length: 60 }, () => 'x'.repeat(MAX_READ_BYTES)))
    const sent = fittingResults(full, [])
    expect(sent.map(({ call_id }) => call_id)).toEqual(full.map(({ call_id }) => call_id))
    const whole = sent.filter(({ content }, n) => content === full[n]?.content).length
    expect(whole).toBeGreaterThan(14)
    expect(
      sent.slice(whole + 1).every(({ content }) => content.startsWith('[The results of one answer')),
    ).toBe(true)
    expect(bodyBytes(sent, {})).toBeLessThan(MAX_BODY_BYTES)
    expect(
      fittingResults(full, undefined).filter(({ content }, n) => content === full[n]?.content).length,
    ).toBeGreaterThan(30)
  })

  test('in plain text one result is cut at what the router takes of one', () => {
    const [whole] = fittingResults(results('x'.repeat(MAX_TOOL_RESULT_BYTES)), undefined)
    expect(whole?.content).toHaveLength(MAX_TOOL_RESULT_BYTES)
    const [cut] = fittingResults(results('x'.repeat(MAX_TOOL_RESULT_BYTES + 1)), undefined)
    expect(Buffer.byteLength(cut?.content ?? '')).toBeLessThanOrEqual(MAX_TOOL_RESULT_BYTES)
  })
})
