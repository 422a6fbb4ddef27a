/** What a question asks for, as far as fixed rules can tell. */
export type Intent =
  | { kind: 'greeting' }
  | { kind: 'overview' }
  | { kind: 'file'; paths: string[]; keywords: string[] }
  | { kind: 'lookup'; keywords: string[] }
  | { kind: 'replace'; path: string; old: string; new: string }
  | { kind: 'write'; path: string; content: string }
  | { kind: 'run'; command: string }

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
/** A piece of a command sentence: quoted, or one word. */
const PIECE = '(`[^`]+`|"[^"]*"|\'[^\']*\'|\\S+)'
const PATH = '[`"\']?([\\w@][\\w@./-]*\\.\\w+|[\\w@][\\w@-]*(?:/[\\w@.-]+)+)[`"\']?'
const COMMANDS = 'npm|npx|pnpm|yarn|node|deno|bun|git|make|cargo|go|python3?|pytest|ls|cat|echo|pwd|wc|head|tail'

const REPLACE: readonly { pattern: RegExp; order: readonly ['old' | 'path', 'old' | 'new', 'new' | 'path'] }[] = [
  { pattern: new RegExp(`\\breplace ${PIECE} (?:with|by) ${PIECE} in ${PATH}`, 'i'), order: ['old', 'new', 'path'] },
  { pattern: new RegExp(`\\b(?:change|rename) ${PIECE} (?:to|into) ${PIECE} in ${PATH}`, 'i'), order: ['old', 'new', 'path'] },
  { pattern: new RegExp(`\\bin ${PATH},? (?:replace|change|rename) ${PIECE} (?:with|by|to|into) ${PIECE}`, 'i'), order: ['path', 'old', 'new'] },
]

/** Sorts a question. Commands are taken only from its last paragraph: what was asked before was answered before. */
export function readIntent(question: string): Intent {
  const last = question.split(/\n\s*\n/).at(-1)?.trim() ?? ''
  if (last === '' || GREETING.test(last)) return { kind: 'greeting' }
  const command = readReplace(last) ?? readWrite(last) ?? readRun(last)
  if (command !== undefined) return command
  const paths = pathsOf(question)
  const keywords = keywordsOf(question, paths)
  if (paths.length > 0) return { kind: 'file', paths, keywords }
  return keywords.length === 0 ? { kind: 'overview' } : { kind: 'lookup', keywords }
}

function readReplace(text: string): Intent | undefined {
  for (const { pattern, order } of REPLACE) {
    const match = pattern.exec(text)
    if (match === null) continue
    const part = (name: 'old' | 'new' | 'path') => unquote(match[order.findIndex((other) => other === name) + 1] ?? '')
    const [old, next, path] = [part('old'), part('new'), part('path')]
    if (old !== '' && old !== next) return { kind: 'replace', path, old, new: next }
  }
  return undefined
}

function readWrite(text: string): Intent | undefined {
  const created = new RegExp(
    `^(?:please )?(?:create|add|write) (?:a |the )?(?:new )?(?:file )?(?:called |named )?${PATH} (?:with|containing|that says)(?: the)?(?: text| content)?:? ([\\s\\S]+)$`,
    'i',
  ).exec(text)
  if (created !== null) return { kind: 'write', path: created[1] ?? '', content: `${unquote(created[2] ?? '')}\n` }
  const written = new RegExp(`^(?:please )?write ${PIECE} (?:to|into) (?:the file )?${PATH}[.!]?$`, 'i').exec(text)
  return written === null
    ? undefined
    : { kind: 'write', path: written[2] ?? '', content: `${unquote(written[1] ?? '')}\n` }
}

function readRun(text: string): Intent | undefined {
  const match = new RegExp(
    `^(?:please )?(?:run|execute)(?: the command)?:? (?:\`([^\`]+)\`|"([^"]+)"|((?:${COMMANDS})(?: .+)?))[.!]?$`,
    'i',
  ).exec(text)
  const command = match?.[1] ?? match?.[2] ?? match?.[3]
  return command === undefined ? undefined : { kind: 'run', command }
}

const unquote = (text: string): string => {
  const trimmed = text.trim()
  return /^([`"']).*\1$/s.test(trimmed) && trimmed.length >= 2 ? trimmed.slice(1, -1) : trimmed
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
  const wanted = [...quoted, ...names, ...plain].filter((word) => word.trim() !== '' && !paths.includes(word))
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
