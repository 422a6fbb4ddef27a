/**
 * The words of a command line that may be names of files, for privacy. Not a shell: each word is given in every form in
 * which some shell or program could take it, since one too many does no harm. Variables that the line does not set stand
 * as `*`.
 */

import type { Budget } from './budget.ts'
import { isNoPath } from './needles.ts'

export type CommandWords = {
  /** May hold wildcards. */
  words: Set<string>
  /** Folders that the command goes to: a relative word may be meant below each. */
  folders: string[]
  /** Names that a search looks for without regard to letter case. */
  ignoresCase: boolean
}

/** Commands inside commands, as in `sh -c "…"`, are opened so many times. */
const MAX_DEPTH = 4
/** Of the folders that a line goes to the last ones count. */
const MAX_FOLDERS = 12
/** Longer words are data: no file system knows longer paths. */
const MAX_WORD_CHARS = 4096
/** Longer ones are held against what names can be at all: programs give long words, with their quotes out of step. */
const MAX_CHARS_AT_ONCE = 512
/** A word is cut at so many of its colons, equals signs and commas. */
const MAX_CUTS = 16
/** As many names as braces may give. */
const MAX_BRACED = 64

/** Separates what a shell, an editor or a programming language separates. */
const SEPARATORS = /[\s"'`=<>|;&(){}$,]+/
const GOES_TO_FOLDER =
  /^(?:cd|chdir|pushd|sl|Set-Location|Push-Location|-C|--(?:directory|cwd|dir|prefix|work-tree|chdir))$/i
const FOLDER_OPTION = /^(?:-C|--(?:directory|cwd|dir|prefix|work-tree|chdir)=)(?=.)/
/** Options whose value is the name of files below the folders that the command names otherwise. */
const NAMES_BELOW = /^(?:-i?name|-i?path|-i?wholename|--include|--i?glob|-g|-Filter|-Include)$/i
const ANY = '*'
/** Stands for a value that is not known, while a line is read. */
const UNKNOWN = '\u0001'

/**
 * Reads a command line.
 * @param budget for every form of every word; where it does not suffice, words are missing
 */
export function commandWords(command: string, budget: Budget): CommandWords {
  const found: Found = {
    words: new Set(),
    folders: [],
    ignoresCase: /(?:^|\s)(?:-i(?:name|path|wholename)|--iglob|nocaseglob)(?:\s|$)/i.test(command),
    budget,
  }
  collect(withoutMessages(command), found, new Map(), 0)
  return found
}

/** Longer commands are read as they are. */
const MAX_MESSAGE_COMMAND_CHARS = 10_000
/** What a commit is described with, where it is plain text: in it nothing is run and nothing is named. */
const COMMIT_MESSAGE = /(\bgit (?:commit|tag|stash)\b[^;&|\n"']{0,200}? -a?m )(?:"[^"$`\\]*"|'[^']*')/g

const withoutMessages = (command: string): string =>
  command.length > MAX_MESSAGE_COMMAND_CHARS ? command : command.replace(COMMIT_MESSAGE, '$1')

type Found = CommandWords & { budget: Budget }

function collect(command: string, found: Found, variables: Map<string, string>, depth: number): void {
  for (const word of command.split(SEPARATORS)) addForms(word, found)
  // In one shell a backtick takes the next character as it is.
  if (/\w`\w/.test(command)) {
    for (const word of command.replaceAll('`', '').split(SEPARATORS)) addForms(word, found)
  }
  // Patterns like `.e@(nv|rc)`: what they stand for is taken to be anything.
  const line = command.replace(/[@?*+!]\([^()\s]*\)/g, ANY)
  const words = lex(line, variables, found.budget)
  const below = new Set(words.filter((_, index) => NAMES_BELOW.test(words[index - 1] ?? '')))
  for (const [index, word] of words.entries()) {
    if (found.budget.isSpent) return
    addForms(word, found)
    if (depth < MAX_DEPTH && /[\s;|&<>()"'`]/.test(word)) collect(word, found, variables, depth + 1)
    const folder = folderOf(words, index)
    if (folder !== null) goTo(folder, found.folders)
    else if (!word.startsWith('-') && !below.has(word)) {
      for (const name of below) addForms(`${word}/${name}`, found)
    }
  }
}

function folderOf(words: readonly string[], index: number): string | null {
  const word = words[index] ?? ''
  const inside = FOLDER_OPTION.exec(word)
  if (inside !== null) return word.slice(inside[0].length)
  let before = index - 1
  if (word.startsWith('-') || /^\/d$/i.test(word)) return null
  while (before >= 0 && /^(?:--|-[LPe@]|\/d)$/i.test(words[before] ?? '')) before--
  return GOES_TO_FOLDER.test(words[before] ?? '') ? word : null
}

function goTo(folder: string, folders: string[]): void {
  const target = folder
    .slice(folder.lastIndexOf(UNKNOWN) + 1)
    .replace(folder.includes(UNKNOWN) ? /^\/+/ : /^$/, '')
  if (target === '') return
  const reached = [target, ...folders.map((known) => `${known}/${target}`)]
  for (const one of reached) {
    if (one.length <= MAX_WORD_CHARS && !folders.includes(one)) folders.push(one)
  }
  folders.splice(0, folders.length - MAX_FOLDERS)
}

/** Splits as a Unix shell does, quotes and backslashes taken away, and sets variables on the way. */
function lex(line: string, variables: Map<string, string>, budget: Budget): string[] {
  const words: string[] = []
  let word: string | null = null
  let quote = ''
  const end = () => {
    if (word === null) return
    const assigned = /^(\w+)=(.*)$/s.exec(word)
    if (assigned?.[1] !== undefined) variables.set(assigned[1], assigned[2] ?? '')
    words.push(word)
    word = null
  }
  for (let i = 0; i < line.length; i++) {
    const char = line[i] ?? ''
    if (quote === "'") {
      if (char === quote) quote = ''
      else word += char
    } else if (char === '\\') {
      const next = line[++i] ?? ''
      if (next !== '\n') word = (word ?? '') + next
    } else if (char === '$' && line[i + 1] === "'") {
      const close = closingQuote(line, i + 2)
      word = (word ?? '') + unescapeAnsi(line.slice(i + 2, close))
      i = close
    } else if (char === '$' && /[\w{]/.test(line[i + 1] ?? '')) {
      const { value, length } = variableAt(line, i, variables)
      // A few letters may stand for a long value, time and again.
      if (!budget.take(value.length)) return words
      word = (word ?? '') + value
      i += length - 1
    } else if (char === '"' || (char === "'" && quote === '')) {
      word ??= ''
      quote = quote === char ? '' : quote === '' ? char : quote
    } else if (quote === '' && /[\s;|&<>()`]/.test(char)) {
      end()
      // What a command in the line prints may be the beginning of a name.
      if ((char === ')' || char === '`') && /[/\\\w.]/.test(line[i + 1] ?? '')) word = UNKNOWN
    } else if (quote === '"' && char === '`') word = (word ?? '') + UNKNOWN
    else word = (word ?? '') + char
  }
  end()
  return words
}

/** What `$NAME` or `${NAME…}` stands for, and how long it is. One's home and the folder at hand stay as they are. */
function variableAt(
  line: string,
  at: number,
  variables: ReadonlyMap<string, string>,
): { value: string; length: number } {
  const [text, plain, braced] = /^\$(?:(\w+)|\{(\w+)[^}]*\})/.exec(line.slice(at, at + 256)) ?? ['$', '']
  const name = plain ?? braced ?? ''
  const isKept = /^(?:HOME|PWD|env)$/i.test(name)
  const value = isKept ? `$${name}` : (variables.get(name) ?? UNKNOWN)
  return { value: value.slice(0, MAX_WORD_CHARS), length: text.length }
}

function closingQuote(line: string, from: number): number {
  for (let i = from; i < line.length; i++) {
    if (line[i] === '\\') i++
    else if (line[i] === "'") return i
  }
  return line.length
}

/** `$'\x2eenv'` as bash reads it. */
const unescapeAnsi = (text: string): string =>
  text.replace(
    /\\(?:x([0-9a-f]{1,2})|u([0-9a-f]{1,4})|([0-7]{1,3})|(.))/gis,
    (_, hex?: string, unicode?: string, octal?: string, char?: string) => {
      const digits = hex ?? unicode
      if (digits !== undefined) return String.fromCharCode(Number.parseInt(digits, 16))
      return octal === undefined ? (char ?? '') : String.fromCharCode(Number.parseInt(octal, 8) & 0xff)
    },
  )

/** Adds every form of a word in which it may be a name. */
function addForms(word: string, found: Found): void {
  if (word === '' || word.length > MAX_WORD_CHARS) return
  const isData = word.length > MAX_CHARS_AT_ONCE && isNoPath(word)
  for (const braced of isData ? [word] : expandBraces(word, found.budget)) {
    const bare = braced.replace(/["'`^\\]/g, '')
    for (const form of bare === braced ? [braced] : [braced, bare]) {
      for (const part of isData ? pieces(form) : cuts(form)) {
        if (!found.budget.take(part.length)) return
        addWord(part, found.words)
        // `-f.env`, `+x`, `!.env`
        const option = /^(?:-\w|[-+!^#]+)(?=.)/.exec(part)
        if (option !== null) addWord(part.slice(option[0].length), found.words)
      }
    }
  }
}

function addWord(word: string, words: Set<string>): void {
  const unknown = word.lastIndexOf(UNKNOWN)
  if (unknown < 0) {
    if (word !== '') words.add(word)
    return
  }
  words.add(word.replaceAll(UNKNOWN, ANY))
  // What stands behind a value that is not known may be a name below any folder.
  const tail = word.slice(unknown + 1).replace(/^[\\/]+/, '')
  if (tail !== '') words.add(tail)
}

/** Of data, which is no name as a whole. */
const pieces = (word: string): string[] => word.split(/[:=@,]/).filter((piece) => !isNoPath(piece))

/** The word and its parts around `:`, `=`, `@` and `,`, as in `HEAD:.env`, `--file=.env` and `-d @.env`. */
function cuts(word: string): string[] {
  const parts = [word]
  let start = 0
  let count = 0
  for (let i = 0; i < word.length && count < MAX_CUTS; i++) {
    if (!':=@,'.includes(word[i] ?? '')) continue
    parts.push(word.slice(start, i), word.slice(0, i), word.slice(i + 1))
    start = i + 1
    count++
  }
  return count > 1 ? [...parts, word.slice(start)] : parts
}

/** Signs of data and programs: their braces give no names, and their members are words of their own anyway. */
const DATA = /[:=;()"'\s]/

/**
 * `{a,b}c` as `ac` and `bc`; a range of letters as any. Of braces that give more names than a shell is ever asked for,
 * each group is taken to be anything in data, and counts as unreadable elsewhere.
 */
function expandBraces(word: string, budget: Budget): string[] {
  let open = [word]
  const done = new Set([word])
  while (open.length > 0) {
    const next = new Set<string>()
    for (const one of open) {
      const group = innermostGroup(one)
      if (group === null) {
        done.add(one)
        continue
      }
      const members = group.text.includes(',') ? group.text.split(',') : [ANY]
      const tooMany = members.length + next.size + done.size > MAX_BRACED
      if (tooMany && !DATA.test(word)) {
        budget.take(Number.POSITIVE_INFINITY)
        return []
      }
      const [before, after] = [one.slice(0, group.start), one.slice(group.end)]
      for (const member of tooMany ? [ANY] : members) next.add(before + member + after)
    }
    open = [...next]
  }
  return [...done]
}

/** The first braces without others in them that hold a list or a range. */
function innermostGroup(word: string): { start: number; end: number; text: string } | null {
  let start = -1
  for (let i = 0; i < word.length; i++) {
    if (word[i] === '{') start = i
    else if (word[i] === '}' && start >= 0) {
      const text = word.slice(start + 1, i)
      if (text.includes(',') || text.includes('..')) return { start, end: i + 1, text }
      start = -1
    }
  }
  return null
}
