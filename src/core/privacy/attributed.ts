/**
 * Which files a text says that its pieces come from: headers of diffs, `path:line:text` as grep prints it,
 * `==> path <==`, headings over the text of a file, and JSON objects with a path beside a text. Lists of names attribute
 * nothing. A line that can be read in several ways gives every reading.
 */

import { shownPaths } from '../diff-paths.ts'
import { PATH_ARGUMENT, snakeCase } from '../transcript.ts'

/** Narrows the search to lines in which one of these texts stands, in small ASCII letters; null looks at all. */
export type Needles = readonly string[] | null

/** JSON inside JSON, as in the answer of a tool server, is opened so many times. */
const MAX_DEPTH = 6
/** Names end early in a line: a longer beginning is text. */
const MAX_NAME_CHARS = 1024
/** So many colons may stand in what goes before the text: of a revision, a drive, and a name that has some itself. */
const MAX_COLONS = 6

const ESC = '\u001b'
/** Colours and links, which a terminal does not show as text. */
const ESCAPES = new RegExp(`${ESC}\\[[0-9;]*[A-Za-z]|${ESC}\\][^\\u0007${ESC}]*(?:\\u0007|${ESC}\\\\)`, 'g')
const DIFF_LINE = /^(?:diff |--- |\+\+\+ |rename |copy |Index: )/
/** What marks a line as the heading of a file. */
const HEADING =
  /^(?:[\s│┃|]*(?:file(?: ?name| ?path)?|path|source|Index|\*\*\* (?:Add|Update|Delete) File|Move to)\s*[:=]\s*|(?:={2,}>?|-{3,}>?|#{1,6}|\/\/|\*{3,}|>{2,}|<{2,}|<!--|\/\*)\s*(?:(?:begin|start)\s+)?(?:(?:of\s+)?file(?: ?name| ?path)?|path|source)?\s*:?\s*|`{3,}\s*\w*[\s:]+|`{3,})/i
const HEADING_END = /\s*(?:<?={2,}|-{3,}|#+|\*{3,}|<{2,}|-->|\*\/|`)?[\s:]*$/
const ATTRIBUTE = /\b(?:file|path|name|filename|filepath|src|source|href|uri)\s*=\s*(?:"([^"]+)"|'([^']+)')/gi
const TAGGED = /<(?:source|path|file|filename|file_path|name|uri)>\s*([^<]+?)\s*<\//gi
/** Members of an object that hold what stands in a file. */
const TEXT_MEMBER =
  /(^|_)(contents?|texts?|body|lines?|snippets?|match(es)?|previews?|data|values?|code|source|excerpts?|context|output|diff|patch|hunks?|before|after|old|new|result|stdout)(_|$)/
const NAME_MEMBER =
  /(^|_)(names?|ur[il]s?|source|location|title|label|id|key|target|file_?paths?|path_?names?)$/
const NAME_IN_JSON = /"(?:[\w-]*(?:path|file|name|uri|source))"\s*:\s*"((?:[^"\\]|\\.)*)"/gi

/** Each name once or more often, in no particular order. */
export function* attributedPaths(text: string, needles: Needles, depth = 0): Generator<string, void> {
  if (needles !== null && !holdsAny(text, needles)) return
  const plain = text.includes(ESC) ? text.replace(ESCAPES, '') : text
  const parsed = depth < MAX_DEPTH ? parseJson(plain) : undefined
  if (parsed !== undefined) {
    yield* inJson(parsed, needles, depth)
    return
  }
  for (const [start, end] of linesWith(plain, needles)) {
    const line = plain.slice(start, end).trimEnd()
    yield* inLine(line, plain, start, end)
    // One object per line.
    if (/^\s*[[{]/.test(line) && /[\]}]$/.test(line) && depth < MAX_DEPTH)
      yield* inJson(parseJson(line), needles, depth)
  }
  // Cut off in the middle, or printed over many lines after something else, it still says what its pieces are.
  if (/^\s*[[{]/m.test(plain)) yield* brokenJson(plain)
}

function* inLine(line: string, text: string, start: number, end: number): Generator<string, void> {
  yield* beforeText(line)
  if (DIFF_LINE.test(line)) {
    yield* shownPaths(line) ?? []
    yield* line.split(/\s+/).slice(1)
  }
  if (line.length <= MAX_NAME_CHARS && HEADING.test(line)) {
    const name = line.replace(HEADING, '').replace(HEADING_END, '')
    yield name
    yield name.replace(/^["'`]|["'`]$/g, '')
    yield* name.split(/[\s()]+/)
  }
  if (line.includes('<')) {
    for (const [, double, single] of line.matchAll(ATTRIBUTE)) yield double ?? single ?? ''
    for (const [, name] of line.matchAll(TAGGED)) yield name ?? ''
  }
  if (isHeadingOfLines(text, start, end)) yield line.trim()
}

/** What stands before `:text`, `:12:text`, `-12-text`, or a zero byte. */
function* beforeText(line: string): Generator<string, void> {
  const head = line.slice(0, MAX_NAME_CHARS)
  let from = 0
  let count = 0
  for (let i = 0; i < head.length && count < MAX_COLONS; i++) {
    const char = head[i]
    if (char !== ':' && char !== '\0' && char !== '\t') continue
    if (line.slice(i + 1).trim() === '') return
    yield head.slice(0, i)
    if (from > 0) yield head.slice(from, i)
    from = i + 1
    count++
  }
  for (const { index } of head.matchAll(/[-=](?=\d+[-=:])/g)) {
    yield head.slice(0, index)
    const colon = head.indexOf(':')
    if (colon >= 0 && colon < index) yield head.slice(colon + 1, index)
  }
}

/** A line of its own over numbered lines, as `rg --heading` prints, or framed, as `more` does. */
function isHeadingOfLines(text: string, start: number, end: number): boolean {
  const next = text.slice(end + 1, end + 24)
  if (/^\s*\d+[:\-|│]/.test(next)) return true
  const before = text.slice(Math.max(0, start - 80), Math.max(0, start - 1))
  return /(?:^|\n)[:=\-*#~]{4,}\r?$/.test(before)
}

function* inJson(value: unknown, needles: Needles, depth: number): Generator<string, void> {
  if (typeof value === 'string') {
    yield* attributedPaths(value, needles, depth + 1)
    return
  }
  if (typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    for (const item of value) yield* inJson(item, needles, depth)
    return
  }
  const members = Object.entries(value).map(([key, item]): [string, string, unknown] => [
    key,
    snakeCase(key),
    item,
  ])
  const hasText = members.some(
    ([, key, item]) => TEXT_MEMBER.test(key) && !isName(key, item) && holdsText(item),
  )
  for (const [given, key, item] of members) {
    if (hasText && isName(key, item)) yield* namesIn(item)
    // As in `{ "src/a.ts": "…" }`.
    if (/[./\\]/.test(given) || !TEXT_MEMBER.test(key)) if (holdsText(item)) yield given
    yield* inJson(item, needles, depth)
  }
}

/** Of `source`, only a short single line is a name. */
const isName = (key: string, item: unknown): boolean =>
  (PATH_ARGUMENT.test(key) || NAME_MEMBER.test(key)) &&
  namesIn(item).some((name) => name.length <= MAX_NAME_CHARS && !name.includes('\n'))

/** A name by itself, or as `{ "text": … }` around it. */
function namesIn(item: unknown): string[] {
  if (typeof item === 'string') return [item]
  if (Array.isArray(item)) return item.filter((one) => typeof one === 'string')
  if (typeof item !== 'object' || item === null) return []
  return Object.values(item).filter((one) => typeof one === 'string')
}

function holdsText(item: unknown): boolean {
  if (typeof item === 'string') return item.trim() !== ''
  if (Array.isArray(item)) return item.some(holdsText)
  return typeof item === 'object' && item !== null && Object.values(item).some(holdsText)
}

function* brokenJson(text: string): Generator<string, void> {
  if (!/"[\w-]*(?:content|text|body|line|snippet|match|data|code|output|diff|patch)[\w-]*"\s*:/i.test(text))
    return
  for (const [, name] of text.matchAll(NAME_IN_JSON)) {
    yield name ?? ''
    yield (name ?? '').replace(/\\(.)/g, '$1')
  }
}

/** Undefined for what is no JSON object or list. */
function parseJson(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    // Most likely a text that begins with a bracket.
    return undefined
  }
}

/** One expression per list: a text may be taken apart into many. */
const compiled = new WeakMap<readonly string[], RegExp>()

function expressionOf(needles: readonly string[]): RegExp {
  const known = compiled.get(needles)
  if (known !== undefined) return known
  const source = needles.map((needle) => needle.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')
  const made = new RegExp(source === '' ? '(?!)' : source, 'gi')
  compiled.set(needles, made)
  return made
}

function holdsAny(text: string, needles: readonly string[]): boolean {
  const wanted = expressionOf(needles)
  wanted.lastIndex = 0
  return wanted.test(text)
}

/** Where the lines begin and end that hold a needle. */
function* linesWith(text: string, needles: Needles): Generator<[start: number, end: number], void> {
  if (needles === null) {
    for (let start = 0; start <= text.length; ) {
      const at = text.indexOf('\n', start)
      const end = at < 0 ? text.length : at
      yield [start, end]
      start = end + 1
    }
    return
  }
  const wanted = expressionOf(needles)
  for (let from = 0; from <= text.length; ) {
    // Set each time: another text may have been looked at in between.
    wanted.lastIndex = from
    const hit = wanted.exec(text)
    if (hit === null) return
    const start = text.lastIndexOf('\n', hit.index) + 1
    const at = text.indexOf('\n', hit.index)
    const end = at < 0 ? text.length : at
    yield [start, end]
    from = end + 1
  }
}
