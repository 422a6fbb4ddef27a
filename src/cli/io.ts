import { confirm, input, password } from '@inquirer/prompts'
import { Keyboard, type TypedWords } from './keyboard.ts'
import { type LineReader, makeLineReader } from './line-reader.ts'
import { makePaint, type Paint } from './paint.ts'

/** An answer to a question, or that the user pressed Ctrl-C or the run was stopped meanwhile. */
export type Answer<T> = { kind: 'answer'; value: T } | { kind: 'interrupted' }

/** A line that was typed at a prompt, the end of input (Ctrl-D), or Ctrl-C. */
export type TypedLine = { kind: 'line'; text: string } | { kind: 'end' } | { kind: 'interrupted' }

/**
 * Everything the commands know about the terminal. Answers go to `out`, progress and questions to `err`, so that
 * `switchyard run … > answer.txt` keeps both apart.
 */
export type CliIo = {
  /** Writes to stdout, as it is. */
  out(text: string): void
  /** Writes to stderr, as it is. */
  err(text: string): void
  /** Writes whole lines to stderr, as they are: above what is being typed at the interactive prompt, which stays. */
  above(lines: string): void
  /** Whether questions can be asked: stdin and stderr are a terminal. */
  isTty: boolean
  /** Whether stdout is a terminal: then control characters of a model's text are made visible. */
  outIsTty: boolean
  /** Width of the terminal; null where there is none. */
  readonly columns: number | null
  /** Colours for stderr; plain when it is no terminal, with NO_COLOR or `--no-color`. */
  paint: Paint
  /** A yes/no question; the default is no. */
  confirm(question: string, signal?: AbortSignal): Promise<Answer<boolean>>
  /** A question that is answered with a line. */
  askLine(question: string, signal?: AbortSignal): Promise<Answer<string>>
  /** A line that is not shown while it is typed; without a terminal the first line of stdin. */
  askSecret(question: string, signal?: AbortSignal): Promise<Answer<string>>
  /** The next line at an interactive prompt. */
  readLine(prompt: string): Promise<TypedLine>
  /**
   * Lines that come in while a run goes on, without a prompt. Questions are asked in between.
   * @param takes whether a line is meant for the run
   */
  listen(takes?: (line: string) => boolean): TypedWords
}

/** @param options.color false = never use colours */
export function makeCliIo(options: { color?: boolean } = {}): CliIo {
  const isTty = process.stdin.isTTY === true && process.stderr.isTTY === true
  const noColor = (process.env.NO_COLOR ?? '') !== ''
  const reader: LineReader = makeLineReader(process.stdin, process.stderr)
  const keyboard = new Keyboard(process.stdin, (text) => void process.stderr.write(text))
  const ask = <T>(question: () => Promise<T>): Promise<Answer<T>> =>
    keyboard.ended ? Promise.resolve({ kind: 'interrupted' }) : keyboard.asking(() => answered(question))
  const context = (signal: AbortSignal | undefined) => ({
    input: process.stdin,
    // Questions must be seen even when the answer is redirected.
    output: process.stderr,
    ...(signal ? { signal } : {}),
  })
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    above: (lines) => reader.above(lines),
    isTty,
    outIsTty: process.stdout.isTTY === true,
    get columns() {
      return process.stderr.columns ?? process.stdout.columns ?? null
    },
    paint: makePaint(process.stderr.isTTY === true && !noColor && options.color !== false),
    confirm: (question, signal) => ask(() => confirm({ message: question, default: false }, context(signal))),
    askLine: (question, signal) => ask(() => input({ message: question }, context(signal))),
    askSecret: async (question, signal) => {
      if (isTty) return ask(() => password({ message: question, mask: '*' }, context(signal)))
      const line = await reader.next('')
      return line.kind === 'line' ? { kind: 'answer', value: line.text } : { kind: 'interrupted' }
    },
    readLine: async (prompt) => (keyboard.ended ? { kind: 'end' } : reader.next(prompt)),
    listen: (takes) => keyboard.listen(takes),
  }
}

/** The prompt library throws these two when Ctrl-C is pressed and when the signal fires. */
const INTERRUPTIONS: ReadonlySet<string> = new Set(['ExitPromptError', 'AbortPromptError'])

async function answered<T>(question: () => Promise<T>): Promise<Answer<T>> {
  try {
    return { kind: 'answer', value: await question() }
  } catch (error) {
    if (error instanceof Error && INTERRUPTIONS.has(error.name)) return { kind: 'interrupted' }
    throw error
  }
}
