import { oneLine } from '../printable.ts'

/** As wide as most terminals that people widen at all. */
export const WIDTH = 100
/** Behind two blanks of the turn, the widest label and two blanks. */
const INDENT = 12
/** Reasons and names come from policies and models: past this nobody reads on. */
const MAX_ENTRY_CHARS = 2_000

/** One entry under a label; each begins a line of its own. */
export type Entry = string | { text: string; paint: (text: string) => string }

/** A label with its entries, wrapped at `WIDTH`; nothing in them moves the cursor. No entries, no lines. */
export function labelled(label: string, entries: readonly Entry[], dim: (text: string) => string): string {
  return entries
    .map((entry, index) => {
      const { text, paint } = typeof entry === 'string' ? { text: entry, paint: plain } : entry
      return wrap(oneLine(text, MAX_ENTRY_CHARS), WIDTH - INDENT)
        .map((line, row) => {
          const head = index === 0 && row === 0 ? `  ${dim(label.padEnd(INDENT - 2))}` : ' '.repeat(INDENT)
          return `${head}${paint(line)}\n`
        })
        .join('')
    })
    .join('')
}

const plain = (text: string): string => text

/**
 * What stands in backticks is one word, blanks and all, since it may be a command that is to be copied: at most one with a long
 * path in it, for texts of models may have backticks anywhere. The rest are words between blanks.
 */
const WORDS = /\(?`[^`]{1,300}`[^ `]{0,4}(?= |$)|[^ ]+/g
const QUOTED = /^\(?`[^`]+`.{0,4}$/

/**
 * Breaks between words; a word that is longer than a line is broken, too, unless it is one in backticks. Lines after the first
 * are set in by two.
 */
export function wrap(text: string, width: number): string[] {
  const lines: string[][] = [[]]
  const room = () => width - (lines.length > 1 ? 2 : 0)
  for (const word of text.match(WORDS) ?? []) {
    let rest = Array.from(word)
    const line = lines.at(-1) ?? []
    if (line.length > 0 && line.length + 1 + rest.length <= room()) line.push(' ', ...rest)
    else {
      if (line.length > 0) lines.push([])
      while (rest.length > room() && !QUOTED.test(word)) {
        lines.at(-1)?.push(...rest.slice(0, room()))
        rest = rest.slice(room())
        lines.push([])
      }
      lines.at(-1)?.push(...rest)
    }
  }
  return lines.map((line, index) => `${index > 0 ? '  ' : ''}${line.join('')}`)
}
