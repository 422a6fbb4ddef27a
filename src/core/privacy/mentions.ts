/**
 * What a call names, for privacy alone: the paths at any depth of its arguments, and each word of a command line that may
 * be one. What a command reads without naming it cannot be known.
 */

import { isDeeperThan, MAX_JSON_DEPTH } from '../../protocol/json-depth.ts'
import { spell } from '../paths.ts'
import {
  COMMAND_ARGUMENT,
  MAX_PATH_CHARS,
  PATH_ARGUMENT,
  snakeCase,
  type TranscriptCall,
} from '../transcript.ts'
import { makeBudget } from './budget.ts'
import { commandWords } from './command-words.ts'

/** What a call names. Both may hold wildcards, which stand for themselves as well. */
export type Mentions = {
  /** Values of arguments that name files or folders. */
  names: string[]
  /** Words of its command lines. */
  words: string[]
  /** Folders in which the call says it works: what is relative may be meant below each. */
  folders: string[]
  /** A search that does not look at letter case. */
  ignoresCase: boolean
  /** Whether all was read. What was not may name anything. */
  isWhole: boolean
}

/** More names of arguments that hold a name of a file than routing looks at. */
const OTHER_NAME =
  /(^|_)(cwd|work_?dir|root|base|file_?paths?|path_?names?|globs?|includes?|ur[il]s?|src|sources?|targets?|dest|destinations?|from|to|location|document|notebook)$/
/** Arguments that name the folder where a call works. */
const FOLDER_ARGUMENT =
  /(^|_)(cwd|work_?dir|root|dirs?|directory|directories|folders?|base|(work|base|root|project|search)_?(path|dir))$/
/** Arguments whose text says itself which files it is about. */
const PATCH_ARGUMENT = /(^|_)(patch(es)?|diffs?|changes|input)$/
/**
 * Tools of the contract whose arguments are known: beside `path` they hold contents. Their result is about the file that
 * they name, or about none.
 */
export const FILE_TOOLS: ReadonlySet<string> = new Set(['read_file', 'write_file', 'edit_file', 'memory'])
/** Far more words than a long program in a command line has, in all their forms. */
const MAX_WORDS = 250_000
const MAX_WORDS_CHARS = 10_000_000

/** Everything in the arguments that may name a path. */
export function mentionsOf({
  name,
  arguments: args,
}: Pick<TranscriptCall, 'arguments'> & { name?: string }): Mentions {
  const found: Mentions = { names: [], words: [], folders: [], ignoresCase: false, isWhole: true }
  if (isDeeperThan(args, MAX_JSON_DEPTH)) return { ...found, isWhole: false }
  const words = new Set<string>()
  const folders = new Set<string>()
  const budget = makeBudget(MAX_WORDS, MAX_WORDS_CHARS)
  const takesCommands = name === undefined || !FILE_TOOLS.has(name)
  const visit = (value: unknown, key: string): void => {
    if (typeof value === 'string') {
      if (isName(key) || /^file:/i.test(value)) {
        const given = pathOf(value)
        if (given !== null) found.names.push(given)
        if (given !== null && FOLDER_ARGUMENT.test(key)) folders.add(given)
      } else if (takesCommands && COMMAND_ARGUMENT.test(key)) {
        const line = commandWords(value.normalize('NFC'), budget)
        for (const word of line.words) words.add(word)
        for (const folder of line.folders) folders.add(folder)
        found.ignoresCase ||= line.ignoresCase
      }
    } else if (Array.isArray(value)) {
      if (takesCommands && COMMAND_ARGUMENT.test(key) && value.every((item) => typeof item === 'string'))
        visit(value.map(quoted).join(' '), key)
      else for (const item of value) visit(item, key)
    } else if (typeof value === 'object' && value !== null) {
      for (const [inner, item] of Object.entries(value)) {
        // As in `files: { "a.ts": "…" }`.
        if (isName(key)) visit(inner, key)
        visit(item, snakeCase(inner))
      }
    }
  }
  for (const [key, value] of Object.entries(args)) visit(value, snakeCase(key))
  return { ...found, words: [...words], folders: [...folders], isWhole: !budget.isSpent }
}

/** Texts in the arguments of a call that say themselves what they are about, such as patches. */
export function patchesOf({ name, arguments: args }: Pick<TranscriptCall, 'arguments' | 'name'>): string[] {
  if (FILE_TOOLS.has(name)) return []
  return Object.entries(args).flatMap(([key, value]) =>
    typeof value === 'string' && PATCH_ARGUMENT.test(snakeCase(key)) && value.includes('\n') ? [value] : [],
  )
}

const isName = (key: string): boolean => PATH_ARGUMENT.test(key) || OTHER_NAME.test(key)

/** A longer text counts only if it is a short path written in a long way. */
function pathOf(value: string): string | null {
  if (value.length <= MAX_PATH_CHARS) return value
  const { relative } = spell(value, '')
  return relative.length <= MAX_PATH_CHARS ? relative : null
}

/** A word that a shell takes as it is. */
const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`
