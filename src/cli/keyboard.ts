import readline from 'node:readline'
import { WordQueue, type Words } from '../client/words.ts'

/** Lines that are typed while a run goes on. */
export type TypedWords = Words & {
  /** Reads no further. @returns what nobody took */
  close(): string[]
}

type Input = NodeJS.ReadableStream & {
  isTTY?: boolean
  setRawMode?: (raw: boolean) => unknown
  ref?: () => void
  unref?: () => void
}

/** What was typed before a question is read before it shows; the terminal hands it over at once. */
const TYPE_AHEAD_MS = 30
const CTRL_C = '\u0003'

/**
 * The input between the prompts: lines that are typed or piped in while a run goes on. The terminal itself shows and edits
 * them, so that Ctrl-C stays a signal and no line is redrawn over what a model says. A question has the keyboard to itself.
 */
export class Keyboard {
  readonly #input: Input
  readonly #echo: (text: string) => void
  #listening: WordQueue | undefined
  #takes: (line: string) => boolean = () => true
  #reader: readline.Interface | undefined
  /** Typed before a question, and not yet ended with Enter. */
  #begun = ''
  #ended = false

  /** @param echo shows what was typed before a question again after it */
  constructor(input: Input, echo: (text: string) => void) {
    this.#input = input
    this.#echo = echo
  }

  /** Whether the input is over (Ctrl-D): nobody can answer a question any more. */
  get ended(): boolean {
    return this.#ended
  }

  /** @param takes whether a line is meant for the run; blank ones never are */
  listen(takes: (line: string) => boolean = () => true): TypedWords {
    if (this.#listening) throw new Error('invariant broken: two listen to one keyboard')
    const queue = new WordQueue()
    this.#listening = queue
    this.#takes = takes
    this.#open()
    const close = () => {
      this.#shut()
      this.#listening = undefined
      if (this.#input.isTTY !== true) this.#input.unref?.()
      return queue.take()
    }
    return {
      get waiting() {
        return queue.waiting
      },
      take: () => queue.take(),
      onArrival: (listener) => queue.onArrival(listener),
      close,
    }
  }

  /** Runs a question. What was typed before it is no answer to it, and waits. */
  async asking<T>(question: () => Promise<T>): Promise<T> {
    if (!this.#listening) return question()
    this.#shut()
    await this.#setAside()
    try {
      return await question()
    } finally {
      this.#open()
      if (this.#begun !== '') this.#echo(this.#begun)
    }
  }

  #open(): void {
    if (this.#ended || !this.#listening) return
    this.#input.ref?.()
    const reader = readline.createInterface({ input: this.#input, terminal: false })
    this.#reader = reader
    reader.on('line', (line) => this.#arrived(line))
    reader.on('close', () => {
      // One that was not shut has come to the end of the input.
      if (this.#reader === reader) this.#ended = true
    })
  }

  #shut(): void {
    const reader = this.#reader
    this.#reader = undefined
    reader?.close()
  }

  #arrived(line: string): void {
    const whole = this.#begun + line
    this.#begun = ''
    if (whole.trim() !== '' && this.#takes(whole)) this.#listening?.push(whole)
  }

  /** A terminal keeps a line until Enter, and would give it to the question otherwise. */
  async #setAside(): Promise<void> {
    const input = this.#input
    if (this.#ended || input.isTTY !== true || !input.setRawMode) return
    let typed = ''
    const onData = (piece: Buffer | string) => {
      typed += piece.toString()
    }
    input.on('data', onData)
    input.setRawMode(true)
    input.resume()
    await new Promise((resolve) => setTimeout(resolve, TYPE_AHEAD_MS))
    input.pause()
    input.off('data', onData)
    input.setRawMode(false)
    if (typed.includes(CTRL_C)) process.kill(process.pid, 'SIGINT')
    const lines = typed.split(/\r\n|\r|\n/)
    const last = lines.pop() ?? ''
    for (const line of lines) this.#arrived(line)
    this.#begun += withoutControls(last)
  }
}

const withoutControls = (text: string): string => text.replace(/\p{Cc}/gu, '')
