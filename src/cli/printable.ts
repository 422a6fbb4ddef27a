/** Control characters, and the marks that reorder, hide or break text: what a terminal acts on instead of showing it. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu
const CONTROL = /\p{Cc}/gu

const escaped = (char: string): string =>
  char === '\n' || char === '\t' ? char : `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`

/**
 * Text in which nothing hides: for what a person approves. Line breaks and tabs stay; a lone carriage return, with
 * which a command could paint over itself, is shown.
 */
export const printable = (text: string): string => text.replaceAll('\r\n', '\n').replace(UNPRINTABLE, escaped)

/** A piece of a model's text for a terminal: it may not move the cursor, set the title or write to the clipboard. */
export const printableAnswer = (text: string): string => text.replaceAll('\r', '').replace(CONTROL, escaped)

/** One line of at most `most` characters. */
export function oneLine(text: string, most: number): string {
  const chars = [...printable(text.replace(/\s+/g, ' ').trim())]
  return chars.length <= most ? chars.join('') : `${chars.slice(0, most - 1).join('')}…`
}
