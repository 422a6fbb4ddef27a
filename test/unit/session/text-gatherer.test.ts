import { describe, expect, test } from 'vitest'
import { type TextClock, TextGatherer } from '../../../src/session/text-gatherer.ts'

const clock = (workMs: number, thoughts: TextClock['thoughts'] = null): TextClock => ({
  timing: { turn_id: 'turn:1', elapsed_work_ms: workMs },
  thoughts,
})

describe('what a model says becomes events', () => {
  test('[D33] the first words of a segment do not wait, the next ones gather', () => {
    const text = new TextGatherer()
    expect(text.text('The ')).toBe('first')
    text.close(() => clock(0))
    expect(text.text('failure ')).toBe('later')
    expect(text.text('comes')).toBe('later')
    expect(text.close(() => clock(10))).toEqual([{ type: 'text_delta', text: 'failure comes' }])
    text.begin()
    expect(text.text('Then')).toBe('first')
  })

  test('[RF 13] its clocks ride along once in a whole second of work', () => {
    const text = new TextGatherer()
    const told = [0, 400, 999, 1000, 1001, 2500].map((workMs) => {
      text.text('x')
      return text.close(() => clock(workMs))[0]?.timing?.elapsed_work_ms ?? null
    })
    expect(told).toEqual([0, null, null, 1000, null, 2500])
  })

  test('[RF 13] thinking moves the clocks without text, at most once a second', () => {
    const text = new TextGatherer()
    const close = (ms: number) => {
      text.thought()
      return text.close(() => clock(ms, { ms, tokens: ms / 10 }))
    }
    expect(close(100)).toEqual([
      {
        type: 'text_delta',
        text: '',
        timing: { turn_id: 'turn:1', elapsed_work_ms: 100 },
        thought_time_ms: 100,
        thought_tokens: 10,
        thought_tokens_estimated: true,
      },
    ])
    expect(close(900)).toEqual([])
    expect(close(1100)).toHaveLength(1)
    expect(text.close(() => clock(5000))).toEqual([])
  })

  test('[D33] no event grows without bound, and no character is cut in two', () => {
    const text = new TextGatherer()
    const said = `x${'😀'.repeat(5000)}`
    expect(text.text(said)).toBe('full')
    const events = text.close(() => clock(0))
    expect(events.map((event) => event.text).join('')).toBe(said)
    for (const event of events) {
      expect(event.text.length).toBeLessThanOrEqual(2048)
      expect(event.text.isWellFormed()).toBe(true)
    }
  })
})
