import { MAX_LABEL_BYTES } from '../../protocol/remote/limits.ts'
import { headCut } from './bounded-text.ts'
import { jsonMembers } from './json-members.ts'

/** Short texts beside the real ones: names, details, summaries. Each is one line, and long ones end with a mark. */

export const CUT_MARK = '…'

/** Tools are named by models: a name of any length may come. */
const MAX_NAME_BYTES = 128
/** More of a text is never looked at: a label shows a line of it. */
const MAX_LABEL_UNITS = 2048

/** One line of a text within limits; what does not fit is left out, and the mark says so. Escapes count as in JSON. */
export function label(text: string, maxBytes: number, maxChars = Number.POSITIVE_INFINITY): string {
  const line = text
    .slice(0, MAX_LABEL_UNITS)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  const whole = headCut(line, { bytes: maxBytes, json: maxBytes, chars: maxChars })
  if (!whole.truncated && text.length <= MAX_LABEL_UNITS) return whole.text
  const room = maxBytes - 3
  return headCut(line, { bytes: room, json: room, chars: maxChars - 1 }).text + CUT_MARK
}

export const toolName = (name: string): string => label(name, MAX_NAME_BYTES)

/** Arguments that say best what a call is about, the most telling first. */
const TELLING = ['path', 'file_path', 'command', 'cmd', 'url', 'query', 'pattern', 'key', 'name']

/** What a call is about, in a line; undefined where its arguments have no words. */
export function toolDetail(args: Record<string, unknown>): string | undefined {
  const texts = Object.entries(args).flatMap(([key, value]): [string, string][] => {
    const text = wordsOf(value)
    return text === undefined ? [] : [[key, text]]
  })
  const telling = TELLING.map((name) => texts.find(([key]) => key === name)).find(
    (found) => found !== undefined,
  )
  const text = (telling ?? texts[0])?.[1]
  return text === undefined ? undefined : label(text, MAX_LABEL_BYTES)
}

/** The same of arguments as JSON of which the end may be missing. */
export const toolDetailOfJson = (head: string): string | undefined => toolDetail(jsonMembers(head))

function wordsOf(value: unknown): string | undefined {
  const text =
    Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string')
      ? value.slice(0, MAX_LABEL_UNITS).join(' ')
      : value
  return typeof text === 'string' && text.trim() !== '' ? text : undefined
}
