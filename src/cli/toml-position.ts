/** A place in a parsed document, as zod reports it. */
export type KeyPath = readonly (string | number | symbol)[]

/**
 * Finds the line (from 1) of a TOML document that sets the value at `path`, or the nearest thing around it. The TOML
 * parser keeps no positions, so this reads the table headers and keys again; values that span lines are attributed
 * to their first one.
 */
export function lineOf(toml: string, path: KeyPath): number | undefined {
  const lines = indexLines(toml)
  for (let length = path.length; length > 0; length--) {
    const line = lines.get(pathKey(path.slice(0, length)))
    if (line !== undefined) return line
  }
  return undefined
}

const pathKey = (path: KeyPath): string => JSON.stringify(path.map(String))

const HEADER = /^\s*(\[\[?)\s*(.+?)\s*(\]\]?)\s*(?:#.*)?$/
const ASSIGNMENT =
  /^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=(.*)$/

function indexLines(toml: string): Map<string, number> {
  const found = new Map<string, number>()
  /** How many tables each array of tables has so far, by its dotted name. */
  const arrays = new Map<string, number>()
  let table: (string | number)[] = []
  let inText: string | undefined
  let number = 0
  for (const line of toml.split(/\r?\n/)) {
    number++
    if (inText !== undefined) {
      if (line.includes(inText)) inText = undefined
      continue
    }
    const header = HEADER.exec(line)
    if (header) {
      table = tablePath(splitKey(header[2] ?? ''), header[1] === '[[', arrays)
      note(found, table, number)
      continue
    }
    const assignment = ASSIGNMENT.exec(line)
    if (!assignment) continue
    note(found, [...table, ...splitKey(assignment[1] ?? '')], number)
    inText = opensText(assignment[2] ?? '')
  }
  return found
}

/** The first mention of a key wins; a table is also noted for each table around it. */
function note(found: Map<string, number>, path: (string | number)[], line: number): void {
  for (let length = path.length; length > 0; length--) {
    const key = pathKey(path.slice(0, length))
    if (!found.has(key)) found.set(key, line)
  }
}

function tablePath(keys: string[], isArray: boolean, arrays: Map<string, number>): (string | number)[] {
  const path: (string | number)[] = []
  keys.forEach((key, i) => {
    path.push(key)
    const name = keys.slice(0, i + 1).join('.')
    const last = i === keys.length - 1
    if (last && isArray) arrays.set(name, (arrays.get(name) ?? 0) + 1)
    const count = arrays.get(name)
    if (count !== undefined) path.push(count - 1)
  })
  return path
}

const splitKey = (key: string): string[] =>
  [...key.matchAll(/"([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+)/g)].map((m) => m[1] ?? m[2] ?? m[3] ?? '')

/** The delimiter of a multi-line text that begins in this value and does not end in it. */
function opensText(value: string): string | undefined {
  for (const quotes of ['"""', "'''"]) {
    const first = value.indexOf(quotes)
    if (first >= 0 && value.indexOf(quotes, first + 3) < 0) return quotes
  }
  return undefined
}
