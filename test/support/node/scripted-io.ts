import type { Answer, CliIo, TypedLine } from '../../../src/cli/io.ts'
import { makePaint } from '../../../src/cli/paint.ts'
import { WordQueue } from '../../../src/client/words.ts'

/** A terminal of a test: it notes what is written, and answers with what was put in. */
export type ScriptedIo = CliIo & {
  stdout: string
  stderr: string
  /** Questions that were asked, in order. */
  questions: string[]
  /** Answers to yes/no questions, in order; a missing one counts as Ctrl-C. */
  confirmations: boolean[]
  secrets: string[]
  /** Answers to questions that take a line, in order; a missing one counts as Ctrl-C. */
  answers: string[]
  lines: TypedLine[]
  /** A line that is typed while a run goes on. */
  type(line: string): void
}

export function scriptedIo(
  options: { isTty?: boolean; outIsTty?: boolean; columns?: number } = {},
): ScriptedIo {
  const answer = <T>(queue: T[]): Answer<T> => {
    const value = queue.shift()
    return value === undefined ? { kind: 'interrupted' } : { kind: 'answer', value }
  }
  const words = new WordQueue()
  const io: ScriptedIo = {
    stdout: '',
    stderr: '',
    questions: [],
    confirmations: [],
    secrets: [],
    answers: [],
    lines: [],
    isTty: options.isTty ?? false,
    outIsTty: options.outIsTty ?? false,
    columns: options.columns ?? null,
    paint: makePaint(false),
    out: (text) => {
      io.stdout += text
    },
    err: (text) => {
      io.stderr += text
    },
    above: (lines) => {
      io.stderr += lines
    },
    confirm: async (question) => {
      io.questions.push(question)
      return answer(io.confirmations)
    },
    askLine: async (question) => {
      io.questions.push(question)
      return answer(io.answers)
    },
    askSecret: async (question) => {
      io.questions.push(question)
      return answer(io.secrets)
    },
    readLine: async () => io.lines.shift() ?? { kind: 'end' },
    listen: (takes = () => true) => {
      io.type = (line) => {
        if (takes(line)) words.push(line)
      }
      return Object.assign(words, { close: () => words.take() })
    },
    type: () => {
      throw new Error('nobody listens to what is typed')
    },
  }
  return io
}
