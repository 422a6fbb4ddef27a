import { extensionOf } from './listing.ts'

/** A piece of a file with the number of its first line. */
export type Quote = { line: number; text: string }

const MAX_QUOTE_CHARS = 400

/** The first paragraphs of prose: no headings, badges, code, tables, lists or markup. */
export function proseOf(content: string, most: number): Quote[] {
  const found: Quote[] = []
  for (const { line, text } of paragraphs(content)) {
    if (found.length === most) break
    if (isProse(text)) found.push({ line, text: shorten(text) })
  }
  return found
}

/** Blank-line separated pieces outside code fences, each joined to one line. */
function paragraphs(content: string): Quote[] {
  const found: { line: number; lines: string[] }[] = []
  let fenced = false
  let open = false
  content.split('\n').forEach((raw, index) => {
    const text = raw.trim()
    if (/^(```|~~~)/.test(text)) fenced = !fenced
    else if (!fenced && text !== '' && !/^(#|=+$|-+$)/.test(text)) {
      if (open) found.at(-1)?.lines.push(text)
      else found.push({ line: index + 1, lines: [text] })
      open = true
      return
    }
    open = false
  })
  return found.map(({ line, lines }) => ({ line, text: lines.join(' ') }))
}

const isProse = (text: string): boolean => {
  const plain = text.replace(/!?\[[^\]]*\]\([^)]*\)/g, '')
  return text.length >= 30 && plain.length * 2 > text.length && !/^([<|[!]|[-*+] |\d+\. |>\s*$)/.test(text)
}

/** At most a few sentences, cut where one ends. */
function shorten(text: string): string {
  if (text.length <= MAX_QUOTE_CHARS) return text
  const cut = text.slice(0, MAX_QUOTE_CHARS)
  const end = Math.max(cut.lastIndexOf('. '), cut.lastIndexOf('! '), cut.lastIndexOf('? '))
  return end > MAX_QUOTE_CHARS / 3
    ? cut.slice(0, end + 1)
    : `${cut.slice(0, cut.lastIndexOf(' ')).trimEnd()} …`
}

/** Where something is defined, in the usual languages. */
const DEFINITION =
  /^\s*(?:export\s+)?(?:default\s+)?(?:pub(?:\([^)]*\))?\s+|public\s+|private\s+|static\s+|abstract\s+|async\s+|final\s+)*(?:function|class|interface|type|enum|struct|trait|impl|fn|func|def|module|namespace|const|let|var|val|object|record)\b\s*\S/
const COMMENT = /^\s*(?:\/\/|\/\*|\*|#(?!!)|--|;|"""|''')/
const PROSE_FILE = new Set(['md', 'mdx', 'txt', 'rst', 'adoc', ''])

/** What a line counts for when it bears this many of the keywords. */
function scoreOf(line: string, keywords: readonly string[], prose: boolean): number {
  const lower = line.toLowerCase()
  const hits = keywords.filter((keyword) => lower.includes(keyword.toLowerCase())).length
  if (hits === 0) return 0
  const kind = DEFINITION.test(line) ? 4 : prose || COMMENT.test(line) ? 3 : 0
  return hits * 10 + kind
}

/** The lines of a file that bear most of the keywords, in the order of the file. */
export function bestLines(path: string, content: string, keywords: readonly string[], most: number): Quote[] {
  const prose = PROSE_FILE.has(extensionOf(path))
  const lines = content.split('\n')
  const scored = lines
    .map((text, index) => ({ line: index + 1, text: text.trim(), score: scoreOf(text, keywords, prose) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.line - b.line)
  return scored
    .slice(0, most)
    .sort((a, b) => a.line - b.line)
    .map(({ line, text }) => ({ line, text: shorten(text) }))
}

/** What a file defines at its outermost level, for a question about the file as a whole. */
export function outlineOf(content: string, most: number): Quote[] {
  return content
    .split('\n')
    .map((text, index) => ({ line: index + 1, text }))
    .filter(({ text }) => /^\S/.test(text) && (DEFINITION.test(text) || /^#{1,3} \S/.test(text)))
    .slice(0, most)
    .map(({ line, text }) => ({ line, text: shorten(text.replace(/\s*\{?\s*$/, '')) }))
}

/** The comment at the head of a source file, or the first prose of a document. */
export function headOf(path: string, content: string): Quote[] {
  if (PROSE_FILE.has(extensionOf(path))) return proseOf(content, 2)
  const lines = content.split('\n').slice(0, 40)
  const first = lines.findIndex((line) => line.trim() !== '' && !line.startsWith('#!'))
  const comment: string[] = []
  for (const line of lines.slice(Math.max(first, 0))) {
    if (!COMMENT.test(line)) break
    comment.push(line.replace(/^\s*(?:\/\/+!?|\/\*+|\*\/|\*|#+|--|;+|"""|''')\s?|\s*\*\/\s*$/g, '').trim())
  }
  const text = comment.join(' ').trim()
  return text === '' ? [] : [{ line: first + 1, text: shorten(text) }]
}
