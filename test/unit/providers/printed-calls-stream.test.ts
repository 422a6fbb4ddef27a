import { describe, expect, it } from 'vitest'
import { PrintedAnswer } from '../../../src/providers/printed-calls/answer.ts'
import { recoverPrintedCalls } from '../../../src/providers/printed-calls.ts'
import { makeRandom, type Random } from '../../support/core/random.ts'
import { CALLS, expectedOf, play, printed, TEXTS, TOOLS } from './printed-calls-corpus.ts'
import { joinDeltas } from './support.ts'

const MAX_HELD_CHARS = 64 * 1024
const CORPUS = [...CALLS, ...TEXTS]
const FORM = '<tool_call>{"name":"list_files","arguments":{}}</tool_call>'

const outcomeOf = (pieces: Iterable<string>) => {
  const answer = new PrintedAnswer(TOOLS)
  let text = ''
  for (const piece of pieces) text += answer.push(piece)
  const { text: rest, calls } = answer.end(true)
  return { text: text + rest, calls }
}

const piecesOf = (random: Random, text: string): string[] => {
  const pieces: string[] = []
  for (let at = 0; at < text.length; ) {
    const end = at + random.int(random.pick([2, 5, 30]) + 1)
    pieces.push(text.slice(at, end))
    at = end
  }
  return pieces
}

describe('calls in a text that arrives in pieces', () => {
  it.each(CORPUS)('[EC 12.6] $what: the same for each place at which it may be split', async (one) => {
    const events = joinDeltas(expectedOf(one))
    for (let at = 0; at <= one.printed.length; at += 1) {
      const pieces = [one.printed.slice(0, at), one.printed.slice(at)]
      const recovered = []
      for await (const event of recoverPrintedCalls(play(printed(pieces)), TOOLS)) recovered.push(event)
      expect(joinDeltas(recovered), `split at ${at}`).toEqual(events)
    }
    expect(outcomeOf(one.printed.split(''))).toEqual({ text: one.text, calls: one.calls })
  })

  it('[EC 12.6] any mixture of forms, text and fragments gives the same, however it is split', () => {
    const fragments = [
      ...CORPUS.map((one) => one.printed),
      ...[
        '<',
        '[',
        '{',
        '}',
        '`',
        '```',
        '```json\n',
        '\n',
        ' ',
        '"',
        '\\',
        'read_file',
        '[ARGS]',
        '</tool_call>',
        '<think>',
        '</think>',
      ],
      ...['</function>', '<parameter=path>', '</parameter>', '<｜', ';', '~~~\n', 'a', '🚂', '\r\n'],
    ]
    let withCalls = 0
    for (let seed = 1; seed <= 700; seed += 1) {
      const random = makeRandom(seed)
      const mixed = random
        .list(9, () => {
          const fragment = random.pick(fragments)
          return random.chance(0.2) ? fragment.slice(random.int(fragment.length)) : fragment
        })
        .join(random.pick(['', '\n', ' ']))
      const whole = outcomeOf([mixed])
      expect(outcomeOf(piecesOf(random, mixed)), `seed ${seed}: ${mixed}`).toEqual(whole)
      if (whole.calls.length > 0) withCalls += 1
      else expect(whole.text, `seed ${seed}`).toBe(mixed)
    }
    expect(withCalls).toBeGreaterThan(100)
  })

  it('[EC 12.6] an answer that is given up is its whole text, whenever that happens', () => {
    for (let seed = 1; seed <= 200; seed += 1) {
      const random = makeRandom(seed)
      const mixed = random.list(6, () => random.pick(CORPUS).printed).join('\n')
      const cut = random.int(mixed.length + 1)
      const answer = new PrintedAnswer(TOOLS)
      const pieces = piecesOf(random, mixed.slice(0, cut)).map((piece) => answer.push(piece))
      const text = pieces.join('') + answer.giveUp() + answer.push(mixed.slice(cut)) + answer.end(true).text
      expect(text, `seed ${seed}, given up at ${cut}`).toBe(mixed)
    }
  })
})

describe('what is held back', () => {
  it.each([
    'Prose, with an ending.\n',
    '  \n- a list: a[0] < b{c}\n',
    'Look at `<tool_call>`, or at <b>this</b>.',
    '```ts\nconst call = "<tool_call>{\\"name\\":\\"read_file\\"}"\n',
    '{"files": ["a", "b"], "more',
    '[link](https://example.org)\n[1, 2',
    '<tool_call>no call',
    '<function=nope>{"path"',
    '<think>\n<tool_call>{"name":"read_file","arg',
    '~~~\n`',
  ])('[EC 12.6] text that cannot become a call passes at once: %j', (text) => {
    expect(new PrintedAnswer(TOOLS).push(text)).toBe(text)
    const answer = new PrintedAnswer(TOOLS)
    expect(
      text
        .split('')
        .map((char) => answer.push(char))
        .join(''),
    ).toBe(text)
  })

  it.each([
    ['Ok <tool', 'Ok '],
    ['Ok <tool_call>\n{"name": "re', 'Ok '],
    ['One moment.\n{"name": "read_file", "argu', 'One moment.\n'],
    ['Ok\n```json\n{"name"', 'Ok\n'],
    ['[TOOL_C', ''],
    ['Ok <thi', 'Ok '],
    ['<think>Hm</thi', '<think>Hm'],
    ['Ok\nread_fi', 'Ok\n'],
  ])('[EC 12.6] of %j only what cannot become a call has passed', (arrived, passed) => {
    expect(new PrintedAnswer(TOOLS).push(arrived)).toBe(passed)
  })

  it('[EC 12.6] no more than 64 KiB are kept; what grows beyond is text, and so is what follows', () => {
    const begin = '<tool_call>{"name":"read_file","arguments":{"path":"'
    const end = '"}}</tool_call>'
    const formOf = (chars: number) => begin + 'x'.repeat(chars - begin.length - end.length) + end
    const fits = formOf(MAX_HELD_CHARS)
    for (const tooLong of [formOf(MAX_HELD_CHARS + 1), `${FORM}${'y'.repeat(MAX_HELD_CHARS)}`]) {
      for (const pieceChars of [1, 1_000_000]) {
        const outcome = (text: string) => outcomeOf(text.match(new RegExp(`.{1,${pieceChars}}`, 'gs')) ?? [])
        expect(outcome(`a${fits}`)).toMatchObject({ text: 'a', calls: [{ name: 'read_file' }] })
        const { text, calls } = outcome(`a${tooLong}\n${FORM}`)
        expect({ same: text === `a${tooLong}\n${FORM}`, calls }).toEqual({ same: true, calls: [] })
      }
    }
    const answer = new PrintedAnswer(TOOLS)
    expect(answer.push(begin + 'x'.repeat(MAX_HELD_CHARS - begin.length))).toBe('')
    expect(answer.push('x')).toHaveLength(MAX_HELD_CHARS + 1)
    expect(answer.push(end)).toBe(end)
  })
})
