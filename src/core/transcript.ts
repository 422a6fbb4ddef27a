import type { Provider } from '../protocol/execution/ids.ts'
import type { UploadedImage } from './images/shown.ts'
import { spell } from './paths.ts'

/** A tool call as it is kept: always with the assistant message that made it. */
export type TranscriptCall = {
  /** The router's own id, unique per session (U24). */
  id: string
  providerCallId?: string
  name: string
  arguments: Record<string, unknown>
  /** Absent while the call waits for its result. */
  result?: string
  isError: boolean
  changesFiles: boolean
  opaque?: Record<string, unknown>
}

/** Stands for files that nothing names, any of which may be private. */
export const ANY_FILE = '*'

/**
 * What the prompt of an answer held, as far as it can tell a later policy that the answer is private (U37).
 */
export type Seen = {
  /** The key of the privacy guard by which it was judged then: under the same one there is nothing to judge again. */
  under: string
  /** The workspace of its run: its calls name files as seen from there. */
  root: string
  /** Files whose content its context showed, absolute where that is known, besides those that earlier answers of its run tell. */
  files?: readonly string[]
  /** Other readings of what named them: they are judged by, and never told. */
  readings?: readonly string[]
  /** Messages of the transcript that were in it, likewise: ranges of `seq`, as in `1-57,60`. */
  messages?: string
}

/** One message of the session with the calls it made, in order. */
export type TranscriptMessage = {
  seq: number
  role: 'user' | 'assistant'
  text: string
  runId: string
  /** Who wrote an assistant message. */
  provider?: Provider
  model?: string
  interrupted: boolean
  /** Pictures that the words of the user refer to; absent where they refer to none. */
  images?: readonly UploadedImage[]
  /** Content that only local models may see took part in it (U37). */
  localOnly?: true
  /** Absent on the user's messages, and on answers that releases before 0.3.0 stored. */
  seen?: Seen
  calls: TranscriptCall[]
}

/** Arguments that name files or folders, by the last word of their name: `path`, `file_path`, `sourceFiles`, `dir` … */
export const PATH_ARGUMENT = /(^|_)(paths?|files?|file_?names?|dirs?|directory|folder)$/
/** Arguments that hold a command line. */
export const COMMAND_ARGUMENT = /(^|_)(commands?|cmd|script|code|args|argv)$/
/** Longer texts are contents, not names: no file system knows longer ones. */
export const MAX_PATH_CHARS = 4096

/** The name of an argument in small letters, its words apart: `filePath` as `file_path`. */
export const snakeCase = (name: string): string => name.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toLowerCase()

/** The paths that a call names in its arguments, as the model wrote them (D11). */
export function callPaths({ arguments: args }: Pick<TranscriptCall, 'arguments'>): string[] {
  return Object.entries(args)
    .filter(([name]) => PATH_ARGUMENT.test(snakeCase(name)))
    .flatMap(([, value]): unknown[] => (Array.isArray(value) ? value : [value]))
    .filter((value): value is string => typeof value === 'string' && value.length <= MAX_PATH_CHARS)
}

/** A call whose result plays no part any more, for the paths that it names: an empty result stands for what it gave. */
export const toPastCall = (call: TranscriptCall): TranscriptCall => ({
  ...call,
  arguments: membersWithoutContents(call.arguments),
  ...(call.result === undefined ? {} : { result: '' }),
})

/** The arguments of a call as they are kept, without the long texts that name nothing: contents of files above all. */
export function parsePathArguments(json: string): Record<string, unknown> {
  const args: unknown = JSON.parse(json)
  if (typeof args !== 'object' || args === null) return {}
  return membersWithoutContents(args)
}

const membersWithoutContents = (value: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => {
      const kept = withoutContents(item, snakeCase(key))
      return kept === undefined ? [] : [[key, kept]]
    }),
  )

function withoutContents(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutContents(item, name))
  if (typeof value === 'object' && value !== null) return membersWithoutContents(value)
  if (typeof value !== 'string' || value.length <= MAX_PATH_CHARS || COMMAND_ARGUMENT.test(name)) return value
  const { relative } = spell(value, '')
  return relative.length <= MAX_PATH_CHARS ? relative : undefined
}
