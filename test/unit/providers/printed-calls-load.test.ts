import { describe, expect, it } from 'vitest'
import { PrintedAnswer } from '../../../src/providers/printed-calls/answer.ts'
import { Cursor } from '../../../src/providers/printed-calls/cursor.ts'
import { TOOLS } from './printed-calls-corpus.ts'

/** The longest beginning of a form that turns out to be none is read again once. */
const MOST_STEPS_PER_CHAR = 3

const HOSTILE: [what: string, unit: string][] = [
  ['angle brackets', '<'],
  ['square brackets on lines of their own', '[\n'],
  ['braces on lines of their own', '{\n'],
  ['nested objects', '{"name":'],
  ['beginnings of tags', '<tool_cal'],
  ['tags with nothing in them', '<tool_call>'],
  ['tags with calls of no tool', '<tool_call>{"name":"nope","arguments":{}}</tool_call>'],
  ['functions that break off', '<function=read_file><parameter=path>x</parameter>y'],
  ['beginnings of a closing tag in one parameter', '</param'],
  ['markers that share a beginning', '<｜tool▁call▁beg'],
  ['beginnings of a name', '\nread_file[ARGS'],
  ['words that begin like one', 'functool '],
  ['marks without calls', '[TOOL_CALLS][['],
  ['thoughts', '<think></think>'],
  ['thoughts that do not end', '<think></thin'],
  ['fences', '```\n'],
  ['fences of calls without calls', '```tool_call\n{"x":1}\n```\n'],
  ['backticks', '`'],
  ['white space', '\n   '],
]

/** Counts each move from one character to the next, those over characters that are read again included. */
function countSteps(read: () => void): number {
  const { advance } = Cursor.prototype
  let steps = 0
  Cursor.prototype.advance = function (next) {
    steps += 1
    advance.call(this, next)
  }
  try {
    read()
  } finally {
    Cursor.prototype.advance = advance
  }
  return steps
}

describe('reading for printed calls under load', () => {
  it.each(HOSTILE)('[EC 12.6] no number of %s is read more than a few times', (_, unit) => {
    for (const begin of ['', '<tool_call>{"name":"', '<function=read_file><parameter=path>']) {
      const hostile = begin + unit.repeat(Math.ceil(20_000 / unit.length))
      const steps = countSteps(() => {
        const answer = new PrintedAnswer(TOOLS)
        const text = answer.push(hostile)
        expect(text + answer.end(true).text === hostile).toBe(true)
      })
      expect(steps).toBeGreaterThan(hostile.length)
      expect(steps).toBeLessThan(hostile.length * MOST_STEPS_PER_CHAR)
    }
  })

  it('[EC 12.6] what was read is not copied with each piece that comes', () => {
    const hostile = '<tool_call>{"name":"nope","arguments":[{"a":"<"}]}</tool_call>[TOOL_CALLS]<<{[\n'.repeat(
      4_000,
    )
    const held = `<function=read_file><parameter=path>${'<'.repeat(60_000)}`
    const answer = new PrintedAnswer(TOOLS)
    let passed = 0
    for (const char of hostile + held) passed += answer.push(char).length
    expect(passed).toBe(hostile.length)
    expect(answer.end(true).text.length).toBe(held.length)
  })
})
