import { describe, expect, test } from 'vitest'
import { type AskedUser, checkAnswer, parseQuestions, resultOf, toldOf } from '../../../src/core/ask-user.ts'

const colour: AskedUser = {
  header: 'Colour',
  text: 'Which one?',
  options: [{ label: 'Blue' }, { label: 'Green', description: 'as grass' }],
  multiple: false,
}

describe('[D08] the arguments of a call', () => {
  test('are questions in their order; what may be missing is filled in', () => {
    expect(parseQuestions({ questions: [colour, { header: 'Name', text: 'What is it called?' }] })).toEqual([
      colour,
      { header: 'Name', text: 'What is it called?', options: [], multiple: false },
    ])
  })

  test.each<[string, unknown]>([
    ['no list', 'Which one?'],
    ['an empty list', []],
    ['nine questions', Array.from({ length: 9 }, () => colour)],
    ['a question that is none', ['Which one?']],
    ['no text', [{ header: 'a' }]],
    ['an empty header', [{ ...colour, header: ' ' }]],
    ['a text that fits no frame', [{ ...colour, text: 'x'.repeat(4001) }]],
    ['nine options', [{ ...colour, options: Array.from({ length: 9 }, (_, n) => ({ label: `${n}` })) }]],
    ['an option without a label', [{ ...colour, options: [{ description: 'x' }] }]],
    ['options that cannot be told apart', [{ ...colour, options: [{ label: 'a' }, { label: 'a' }] }]],
    ['a `multiple` that is no boolean', [{ ...colour, multiple: 'yes' }]],
  ])('%s: they are none', (_, questions) => {
    expect(parseQuestions({ questions })).toBeNull()
  })

  test('a missing list is none either', () => {
    expect(parseQuestions({})).toBeNull()
  })
})

describe('[RF 18] an answer', () => {
  const several = { ...colour, multiple: true }
  const selected = (...options: string[]) => ({ type: 'selected', options }) as const

  test('is the labels that were chosen, in the order in which they were', () => {
    expect(checkAnswer(colour, selected('Green'))).toEqual({ ok: 'Green' })
    expect(checkAnswer(several, selected('Green', 'Blue'))).toEqual({ ok: 'Green, Blue' })
  })

  test('in own words is accepted for every question, without the space around it', () => {
    expect(checkAnswer(colour, { type: 'custom', text: ' teal\n' })).toEqual({ ok: 'teal' })
  })

  test.each([
    ['no option', colour, selected(), 'no option is chosen'],
    ['two of one', colour, selected('Blue', 'nothing'), 'only one option may be chosen'],
    [
      'an unknown one',
      several,
      selected('blue', 'blue'),
      'an option is chosen that the question does not have',
    ],
    ['one twice', several, selected('Blue', 'Blue'), 'an option is chosen twice'],
    ['empty words', colour, { type: 'custom', text: ' ' } as const, 'the answer is empty'],
  ])('%s is none; the first fault is told', (_, question, answer, invalid) => {
    expect(checkAnswer(question, answer)).toEqual({ invalid })
  })

  test('of a question that stands alone is told as what the user selected', () => {
    expect(resultOf([colour], ['Blue'])).toBe('User selected: Blue')
    expect(toldOf(colour, 1, 'Blue')).toBe('User selected: Blue')
  })

  test('of a chain is told with its question, and what was left out says so', () => {
    const size = { header: 'Size', text: 'How big?', options: [], multiple: false }
    expect(resultOf([colour, size], ['Blue', null])).toBe(
      '[Colour] Which one? → Blue\n[Size] How big? → (skipped)',
    )
  })
})
