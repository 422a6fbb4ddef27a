import { type Command, readCommand } from './command.ts'

/** What a question asks for, as far as fixed rules can tell. */
export type Intent =
  | { kind: 'greeting' }
  | { kind: 'overview' }
  | { kind: 'file'; paths: string[]; keywords: string[] }
  | { kind: 'lookup'; keywords: string[] }
  | Command

/** More keywords cost a search each, and say less each. */
const MAX_KEYWORDS = 3

/** Words that carry no subject, among them those that ask about a project as a whole. */
const EMPTY_WORDS = new Set(
  `a about all an and any anything app application are as at be been but by can code codebase could describe did do does
  done each every everything explain file files find folder for from function general get give go goal had happen has have how i
  if in inside into introduce introduction is it its kind know like list look looks made main make many me mean most much my need
  now of on or our out overview package please point program project purpose read repo repository see should show so some
  something sort source such summarise summarize summary tell than that the their them then there these they thing things
  this those to under up us use used uses using very want was way we were what when where whether which who whole why will
  with work works would write you your`.split(/\s+/),
)

const GREETING =
  /^(?:(?:hi|hello|hey)(?: there| again)?|thanks|thank you|help|who are you|what are you|what can you do|good (?:morning|evening))[\s.!?]*$/i
const QUOTED = /`([^`\n]+)`|"([^"\n]+)"|(?<![\w])'([^'\n]+)'(?![\w])/g
/** Of a longer text (a pasted log, say) only the beginning and the end are looked at for what is asked. */
const MAX_HALF_CHARS = 4_000

/** Sorts a question. Commands are taken only from its last paragraph: what was asked before was answered before. */
export function readIntent(words: string): Intent {
  const question =
    words.length <= 2 * MAX_HALF_CHARS
      ? words
      : `${words.slice(0, MAX_HALF_CHARS)} ${words.slice(-MAX_HALF_CHARS)}`
  const paragraphs = question.trim().split(/\n\s*\n/)
  const last = paragraphs.at(-1) ?? ''
  if (last === '' || GREETING.test(last)) return { kind: 'greeting' }
  const command = readCommand(last)
  if (command !== undefined) return command
  const paths = pathsOf(question)
  const keywords = keywordsOf(question, paths)
  if (paths.length > 0) return { kind: 'file', paths, keywords }
  return keywords.length === 0 ? { kind: 'overview' } : { kind: 'lookup', keywords }
}

/** Words that look like a path: with an ending of letters, or with a slash. Versions and addresses do not. */
function pathsOf(question: string): string[] {
  const words = question.split(/[\s,;()]+/).map((word) => word.replace(/^[`"'@]+|[`"'.:!?]+$/g, ''))
  const paths = words.filter(
    (word) =>
      !word.includes('://') &&
      (/^[\w@-][\w@./-]*\.[a-z]\w{0,7}$/i.test(word) || /^[\w@.-]+(\/[\w@.-]+)+\/?$/.test(word)) &&
      !/^(e\.g|i\.e|and\/or|yes\/no|his\/her)$/i.test(word),
  )
  return [...new Set(paths)].slice(0, MAX_KEYWORDS)
}

/** What to search for, most telling first: quoted text, names as in code, then the longer words. */
function keywordsOf(question: string, paths: readonly string[]): string[] {
  const quoted = [...question.matchAll(QUOTED)].map((match) => match[1] ?? match[2] ?? match[3] ?? '')
  let rest = question.replace(QUOTED, ' ')
  for (const path of paths) rest = rest.replaceAll(path, ' ')
  const words = rest.split(/[^\p{L}\p{N}_$-]+/u).filter((word) => word.length > 1)
  const names = words.filter((word) => /[a-z][A-Z]|_|\w-\w/.test(word) || /^[A-Z]{2,}$/.test(word))
  const plain = words
    .filter((word) => !names.includes(word) && !EMPTY_WORDS.has(word.toLowerCase()) && !/^\d+$/.test(word))
    .map((word) => stem(word.toLowerCase()))
    .sort((a, b) => b.length - a.length)
  // Words that the user marked, or that look like code, are what he means; the others are prose around them.
  const marked = [...quoted, ...names].filter((word) => word.trim() !== '' && !paths.includes(word))
  const wanted = marked.length > 0 ? marked : plain
  return [...new Set(wanted)].slice(0, MAX_KEYWORDS)
}

/** Takes a common ending away, so that a search for a part of a word finds its other forms. */
function stem(word: string): string {
  for (const ending of ['ings', 'ing', 'ies', 'ed', 'es', 's']) {
    const rest = word.slice(0, -ending.length)
    if (word.endsWith(ending) && rest.length >= 4 && !(ending === 's' && rest.endsWith('s'))) return rest
  }
  return word
}
