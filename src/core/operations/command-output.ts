import { MAX_COMMAND_OUTPUT_BYTES } from '../../protocol/remote/limits.ts'
import { utf8Bytes } from '../../protocol/remote/utf8.ts'

const TRUNCATED = '\n… output truncated'

/** Output as it is sent: at most so long, and what was cut says so (RF 21). */
export function boundedOutput(text: string): string {
  let bytes = 0
  let units = 0
  for (const char of text) {
    bytes += utf8Bytes(char)
    if (bytes > MAX_COMMAND_OUTPUT_BYTES) return `${text.slice(0, units)}${TRUNCATED}`
    units += char.length
  }
  return text
}

/** Lines that stay lines where Markdown would join them. */
export const hardBreaks = (text: string): string => text.replace(/\n/g, '  \n')

/** One line of plain words: what somebody typed must not become a heading, a link or another line of a table. */
export const plainWords = (text: string, maxChars: number): string => {
  const flat = [...text.slice(0, 4 * maxChars).replace(/[\p{Cc}\s]+/gu, ' ')]
  const cut = flat.length > maxChars ? `${flat.slice(0, maxChars - 1).join('')}…` : flat.join('')
  return cut.trim().replace(/[\\`*_{}[\]()<>#|~!]/g, (mark) => `\\${mark}`)
}
