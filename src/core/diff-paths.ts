/**
 * Which files a diff is about. Routing asks for the names that the files have now; privacy asks for every name under
 * which the diff may show content.
 */

const HEADER = 'diff --git '
/** Lines that name one file and nothing else, by how they begin. */
const NAMING_LINES = [
  'diff --cc ',
  'diff --combined ',
  'rename from ',
  'rename to ',
  'copy from ',
  'copy to ',
]

/** The new-side paths: what follows the first ` b/` on each `diff --git` line (EC 8.1). */
export function diffPaths(diff: string): string[] {
  const paths: string[] = []
  for (const line of diff.split('\n')) {
    if (!line.startsWith(HEADER)) continue
    const quoted = line.indexOf(' "b/')
    const plain = line.indexOf(' b/')
    if (quoted >= 0) paths.push(withoutSide(unquote(line.slice(quoted + 1).trimEnd())))
    else if (plain >= 0) paths.push(line.slice(plain + 3).trimEnd())
  }
  return paths
}

/**
 * Every path that the diff may show content of: both sides, old names, and what stands there without `a/` and `b/`. Where
 * a line can be read in two ways, both readings are given. Null when nothing says which files it shows, or in too many
 * ways.
 */
export function shownPaths(diff: string): string[] | null {
  const paths: string[] = []
  for (const line of linesOf(diff)) {
    if (line.startsWith(HEADER)) {
      const named = headerPaths(line.slice(HEADER.length))
      if (named === null) return null
      paths.push(...named)
    } else if (FILE_LINE.test(line)) {
      const name = unquote((line.slice(4).split('\t')[0] ?? '').trimEnd())
      // Other tools than git put times and revisions behind a blank.
      if (name !== '/dev/null') paths.push(...sided(name), ...sided(name.replace(/ .*$/, '')))
    } else if (OTHER_HEADER.test(line)) {
      for (const word of line.split(' ').slice(1, MAX_HEADER_WORDS))
        paths.push(...sided(unquote(word.replace(/#\d+$|:$/, ''))))
    } else {
      const start = NAMING_LINES.find((prefix) => line.startsWith(prefix))
      if (start !== undefined) paths.push(unquote(line.slice(start.length)))
    }
  }
  return paths.length === 0 && diff.trim() !== '' ? null : paths
}

/** `--- ` and `+++ ` of a unified diff, `*** ` of one with context. */
const FILE_LINE = /^(?:---|\+\+\+|\*\*\*) /
/** How other diffs than git's usual one name their files: `diff -r a b`, `Index: a`, `==== a#1 - b ====`, `Submodule a 1..2:`. */
const OTHER_HEADER = /^(?:diff (?!--git |--cc |--combined )|Index: |={4} |Submodule )/
const MAX_HEADER_WORDS = 32

/** A name as it stands, and without the folder that tells the side. */
const sided = (name: string): string[] => {
  const inside = name.replace(/^[^/]+\//, '')
  return inside === name ? [name] : [name, inside]
}

/** Lines without the colours of a terminal. */
const linesOf = (diff: string): string[] =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with an escape
  diff.split('\n').map((line) => line.replace(/\x1b\[[0-9;]*m/g, '').trimEnd())

/** One file's part of a diff. */
export type DiffPart = {
  text: string
  /** Every path that it may show content of, for judging; null when nothing says which. */
  paths: string[] | null
  /** The files that it is about by what git prints, for telling; empty when it names none. */
  names: string[]
}

/** Lines that begin the part of another file. Inside a hunk no line can begin so: each has its sign in front. */
const PART_STARTS = [HEADER, 'diff --cc ', 'diff --combined ']

/** Takes a diff apart, file by file. What stands before the first header is a part of its own. */
export function diffParts(diff: string): DiffPart[] {
  const parts: string[][] = []
  for (const line of diff.split('\n')) {
    const starts = PART_STARTS.some((prefix) => line.startsWith(prefix))
    const last = parts.at(-1)
    if (starts || last === undefined) parts.push([line])
    else last.push(line)
  }
  return parts
    .map((lines) => lines.join('\n'))
    .filter((text) => text.trim() !== '')
    .map((text) => ({ text, paths: shownPaths(text), names: namesIn(text) }))
}

/** The new names and the old ones, each once, in their most likely reading. */
function namesIn(part: string): string[] {
  const names = new Set<string>()
  for (const line of linesOf(part)) {
    const start = NAMING_LINES.find((prefix) => line.startsWith(prefix))
    if (start !== undefined) names.add(unquote(line.slice(start.length)))
    else if (line.startsWith('--- ') || line.startsWith('+++ ')) {
      const name = unquote((line.slice(4).split('\t')[0] ?? '').trimEnd())
      if (name !== '/dev/null') names.add(withoutSide(name))
    } else if (line.startsWith('@@')) break
  }
  if (names.size === 0) for (const name of diffPaths(part)) names.add(name)
  return [...names]
}

/** Longer headers, and those with more blanks, are no names that anyone gave a file. In UTF-16 units. */
const MAX_HEADER_UNITS = 8192
const MAX_HEADER_SPACES = 64

/** `a/NAME b/NAME`, or two names of a rename; null for what can be read in too many ways. */
function headerPaths(names: string): string[] | null {
  const middle = (names.length - 1) / 2
  if (names[middle] === ' ') {
    const [left, right] = [unquote(names.slice(0, middle)), unquote(names.slice(middle + 1))]
    if (left === right) return [left]
    if (withoutSide(left) === withoutSide(right)) return [withoutSide(left)]
    if (sided(left)[1] !== undefined && sided(left)[1] === sided(right)[1]) return [...sided(left), right]
  }
  if (names.length > MAX_HEADER_UNITS || names.split(' ').length > MAX_HEADER_SPACES) return null
  // Names may hold spaces: each space may be the one between them.
  const readings: string[] = []
  for (let space = names.indexOf(' '); space >= 0; space = names.indexOf(' ', space + 1)) {
    for (const side of [names.slice(0, space), names.slice(space + 1)]) {
      readings.push(...sided(unquote(side)))
    }
  }
  return readings
}

const withoutSide = (name: string): string => name.replace(/^[a-z]\//, '')

const ESCAPED: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  t: '\t',
  n: '\n',
  v: '\v',
  f: '\f',
  r: '\r',
}

/** A name as git quotes it: C escapes, and the bytes of UTF-8 in octal. */
function unquote(name: string): string {
  if (name.length < 2 || !name.startsWith('"') || !name.endsWith('"')) return name
  const encoded = name
    .slice(1, -1)
    .replace(/\\([0-7]{3})|\\(.)|([^\\]+)/gsu, (_, octal?: string, escaped?: string, plain?: string) => {
      if (octal !== undefined) return `%${(Number.parseInt(octal, 8) & 0xff).toString(16).padStart(2, '0')}`
      return encodeURIComponent(escaped === undefined ? (plain ?? '') : (ESCAPED[escaped] ?? escaped))
    })
  try {
    return decodeURIComponent(encoded)
  } catch {
    // Bytes that are no UTF-8: the name stays as it was written.
    return name.slice(1, -1)
  }
}
