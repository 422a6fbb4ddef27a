import { describe, expect, test } from 'vitest'
import { ASK_USER_DECLARATION, askUser } from '../../../src/cli/ask-user.ts'
import { NOT_QUESTIONS } from '../../../src/core/ask-user.ts'
import { DeclaredTool } from '../../../src/protocol/execution/execute.ts'
import { scriptedIo } from '../../support/node/scripted-io.ts'
import { call } from '../../support/node/scripted-router-turns.ts'

const COLOUR = {
  header: 'Colour',
  text: 'Which one?',
  options: [{ label: 'Red' }, { label: 'Blue', description: 'like the sea' }],
}

/** Asks these questions and types these answers. */
async function asked(questions: unknown, ...answers: string[]) {
  const io = scriptedIo({ isTty: true })
  io.answers.push(...answers)
  let interrupts = 0
  const asking = call('q1', 'ask_user', { questions })
  const outcome = await askUser(
    { io, onInterrupt: () => void interrupts++ },
    asking,
    new AbortController().signal,
  )
  return { outcome, io, interrupts }
}

describe('[D08] ask_user at a terminal', () => {
  test('shows the question with its options, each under a number', async () => {
    const { io } = await asked([COLOUR], '1')
    expect(io.stderr).toBe('question Colour: Which one?\n  1 Red\n  2 Blue – like the sea\n')
    expect(io.questions).toEqual(['A number, or your own words (empty leaves it out):'])
  })

  test.each([
    ['a number', '2', 'User selected: Blue'],
    ['a label', 'Red', 'User selected: Red'],
    ['own words', 'rather green', 'User selected: rather green'],
    ['a number that no option has', '3', 'User selected: 3'],
    ['nothing', ' ', 'User selected: (skipped)'],
  ])('[RF 18] takes %s', async (_what, typed, content) => {
    expect((await asked([COLOUR], typed)).outcome).toMatchObject({ content, isError: false })
  })

  test('[RF 18] takes several options where several may be chosen, and each once', async () => {
    const many = { ...COLOUR, multiple: true }
    expect((await asked([many], '2, Red')).outcome.content).toBe('User selected: Blue, Red')
    const { outcome, io } = await asked([many], '1,1', '1')
    expect(io.stderr).toContain('not taken: an option is chosen twice\n')
    expect(outcome.content).toBe('User selected: Red')
  })

  test('[RF 18] asks a chain one by one, and tells which question each answer is to', async () => {
    const free = { header: 'Name', text: 'What is it called?', options: [] }
    const { outcome, io } = await asked([COLOUR, free], '', 'Ida')
    expect(io.stderr).toContain('question Colour (1 of 2): ')
    expect(io.questions[1]).toBe('Your answer (empty leaves it out):')
    expect(outcome).toMatchObject({
      content: '[Colour] Which one? → (skipped)\n[Name] What is it called? → Ida',
      summary: '1 answered',
    })
  })

  test('[U26] Ctrl-C stops the run', async () => {
    const { outcome, interrupts } = await asked([COLOUR])
    expect(interrupts).toBe(1)
    expect(outcome.isError).toBe(true)
  })

  test('arguments that are no questions are told to the model, and nobody is asked', async () => {
    const { outcome, io } = await asked('what?')
    expect(outcome).toMatchObject({ content: NOT_QUESTIONS, isError: true })
    expect(io.questions).toEqual([])
  })

  test('what is asked cannot steer the terminal', async () => {
    const { io } = await asked([{ ...COLOUR, text: 'sure?\u001b[2K' }], '1')
    expect(io.stderr).toContain('sure?\\u{1b}[2K')
  })

  test('is declared in the form of the contract', () => {
    expect(DeclaredTool.parse(ASK_USER_DECLARATION)).toEqual(ASK_USER_DECLARATION)
  })
})
