import type { Provider } from '../protocol/execution/ids.ts'

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
  /** Content that only local models may see took part in it (U37). */
  localOnly?: true
  calls: TranscriptCall[]
}

/** Arguments that name files or folders, by the last word of their name: `path`, `file_path`, `sourceFiles`, `dir` … */
const PATH_ARGUMENT = /(^|_)(paths?|files?|file_?names?|dirs?|directory|folder)$/
/** Longer texts are contents, not names: no file system knows longer ones. */
const MAX_PATH_CHARS = 4096

/** The paths that a call names in its arguments, as the model wrote them (D11). */
export function callPaths({ arguments: args }: Pick<TranscriptCall, 'arguments'>): string[] {
  return Object.entries(args)
    .filter(([name]) => PATH_ARGUMENT.test(name.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toLowerCase()))
    .flatMap(([, value]): unknown[] => (Array.isArray(value) ? value : [value]))
    .filter((value): value is string => typeof value === 'string' && value.length <= MAX_PATH_CHARS)
}

/** The arguments of a call as they are kept, without the long texts that `callPaths` and `mentionedPaths` pass over. */
export const parsePathArguments = (json: string): Record<string, unknown> =>
  JSON.parse(json, (name, value: unknown) =>
    typeof value === 'string' && value.length > MAX_PATH_CHARS && name !== 'command' ? undefined : value,
  )

/**
 * Everything in a call that may name a path, for privacy alone: the paths at any depth of its arguments, and each word of
 * a command line. What a command reads without naming it cannot be known.
 */
export function mentionedPaths({ arguments: args }: Pick<TranscriptCall, 'arguments'>): string[] {
  const words =
    typeof args.command === 'string' ? args.command.split(/[\s"'`=<>|;&(){}$,]+/).filter(Boolean) : []
  const nested = Object.values(args).flatMap(function inside(value: unknown): string[] {
    if (typeof value !== 'object' || value === null) return []
    if (Array.isArray(value)) return value.flatMap(inside)
    const map = Object.fromEntries(Object.entries(value))
    return [...callPaths({ arguments: map }), ...Object.values(map).flatMap(inside)]
  })
  return [...callPaths({ arguments: args }), ...nested, ...words]
}
