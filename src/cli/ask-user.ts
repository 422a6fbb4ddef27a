import type { ToolOutcome } from '../client/tool-runner.ts'
import {
  ASK_USER_TOOL,
  type AskedUser,
  checkAnswer,
  NOT_QUESTIONS,
  parseQuestions,
  resultOf,
} from '../core/ask-user.ts'
import type { DeclaredTool } from '../protocol/execution/execute.ts'
import type { ToolRequest } from '../protocol/execution/turn.ts'
import type { RemoteAnswer } from '../protocol/remote/operations.ts'
import type { CliIo } from './io.ts'
import { printable } from './printable.ts'

/** Says that questions can be put to whoever sits here (D08). */
export const ASK_USER_DECLARATION: DeclaredTool = {
  ...ASK_USER_TOOL,
  permission: 'allow',
  changes_files: false,
  reaches_network: false,
}

export const asksUser = ({ name }: ToolRequest): boolean => name === ASK_USER_DECLARATION.name

/**
 * Puts the questions of a model to the user, one after the other (D08). An empty answer leaves a question out.
 * @param onInterrupt called when the user presses Ctrl-C: the run is to stop
 * @param signal fires when nobody waits for the answers any more
 */
export async function askUser(
  { io, onInterrupt }: { io: CliIo; onInterrupt: () => void },
  call: ToolRequest,
  signal: AbortSignal,
): Promise<ToolOutcome> {
  const questions = parseQuestions(call.arguments ?? {})
  if (questions === null) return { content: NOT_QUESTIONS, isError: true, summary: 'no questions' }
  const answers: (string | null)[] = []
  for (const [index, question] of questions.entries()) {
    io.err(`${questionText(question, { index, count: questions.length }, io)}\n`)
    const answer = await answerTo(question, io, signal)
    if (answer === undefined) {
      if (!signal.aborted) onInterrupt()
      return { content: 'The user did not answer.', isError: true, summary: 'not answered' }
    }
    answers.push(answer)
  }
  const given = answers.filter((answer) => answer !== null).length
  return {
    content: resultOf(questions, answers),
    isError: false,
    summary: given === 0 ? 'left out' : `${given} answered`,
  }
}

/** Null: left out. Undefined: the user pressed Ctrl-C, or nobody waits any more. */
async function answerTo(
  question: AskedUser,
  io: CliIo,
  signal: AbortSignal,
): Promise<string | null | undefined> {
  for (;;) {
    const typed = await io.askLine(howToAnswer(question), signal)
    if (typed.kind === 'interrupted') return undefined
    const text = typed.value.trim()
    if (text === '') return null
    const checked = checkAnswer(question, answerOf(question, text))
    if ('ok' in checked) return checked.ok
    io.err(`${io.paint.yellow('not taken')}: ${checked.invalid}\n`)
  }
}

function questionText(
  { header, text, options }: AskedUser,
  { index, count }: { index: number; count: number },
  { paint }: CliIo,
): string {
  const place = count > 1 ? paint.dim(` (${index + 1} of ${count})`) : ''
  return [
    `${paint.yellow('question')} ${paint.bold(printable(header))}${place}: ${printable(text)}`,
    ...options.map(({ label, description }, at) => {
      const what = description === undefined ? '' : paint.dim(` – ${printable(description)}`)
      return `  ${at + 1} ${printable(label)}${what}`
    }),
  ].join('\n')
}

function howToAnswer({ options, multiple }: AskedUser): string {
  if (options.length === 0) return 'Your answer (empty leaves it out):'
  const numbers = multiple ? 'Numbers with commas between them' : 'A number'
  return `${numbers}, or your own words (empty leaves it out):`
}

/** Numbers and labels choose; anything else is an answer in the user's own words. */
function answerOf({ options, multiple }: AskedUser, text: string): RemoteAnswer {
  const parts = multiple ? text.split(',').map((part) => part.trim()) : [text]
  const chosen = parts.map((part) => {
    const byLabel = options.find(({ label }) => label === part)
    const byNumber = /^\d{1,2}$/.test(part) ? options[Number(part) - 1] : undefined
    return (byLabel ?? byNumber)?.label
  })
  const labels = chosen.filter((label) => label !== undefined)
  return labels.length === chosen.length ? { type: 'selected', options: labels } : { type: 'custom', text }
}
