import { describe, expect, it } from 'vitest'
import { MAX_EVENT_BYTES } from '../../../src/providers/bounds.ts'
import { EventMeter, type Framing } from '../../../src/providers/event-meter.ts'

/** Whether a stream of these pieces, each fed as it stands, passes. */
const passes = (framing: Framing, ...pieces: string[]): boolean => {
  const meter = new EventMeter(framing)
  return pieces.every((piece) => meter.feed(new TextEncoder().encode(piece)))
}

const half = 'x'.repeat(MAX_EVENT_BYTES / 2)

describe('the piece of a stream that has to be held', () => {
  it('may have all the bytes of the bound, and not one more', () => {
    for (const framing of ['lines', 'events'] as const) {
      expect(passes(framing, half, half)).toBe(true)
      expect(passes(framing, half, half, 'x')).toBe(false)
      expect(passes(framing, `${half}${half}x`)).toBe(false)
    }
  })

  it('of a stream of lines ends with the line', () => {
    expect(passes('lines', half, '\n', half, half)).toBe(true)
    expect(passes('lines', `${half}\n${half}`, half, '\n', half)).toBe(true)
    expect(passes('lines', `${half}\n${half}`, half, 'x')).toBe(false)
    expect(passes('lines', half, `${half}x\n`)).toBe(false)
  })

  it.each([
    ['in one piece', ['\n\n']],
    ['apart', ['\n', '\n']],
    ['with carriage returns', ['\r\n\r\n']],
    ['with carriage returns, apart', ['\r', '\n', '\r', '\n']],
  ])('of a stream of events ends with the blank line, when that comes %s', (_how, blank) => {
    expect(passes('events', half, ...blank, half, half.slice(8))).toBe(true)
  })

  it.each([
    ['a line feed', ['\n']],
    ['a line of a carriage return in the middle of others', ['\nx\r\n']],
    ['line feeds apart from each other', ['\n', 'x', '\n']],
    ['a blank before the line feed', ['\n \n']],
  ])('of a stream of events does not end with %s', (_what, between) => {
    expect(passes('events', half, ...between, half)).toBe(false)
  })
})
