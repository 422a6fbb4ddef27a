/** A sentence that asks for one act, said in one of a few fixed forms. */
export type Command =
  | { kind: 'replace'; path: string; old: string; new: string }
  | { kind: 'write'; path: string; content: string }
  | { kind: 'run'; command: string }

/** Quoted text, or one word. */
const piece = (name: string) => `(?<${name}>\`[^\`]+\`|"[^"]*"|'[^']*'|\\S+)`
/** A file name with an ending, or with a folder; quotes around it do not belong to it. */
const PATH = '[`"\']?(?<path>[\\w@][\\w@./-]*\\.\\w+|[\\w@][\\w@-]*(?:/[\\w@.-]+)+)[`"\']?'
/** First words of command lines that need no quotes to be told from prose. */
const PROGRAMS =
  'npm|npx|pnpm|yarn|node|deno|bun|git|make|cargo|go|python3?|pytest|ls|cat|echo|pwd|wc|head|tail'

const pattern = (...parts: string[]) => new RegExp(parts.join(''), 'i')

const REPLACE = [
  pattern('\\breplace ', piece('old'), ' (?:with|by) ', piece('next'), ' in ', PATH),
  pattern('\\b(?:change|rename) ', piece('old'), ' (?:to|into) ', piece('next'), ' in ', PATH),
  pattern(
    '\\bin ',
    PATH,
    ',? (?:replace|change|rename) ',
    piece('old'),
    ' (?:with|by|to|into) ',
    piece('next'),
  ),
]
const WRITE = [
  pattern(
    '^(?:please )?(?:create|add|write) (?:an? |the )?(?:new )?(?:file )?(?:called |named )?',
    PATH,
    ' (?:with|containing|that says)(?: the)?(?: text| content)?:? (?<content>[\\s\\S]+)$',
  ),
  pattern('^(?:please )?write ', piece('content'), ' (?:to|into) (?:the file )?', PATH, '[.!]?$'),
]
const RUN = [
  pattern('^(?:please )?(?:run|execute)(?: the command)?:? (?<command>`[^`]+`|"[^"]+")[.!]?$'),
  pattern('^(?:please )?(?:run|execute)(?: the command)?:? (?<command>(?:', PROGRAMS, ')(?: .+)?)$'),
]

/** The act that a sentence asks for; undefined when it has none of the forms. */
export function readCommand(sentence: string): Command | undefined {
  const replace = firstMatch(REPLACE, sentence)
  if (replace !== undefined) {
    const { path = '', old = '', next = '' } = replace
    if (old !== '' && old !== next) return { kind: 'replace', path, old, new: next }
  }
  const write = firstMatch(WRITE, sentence)
  if (write !== undefined)
    return { kind: 'write', path: write.path ?? '', content: `${write.content ?? ''}\n` }
  const run = firstMatch(RUN, sentence)
  return run === undefined ? undefined : { kind: 'run', command: run.command ?? '' }
}

function firstMatch(patterns: readonly RegExp[], sentence: string): Record<string, string> | undefined {
  for (const one of patterns) {
    const groups = one.exec(sentence)?.groups
    if (groups === undefined) continue
    return Object.fromEntries(Object.entries(groups).map(([name, text]) => [name, unquote(text)]))
  }
  return undefined
}

function unquote(text: string): string {
  const trimmed = text.trim()
  return trimmed.length >= 2 && /^([`"']).*\1$/s.test(trimmed) ? trimmed.slice(1, -1) : trimmed
}
