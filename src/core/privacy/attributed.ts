/**
 * Which files a text says that its pieces come from: headers of diffs, `path:line:text` as grep prints it,
 * `==> path <==`, headings over the text of a file, and JSON objects with a path beside a text. Lists of names attribute
 * nothing. A line that can be read in several ways gives every reading. Time and memory grow with the text and no faster,
 * whatever it holds (D17).
 */

import { isDeeperThan, MAX_JSON_DEPTH } from '../../protocol/json-depth.ts'
import { shownPaths } from '../diff-paths.ts'
import { type Budget, makeBudget } from './budget.ts'
import { isText, isTextMember, namesOfMember } from './json-members.ts'
import { holdsNeedle, linesWith, mayName, type Needles } from './needles.ts'

/** What a text attributes its pieces to, as far as it may be constrained. */
export type Attributed = {
  names: ReadonlySet<string>
  /** False if there was more than can be read: then the text may show anything. */
  isWhole: boolean
}

/** JSON inside JSON, as in the answer of a tool server, is opened so many times. */
const MAX_DEPTH = 6
/** Names end early in a line: a longer beginning is text. */
export const MAX_NAME_CHARS = 1024
/** So many colons may stand in what goes before the text: of a revision, a drive, and a name that has some itself. */
const MAX_COLONS = 6
/** A name that goes before `-12-text` may hold numbers itself: so many of its ends are tried. */
const MAX_DASHES = 16
/** Every blank in the header of a diff may be the one between two names; honest names have few. */
const MAX_HEADER_BLANKS = 16
/** Names that may be constrained, which in an honest text are few or the same again and again. */
const MAX_NAMES = 20_000
const MAX_NAMES_CHARS = 2_000_000

const ESC = '\u001b'
/** Colours and links, which a terminal does not show as text. */
const ESCAPES = new RegExp(`${ESC}\\[[0-9;]*[A-Za-z]|${ESC}\\][^\\u0007${ESC}]*(?:\\u0007|${ESC}\\\\)`, 'g')
const DIFF_LINE = /^(?:diff |--- |\+\+\+ |rename |copy |Index: )/
/** The key of a member that is a file: with a folder, or hidden. `form.key` is a word of a program, or of a translation. */
const FILE_KEY = /[/\\]|^\.[^.\s]/
/** A heading that a text makes for itself as well: it is one of a file only where a folder, or the word, says so. */
const MARKDOWN = /^#{1,6}/
/** What marks a line as the heading of a file. */
const HEADING =
  /^(?:[\s│┃|]*(?:file(?: ?name| ?path)?|path|source|Index|\*\*\* (?:Add|Update|Delete) File|Move to)\s*[:=]\s*|(?:={2,}>?|-{3,}>?|#{1,6}|\/\/|\*{3,}|>{2,}|<{2,}|<!--|\/\*)\s*(?:(?:begin|start)\s+)?(?:(?:of\s+)?file(?: ?name| ?path)?|path|source)?\s*:?\s*|`{3,}\s*\w*[\s:]+|`{3,})/i
/** What may close a heading, and how many of it in a row. */
const CLOSINGS: readonly [sign: string, least: number, most: number][] = [
  ['-->', 1, 1],
  ['*/', 1, 1],
  ['`', 1, 1],
  ['=', 2, MAX_NAME_CHARS],
  ['-', 3, MAX_NAME_CHARS],
  ['#', 1, MAX_NAME_CHARS],
  ['*', 3, MAX_NAME_CHARS],
  ['<', 2, MAX_NAME_CHARS],
]
const LINE_NUMBER = /\s{0,16}\d{1,12}[:\-|│]/y
const FRAME = /[:=\-*#~]/
const FRAME_LINE = /(?:^|\n)[:=\-*#~]{4,}$/
const ATTRIBUTE = /\b(?:file|path|name|filename|filepath|src|source|href|uri)\s*=\s*(?:"([^"]+)"|'([^']+)')/gi
const TAG = /<(?:source|path|file|filename|file_path|name|uri)>/gi
/** A line that begins like JSON. Each start looks at the blanks of its own line alone. */
const JSON_LINE = /^[^\S\n\r\u2028\u2029]*[[{]/m
/** A member of an object and the quote before its value, as far as it is a text. */
const MEMBER = /"([\w-]+)"\s*:\s*("?)/g
const TEXT_KEY = /content|text|body|line|snippet|match|data|code|output|diff|patch/i
const NAME_KEY = /(?:path|file|name|uri|source)$/i

type Found = { names: Set<string>; budget: Budget; needles: Needles; last: string }

/** Reads a text for names of which the needles leave open that they are constrained. */
export function attributedPaths(text: string, needles: Needles): Attributed {
  const found: Found = {
    names: new Set(),
    budget: makeBudget(MAX_NAMES, MAX_NAMES_CHARS),
    needles,
    last: '',
  }
  inText(text, found, 0)
  return { names: found.names, isWhole: !found.budget.isSpent }
}

function add(name: string, found: Found): void {
  // Of many lines in a row the same is said.
  if (name === found.last || name === '' || name === '/dev/null' || found.budget.isSpent) return
  found.last = name
  if (!mayName(name, found.needles) || found.names.has(name)) return
  if (found.budget.take(name.length)) found.names.add(name)
}

const giveUp = (found: Found): void => {
  found.budget.take(Number.POSITIVE_INFINITY)
}

function inText(text: string, found: Found, depth: number): void {
  if (!holdsNeedle(text, found.needles)) return
  const plain = text.includes(ESC) ? text.replace(ESCAPES, '') : text
  if (depth < MAX_DEPTH && inJson(plain, found, depth)) return
  for (const { start, end, needleAt } of linesWith(plain, found.needles)) {
    if (found.budget.isSpent) return
    const line = plain.slice(start, end).trimEnd()
    inLine(line, needleAt - start, found)
    if (isHeadingOfLines(plain, start, end)) add(line.trim(), found)
    // One object per line.
    if (depth < MAX_DEPTH && (line.endsWith('}') || line.endsWith(']'))) inJson(line, found, depth)
  }
  // Cut off in the middle, or printed over many lines after something else, it still says what its pieces are.
  if (JSON_LINE.test(plain)) inBrokenJson(plain, found)
}

function inLine(line: string, needleAt: number, found: Found): void {
  beforeText(line, needleAt, found)
  if (DIFF_LINE.test(line)) inDiffLine(line, found)
  const heading = line.length <= MAX_NAME_CHARS ? HEADING.exec(line)?.[0] : undefined
  const name = heading === undefined ? '' : withoutClosing(line.slice(heading.length))
  if (
    heading !== undefined &&
    !(MARKDOWN.test(heading) && !/file|path|source/i.test(heading) && !/^\S*[/\\]\S*$/.test(name))
  ) {
    add(name, found)
    add(name.replace(/^["'`]|["'`]$/g, ''), found)
    for (const word of name.split(/[\s()]+/)) add(word, found)
  }
  if (line.includes('<')) {
    for (const [, double, single] of line.matchAll(ATTRIBUTE)) add(double ?? single ?? '', found)
    for (const { index, 0: tag } of line.matchAll(TAG)) {
      const end = line.indexOf('<', index + tag.length)
      if (end >= 0 && line[end + 1] === '/') add(line.slice(index + tag.length, end).trim(), found)
    }
  }
}

/** What stands before `:text`, `:12:text`, `-12-text`, or a zero byte. */
function beforeText(line: string, needleAt: number, found: Found): void {
  const head = line.slice(0, MAX_NAME_CHARS)
  const colon = head.indexOf(':')
  let from = 0
  let count = 0
  for (let i = 0; i < head.length && count < MAX_COLONS; i++) {
    const char = head[i]
    if (char !== ':' && char !== '\0' && char !== '\t') continue
    // The line has no blanks at its end.
    if (i + 1 === line.length) return
    const isNumbered = /^\d+[:\t]/.test(line.slice(i + 1, i + 16))
    for (const name of [head.slice(0, i), ...(from > 0 ? [head.slice(from, i)] : [])]) {
      if (isNumbered || isLikeAName(name)) add(name, found)
    }
    from = i + 1
    count++
  }
  if (!/[-=]\d/.test(head)) return
  let early = 0
  let late = 0
  for (const { index } of head.matchAll(/[-=](?=\d+[-=:])/g)) {
    // A constrained name ends behind its needle, whatever numbers stand before.
    if (index <= needleAt ? early++ >= MAX_DASHES : late++ >= MAX_DASHES) continue
    add(head.slice(0, index), found)
    if (colon >= 0 && colon < index) add(head.slice(colon + 1, index), found)
  }
}

/** With blanks in it, what has no folder or has signs of a program is a sentence, or code. */
const isLikeAName = (text: string): boolean =>
  !/\s/.test(text) || (/[/\\]/.test(text) && !/[=?(){}<>"'|&;!+*,]/.test(text))

function inDiffLine(line: string, found: Found): void {
  const words = line.split(/\s+/)
  if (line.startsWith('diff ') && words.length > MAX_HEADER_BLANKS) giveUp(found)
  else for (const name of shownPaths(line) ?? []) add(name, found)
  for (const word of words.slice(1)) add(word, found)
}

function withoutClosing(heading: string): string {
  let end = heading.length
  const trim = (chars: RegExp) => {
    while (end > 0 && chars.test(heading[end - 1] ?? '')) end--
  }
  trim(/[\s:]/)
  for (const [sign, least, most] of CLOSINGS) {
    let start = end
    let count = 0
    while (count < most && heading.endsWith(sign, start) && start > 0) {
      start -= sign.length
      count++
    }
    if (count < least) continue
    end = sign === '=' && heading[start - 1] === '<' ? start - 1 : start
    break
  }
  trim(/\s/)
  return heading.slice(0, end)
}

/** A line of its own over numbered lines, as `rg --heading` prints, or framed, as `more` does. */
function isHeadingOfLines(text: string, start: number, end: number): boolean {
  LINE_NUMBER.lastIndex = end + 1
  if (LINE_NUMBER.test(text)) return true
  const closes = text[start - 2] === '\r' ? start - 2 : start - 1
  return FRAME.test(text[closes - 1] ?? '') && FRAME_LINE.test(text.slice(Math.max(0, closes - 80), closes))
}

/** @returns false for what is no JSON object or list */
function inJson(text: string, found: Found, depth: number): boolean {
  const parsed = parseJson(text)
  if (parsed === undefined) return false
  // What opens so often has to close as often. Something in it may be constrained, or it would not be looked at.
  if (text.length > 2 * MAX_JSON_DEPTH && isDeeperThan(parsed, MAX_JSON_DEPTH)) giveUp(found)
  else inValue(parsed, found, depth)
  return true
}

/** @returns whether there is any text in the value */
function inValue(value: unknown, found: Found, depth: number): boolean {
  if (typeof value === 'string') {
    inText(value, found, depth + 1)
    return isText(value)
  }
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) {
    let holdsText = false
    for (const item of value) holdsText = inValue(item, found, depth) || holdsText
    return holdsText
  }
  let holdsText = false
  let showsText = false
  const names: string[][] = []
  for (const [key, item] of Object.entries(value)) {
    const itemHoldsText = inValue(item, found, depth)
    holdsText ||= itemHoldsText
    const named = namesOfMember(key, item)
    names.push(named)
    const isOfText = isTextMember(key)
    showsText ||= itemHoldsText && isOfText && named.length === 0
    // As in `{ "src/a.ts": "…" }`.
    if (itemHoldsText && FILE_KEY.test(key)) add(key, found)
  }
  if (showsText) for (const name of names.flat()) add(name, found)
  return holdsText
}

/** Members are looked for one by one, whatever stands around them. */
function inBrokenJson(text: string, found: Found): void {
  const names: string[] = []
  let showsText = false
  for (const { index, 0: member, 1: key = '', 2: quote } of text.matchAll(MEMBER)) {
    showsText ||= TEXT_KEY.test(key)
    if (quote !== '' && NAME_KEY.test(key)) {
      const start = index + member.length
      const end = closingQuote(text, start)
      if (end !== null && mayName(text.slice(start, end), found.needles)) names.push(text.slice(start, end))
    }
  }
  if (!showsText) return
  for (const name of names) {
    add(name, found)
    add(name.replace(/\\(.)/g, '$1'), found)
  }
}

/** Null where the text is cut off, or too long to be a name. */
function closingQuote(text: string, from: number): number | null {
  // Each character of a name may be written as one escape of six.
  const last = Math.min(text.length, from + 6 * MAX_NAME_CHARS)
  for (let i = from; i < last; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === '"') return i
  }
  return null
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
