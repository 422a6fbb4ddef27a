/** Which members of a JSON object name a file, and which hold what stands in one. */

import { PATH_ARGUMENT, snakeCase } from '../transcript.ts'

/** A longer text, or one of several lines, is no name: of `source`, say. */
const MAX_NAME_CHARS = 1024

const TEXT_MEMBER =
  /(^|_)(contents?|texts?|body|lines?|snippets?|match(es)?|previews?|data|values?|code|source|excerpts?|context|output|diff|patch|hunks?|before|after|old|new|result|stdout)(_|$)/
const NAME_MEMBER =
  /(^|_)(names?|ur[il]s?|source|location|title|label|id|key|target|file_?paths?|path_?names?)$/

export const isText = (value: string): boolean => /\S/.test(value)

/** By its key alone: of `source`, what it holds has to say. */
export const isTextMember = (key: string): boolean => TEXT_MEMBER.test(snakeCase(key))

/** The names that a member gives; none where it is not one that gives names. */
export function namesOfMember(key: string, item: unknown): string[] {
  const name = snakeCase(key)
  if (!PATH_ARGUMENT.test(name) && !NAME_MEMBER.test(name)) return []
  const names = textsIn(item)
  return names.some((one) => one.length <= MAX_NAME_CHARS && !one.includes('\n')) ? names : []
}

/** A name by itself, or as `{ "text": … }` around it. */
function textsIn(item: unknown): string[] {
  if (typeof item === 'string') return [item]
  if (typeof item !== 'object' || item === null) return []
  return Object.values(item).filter((one) => typeof one === 'string')
}
