/**
 * Path globs with the contract's meaning (EC 8.2): whole-path, case-sensitive; `*` and `?` cross `/`; `**` is special
 * only as a whole component; `[a-z]`, `[!a-z]`, `{x,y}` and `\` escapes. Matching simulates the pattern as an
 * automaton, so its time is bounded by pattern length × path length whatever the pattern (D17).
 */

/** Longer patterns are invalid (D17): no honest path pattern needs more. */
export const MAX_GLOB_CHARS = 256
/** More wildcards are invalid (D17). */
export const MAX_GLOB_WILDCARDS = 16
/** Braces multiply; more alternatives than this are invalid. */
export const MAX_GLOB_ALTERNATIVES = 64

export type Part =
  | { k: 'char'; char: string }
  | { k: 'one' }
  | { k: 'class'; negated: boolean; ranges: [string, string][] }
  /** Any run of characters. */
  | { k: 'star' }
  /** Nothing, or any run of characters that ends in a slash. */
  | { k: 'dirs' }

type Sequence = { parts: Part[]; prefix: string; words: string[]; suffix: string; literal: boolean }

export type Glob = {
  matches(path: string): boolean
  /** The path lies, at any depth, in a folder that the pattern matches. */
  matchesFolderOf(path: string): boolean
  /** The alternatives that the braces spell out: the pattern matches what one of them matches. */
  readonly alternatives: readonly (readonly Part[])[]
}

export type GlobOptions = {
  /** Letters count in either case; paths have to come through `foldCase`. */
  ignoreCase?: boolean
  /** For patterns that are made here, not written by a user: D17's bounds do not apply. */
  unbounded?: boolean
}

/** Compiles a pattern, or says why it is invalid. Paths have to come in NFC, as `normalisePath` leaves them. */
export function compileGlob(
  pattern: string,
  { ignoreCase = false, unbounded = false }: GlobOptions = {},
): { glob: Glob } | { invalid: string } {
  const chars = Array.from(pattern.normalize('NFC'))
  if (!unbounded && chars.length > MAX_GLOB_CHARS)
    return { invalid: `longer than ${MAX_GLOB_CHARS} characters` }
  try {
    if (!unbounded && countWildcards(chars) > MAX_GLOB_WILDCARDS)
      return { invalid: `more than ${MAX_GLOB_WILDCARDS} wildcards` }
    const sequences = expandBraces(chars)
      .map(parseParts)
      .map((parts) => toSequence(ignoreCase ? parts.flatMap(folded) : parts))
    return {
      glob: {
        matches: (path) => sequences.some((sequence) => matchSequence(sequence, path)),
        matchesFolderOf: (path) => sequences.some((sequence) => matchFolder(sequence, path)),
        alternatives: sequences.map(({ parts }) => parts),
      },
    }
  } catch (error) {
    if (error instanceof InvalidGlob) return { invalid: error.message }
    throw error
  }
}

class InvalidGlob extends Error {}

/** A text in the form in which two that differ in letter case only are equal; one character may become two. */
export const foldCase = (text: string): string =>
  PLAIN.test(text)
    ? text.toLowerCase()
    : // One by one: what a letter becomes must not depend on its neighbours.
      Array.from(text, (char) => char.toUpperCase().toLowerCase()).join('')

/** ASCII alone, as most paths are: there every letter has one other form. */
const PLAIN = /^[\0-\x7f]*$/

function folded(part: Part): Part[] {
  if (part.k === 'char') return Array.from(foldCase(part.char), (char) => ({ k: 'char', char }))
  if (part.k !== 'class') return [part]
  // A folded path has small letters alone: a range of capitals takes their small ones, too.
  const small = part.ranges.flatMap(([low, high]): [string, string][] => {
    const [from, to] = [low.toLowerCase(), high.toLowerCase()]
    return [...from].length === 1 && [...to].length === 1 && from <= to ? [[from, to]] : []
  })
  return [part.negated ? part : { ...part, ranges: [...part.ranges, ...small] }]
}

function countWildcards(chars: string[]): number {
  let count = 0
  for (let i = 0; i < chars.length; i++) {
    const char = chars[i]
    if (char === '\\') i++
    else if (char === '*' && chars[i + 1] === '*') {
      count++
      i++
    } else if (char === '*' || char === '?' || char === '[' || char === '{') count++
  }
  return count
}

/** Turns `a{b,c}d` into `abd` and `acd`; nested braces too. */
function expandBraces(chars: string[]): string[][] {
  const open = findUnescaped(chars, '{', 0)
  if (open < 0) {
    if (findUnescaped(chars, '}', 0) >= 0) throw new InvalidGlob('a `}` without its `{`')
    return [chars]
  }
  const branches: string[][] = [[]]
  let depth = 1
  let i = open + 1
  for (; i < chars.length && depth > 0; i++) {
    const char = chars[i] as string
    const branch = branches[branches.length - 1] as string[]
    if (char === '\\') branch.push(char, chars[++i] ?? '')
    else if (char === '[') {
      const end = classEnd(chars, i)
      branch.push(...chars.slice(i, end + 1))
      i = end
    } else if (char === '{') {
      depth++
      branch.push(char)
    } else if (char === '}') {
      depth--
      if (depth > 0) branch.push(char)
    } else if (char === ',' && depth === 1) branches.push([])
    else branch.push(char)
  }
  if (depth > 0) throw new InvalidGlob('a `{` without its `}`')
  const head = chars.slice(0, open)
  const tail = chars.slice(i)
  const expanded: string[][] = []
  for (const branch of branches) {
    for (const sequence of expandBraces([...head, ...branch, ...tail])) {
      expanded.push(sequence)
      if (expanded.length > MAX_GLOB_ALTERNATIVES) throw new InvalidGlob('too many alternatives')
    }
  }
  return expanded
}

function findUnescaped(chars: string[], wanted: string, from: number): number {
  for (let i = from; i < chars.length; i++) {
    const char = chars[i]
    if (char === '\\') i++
    else if (char === '[') i = classEnd(chars, i)
    else if (char === wanted) return i
  }
  return -1
}

/** The index of the `]` that closes the class opened at `open`; a `]` that comes first is a member. */
function classEnd(chars: string[], open: number): number {
  let i = open + 1
  if (chars[i] === '!' || chars[i] === '^') i++
  if (chars[i] === ']') i++
  while (i < chars.length && chars[i] !== ']') i++
  if (i >= chars.length) throw new InvalidGlob('a `[` without its `]`')
  return i
}

function parseParts(chars: string[]): Part[] {
  const parts: Part[] = []
  let i = 0
  while (i < chars.length) {
    const char = chars[i] as string
    if (char === '\\') {
      const escaped = chars[i + 1]
      if (escaped === undefined || escaped === '') throw new InvalidGlob('a `\\` at the end')
      parts.push({ k: 'char', char: escaped })
      i += 2
    } else if (char === '?') {
      parts.push({ k: 'one' })
      i++
    } else if (char === '[') {
      const end = classEnd(chars, i)
      parts.push(parseClass(chars.slice(i + 1, end)))
      i = end + 1
    } else if (char === '*') {
      let end = i
      while (chars[end] === '*') end++
      const wholeComponent = end - i === 2 && (i === 0 || chars[i - 1] === '/') && chars[end] === '/'
      if (wholeComponent) {
        parts.push({ k: 'dirs' })
        i = end + 1
      } else {
        parts.push({ k: 'star' })
        i = end
      }
    } else {
      parts.push({ k: 'char', char })
      i++
    }
  }
  return parts
}

const toSequence = (parts: Part[]): Sequence => ({ parts, ...literalRuns(parts) })

function parseClass(members: string[]): Part {
  const negated = members[0] === '!' || members[0] === '^'
  const list = negated ? members.slice(1) : members
  const ranges: [string, string][] = []
  for (let i = 0; i < list.length; i++) {
    const low = list[i] as string
    const high = list[i + 2]
    if (list[i + 1] === '-' && high !== undefined) {
      if (high < low) throw new InvalidGlob(`the range ${low}-${high} is upside down`)
      ranges.push([low, high])
      i += 2
    } else ranges.push([low, low])
  }
  return { k: 'class', negated, ranges }
}

/** What every match must begin with, hold in this order, and end with. */
function literalRuns(parts: Part[]): Omit<Sequence, 'parts'> {
  const runs = ['']
  for (const part of parts) {
    if (part.k === 'char') runs[runs.length - 1] += part.char
    else runs.push('')
  }
  const [prefix = '', ...rest] = runs
  const literal = rest.length === 0
  const suffix = rest.pop() ?? ''
  return { prefix, words: rest.filter((run) => run !== ''), suffix, literal }
}

/** Refuses most paths that do not match, at the price of a few text searches. */
function mayMatch({ prefix, words, suffix }: Sequence, path: string): boolean {
  if (!path.startsWith(prefix) || !path.endsWith(suffix)) return false
  const from = afterWords(words, path, prefix.length)
  return from >= 0 && from + suffix.length <= path.length
}

/** Where the last of the words ends, each found after the one before it; -1 where one is missing. */
function afterWords(words: readonly string[], path: string, start: number): number {
  let from = start
  for (const word of words) {
    const at = path.indexOf(word, from)
    if (at < 0) return -1
    from = at + word.length
  }
  return from
}

function matchSequence(sequence: Sequence, path: string): boolean {
  if (sequence.literal) return path === sequence.prefix
  return mayMatch(sequence, path) && simulate(sequence.parts, path, false)
}

function matchFolder(sequence: Sequence, path: string): boolean {
  const { parts, prefix, words, suffix, literal } = sequence
  if (literal) return path.length > prefix.length && path[prefix.length] === '/' && path.startsWith(prefix)
  if (!path.startsWith(prefix)) return false
  const from = afterWords(words, path, prefix.length)
  return from >= 0 && path.indexOf(`${suffix}/`, from) >= 0 && simulate(parts, path, true)
}

/** @param folders to match what stands before any of the slashes instead of the whole path */
function simulate(parts: Part[], path: string, folders: boolean): boolean {
  const end = parts.length
  let current = new Set<number>()
  enter(parts, current, 0)
  for (const char of path) {
    if (folders && char === '/' && current.has(end)) return true
    const next = new Set<number>()
    for (const index of current) {
      const part = parts[index]
      if (part === undefined) continue
      if (part.k === 'star') enter(parts, next, index)
      else if (part.k === 'dirs') {
        next.add(index)
        if (char === '/') enter(parts, next, index + 1)
      } else if (accepts(part, char)) enter(parts, next, index + 1)
    }
    if (next.size === 0) return false
    current = next
  }
  return !folders && current.has(end)
}

/** Adds a position, and those that follow it without consuming a character. */
function enter(parts: readonly Part[], states: Set<number>, index: number): void {
  for (let i = index; ; i++) {
    states.add(i)
    const part = parts[i]
    if (part === undefined || (part.k !== 'star' && part.k !== 'dirs')) return
  }
}

function accepts(part: Part, char: string): boolean {
  switch (part.k) {
    case 'char':
      return part.char === char
    case 'one':
      return true
    case 'class':
      return part.ranges.some(([low, high]) => low <= char && char <= high) !== part.negated
    default:
      return false
  }
}
