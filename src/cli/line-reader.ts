import readline from 'node:readline'
import type { TypedLine } from './io.ts'

/** Hands out typed lines one by one and leaves the terminal alone in between. */
export type LineReader = { next(prompt: string): Promise<TypedLine> }

/**
 * Each call opens a line editor and closes it again, so that between two calls questions may be asked on the same
 * terminal and Ctrl-C is an ordinary signal. Lines that arrive together (pasted, or piped in) wait for later calls.
 */
export function makeLineReader(
  input: NodeJS.ReadableStream & { isTTY?: boolean },
  output: NodeJS.WritableStream,
): LineReader {
  const waiting: string[] = []
  let history: string[] = []
  let ended = false
  return {
    next: (prompt) => {
      const early = waiting.shift()
      if (early !== undefined) return Promise.resolve({ kind: 'line', text: early })
      if (ended) return Promise.resolve({ kind: 'end' })
      return new Promise((resolve) => {
        const terminal = input.isTTY === true
        const editor = readline.createInterface({ input, output, terminal, history, prompt })
        let result: TypedLine | undefined
        const finish = (line: TypedLine) => {
          if (result !== undefined) return
          result = line
          // One chunk of input may hold several lines; they are all emitted before a microtask runs.
          queueMicrotask(() => editor.close())
        }
        editor.on('line', (text) => {
          if (result === undefined) finish({ kind: 'line', text })
          else waiting.push(text)
        })
        editor.on('SIGINT', () => finish({ kind: 'interrupted' }))
        editor.on('history', (lines: string[]) => {
          history = lines
        })
        editor.on('close', () => {
          if (result === undefined) ended = true
          resolve(result ?? { kind: 'end' })
        })
        if (prompt !== '') editor.prompt()
      })
    },
  }
}
