import readline from 'node:readline'
import type { TypedLine } from './io.ts'

/** Hands out typed lines one by one and leaves the terminal alone in between. */
export type LineReader = {
  next(prompt: string): Promise<TypedLine>
  /** Writes whole lines; while a line is being typed, above it. */
  above(lines: string): void
}

type Input = NodeJS.ReadableStream & { isTTY?: boolean; ref?: () => void; unref?: () => void }

/** Lines of a terminal are edited, those of a pipe are only split. */
export function makeLineReader(input: Input, output: NodeJS.WritableStream): LineReader {
  return input.isTTY === true ? terminalLines(input, output) : pipedLines(input, output)
}

/**
 * Each call opens a line editor and closes it again, so that between two calls questions may be asked on the same
 * terminal and Ctrl-C is an ordinary signal. What was pasted beyond the first line waits for later calls.
 */
function terminalLines(input: Input, output: NodeJS.WritableStream): LineReader {
  const waiting: string[] = []
  let begun = ''
  let history: string[] = []
  let typing: readline.Interface | undefined
  return {
    above: (lines) => {
      if (typing) writeAbove(typing, output, lines)
      else output.write(lines)
    },
    next: (prompt) => {
      const early = waiting.shift()
      if (early !== undefined) return Promise.resolve({ kind: 'line', text: early })
      return new Promise((resolve) => {
        const editor = readline.createInterface({ input, output, terminal: true, history, prompt })
        typing = editor
        let result: TypedLine | undefined
        const finish = (line: TypedLine) => {
          if (result !== undefined) return
          result = line
          typing = undefined
          // One chunk of input may hold several lines; they are all emitted before a microtask runs.
          queueMicrotask(() => {
            begun = line.kind === 'line' ? editor.line : ''
            editor.close()
          })
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
          typing = undefined
          resolve(result ?? { kind: 'end' })
        })
        editor.prompt()
        if (begun !== '') editor.write(begun)
      })
    },
  }
}

/**
 * Takes the prompt and what was typed off the screen, writes, and lets the editor draw them again with its cursor where it
 * was. The editor first goes up by the rows that it believes its cursor to be down, so that many are put below the lines.
 */
function writeAbove(editor: readline.Interface, output: NodeJS.WritableStream, lines: string): void {
  const { rows } = editor.getCursorPos()
  readline.moveCursor(output, 0, -rows)
  readline.cursorTo(output, 0)
  readline.clearScreenDown(output)
  output.write(lines + '\n'.repeat(believedRows(editor) ?? rows))
  editor.prompt(true)
}

/** Not the true ones after a paste that was wrapped. Nothing documents the property, so it may be missing. */
const believedRows = (editor: readline.Interface): number | undefined =>
  'prevRows' in editor && typeof editor.prevRows === 'number' ? editor.prevRows : undefined

/** One reader for the whole input; while nobody asks, an input that stays open does not keep the process alive. */
function pipedLines(input: Input, output: NodeJS.WritableStream): LineReader {
  const waiting: string[] = []
  let reader: readline.Interface | undefined
  let ended = false
  let wanted: ((line: TypedLine) => void) | undefined
  const open = (): readline.Interface => {
    const opened = readline.createInterface({ input, terminal: false })
    opened.on('line', (text) => {
      if (!wanted) {
        waiting.push(text)
        return
      }
      wanted({ kind: 'line', text })
      wanted = undefined
      opened.pause()
      input.unref?.()
    })
    opened.on('close', () => {
      ended = true
      wanted?.({ kind: 'end' })
      wanted = undefined
    })
    return opened
  }
  return {
    above: (lines) => void output.write(lines),
    next: (prompt) => {
      if (prompt !== '') output.write(prompt)
      const early = waiting.shift()
      if (early !== undefined) return Promise.resolve({ kind: 'line', text: early })
      if (ended) return Promise.resolve({ kind: 'end' })
      return new Promise((resolve) => {
        wanted = resolve
        input.ref?.()
        reader ??= open()
        reader.resume()
      })
    },
  }
}
