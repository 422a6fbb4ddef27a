/** A place in a parsed document, as zod reports it. */
export type KeyPath = readonly (string | number | symbol)[]

/**
 * Finds the line (from 1) of a TOML document that sets the value at `path`, or the nearest thing around it. The TOML
 * parser keeps no positions, so this walks the text again; it is only asked about text that the parser took.
 */
export function lineOf(toml: string, path: KeyPath): number | undefined {
  const found = positions(toml)
  for (let length = path.length; length > 0; length--) {
    const at = found.get(pathKey(path.slice(0, length)))
    if (at !== undefined) return toml.slice(0, at).split('\n').length
  }
  return undefined
}

const pathKey = (path: KeyPath): string => JSON.stringify(path.map(String))

/** Line breaks count as blanks: where the text is valid, they separate nothing that something else does not. */
const BLANK = /(?:\s|#[^\n]*)*/y
const KEY = /[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*'/y
const TEXT = /"""(?:\\[\s\S]|[^\\])*?""""{0,2}|'''[\s\S]*?''''{0,2}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'/y
/** A number, a truth value or a date. */
const BARE = /[^,\]}#\n]+/y

type Path = (string | number)[]

/** Where in the text each table, value and element begins. The first mention wins; it counts for the tables around it, too. */
function positions(toml: string): Map<string, number> {
  const found = new Map<string, number>()
  /** How many tables each array of tables has so far. */
  const arrays = new Map<string, number>()
  let at = 0

  const note = (path: Path, where: number): void => {
    for (let length = path.length; length > 0; length--) {
      const key = pathKey(path.slice(0, length))
      if (!found.has(key)) found.set(key, where)
    }
  }
  const take = (pattern: RegExp): string => {
    pattern.lastIndex = at
    const taken = pattern.exec(toml)?.[0] ?? ''
    at += taken.length
    return taken
  }
  const skip = (char: string): boolean => {
    take(BLANK)
    if (toml[at] !== char) return false
    at++
    return true
  }
  const dottedKey = (): string[] => {
    const keys: string[] = []
    do {
      take(BLANK)
      const key = take(KEY)
      keys.push(/^["']/.test(key) ? key.slice(1, -1) : key)
    } while (skip('.'))
    return keys
  }
  const header = (where: number): Path => {
    const isArray = skip('[')
    const path: Path = []
    const keys = dottedKey()
    keys.forEach((key, i) => {
      path.push(key)
      const name = pathKey(path)
      if (isArray && i === keys.length - 1) arrays.set(name, (arrays.get(name) ?? 0) + 1)
      const count = arrays.get(name)
      if (count !== undefined) path.push(count - 1)
    })
    note(path, where)
    skip(']')
    if (isArray) skip(']')
    return path
  }
  const assignment = (table: Path): void => {
    take(BLANK)
    const where = at
    const path = [...table, ...dottedKey()]
    note(path, where)
    // Something that is no key either: it is passed by, so that every text comes to its end.
    if (!skip('=')) at++
    else value(path)
  }
  const value = (path: Path): void => {
    take(BLANK)
    note(path, at)
    if (skip('[')) {
      for (let index = 0; at < toml.length && !skip(']'); skip(',')) value([...path, index++])
    } else if (skip('{')) {
      for (; at < toml.length && !skip('}'); skip(',')) assignment(path)
    } else if (take(TEXT) === '' && take(BARE) === '') at++
  }

  let table: Path = []
  for (take(BLANK); at < toml.length; take(BLANK)) {
    const where = at
    if (skip('[')) table = header(where)
    else assignment(table)
  }
  return found
}
