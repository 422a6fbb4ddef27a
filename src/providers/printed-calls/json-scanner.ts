import { MAX_JSON_DEPTH } from '../../protocol/json-depth.ts'
import { type Cursor, END, isSpace, type Reading } from './cursor.ts'

/** What may stand around the arguments of a call: a list, an object, a list of calls, a call, its function. */
const ENVELOPE_LEVELS = 5

/** No number or word of a call is longer. */
const MAX_SCALAR_CHARS = 512

/** Tells whether a key may stand in the outermost object. */
export type KeyTest = (key: string) => boolean

/**
 * Reads one JSON object, or a list of objects, and gives up at the first character with which the text is none, or is
 * nested too deeply. Past an opening bracket it does not rewind: what was read so far begins nothing else.
 * @param isKey what the keys of the outermost object must be; any without it
 * @returns the value; undefined when there is none
 */
export function* readJsonValue(cursor: Cursor, isKey?: KeyTest): Reading<unknown> {
  const scanner = new JsonScanner(isKey)
  let text = ''
  // An opening bracket may begin something else, such as a mark.
  cursor.beginToken()
  for (;;) {
    const verdict = scanner.take(cursor.char)
    if (verdict === 'bad') {
      if (text.length < 2) cursor.rewindToken()
      return undefined
    }
    if (text.length === 1) cursor.endToken()
    text += cursor.char
    yield
    if (verdict === 'done') return parse(text)
  }
}

/** Reads one value or several objects, with white space or semicolons between and after them. */
export function* readJsonValues(cursor: Cursor, isKey?: KeyTest): Reading<unknown[] | undefined> {
  const values: unknown[] = []
  do {
    const value = yield* readJsonValue(cursor, isKey)
    if (value === undefined) return undefined
    values.push(value)
    while (isSpace(cursor.char) || cursor.char === ';') yield
  } while (cursor.char === '{')
  return values
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The scanner is less strict than JSON in a few places, escapes for one.
    return undefined
  }
}

type Verdict = 'more' | 'done' | 'bad'

/** Follows the structure of JSON text character by character, in constant time each. */
class JsonScanner {
  readonly #isKey: KeyTest | undefined
  /** The closing brackets that are due, the next one last. */
  readonly #due: string[] = []
  /** How deep the outermost object stands. */
  #outermost: number | undefined
  #expected: 'value' | 'value_or_close' | 'key' | 'key_or_close' | 'colon' | 'comma_or_close' = 'value'
  #inString: 'key' | 'value' | undefined
  #escaped = false
  #key = ''
  #scalar = ''

  constructor(isKey: KeyTest | undefined) {
    this.#isKey = isKey
  }

  take(char: string): Verdict {
    if (char === END) return 'bad'
    if (this.#inString !== undefined) return this.#takeInString(char)
    if (this.#scalar !== '') {
      if (/[\w.+-]/.test(char)) {
        this.#scalar += char
        return this.#scalar.length > MAX_SCALAR_CHARS ? 'bad' : 'more'
      }
      if (!/^(?:true|false|null|-?\d[\d.eE+-]*)$/.test(this.#scalar)) return 'bad'
      this.#scalar = ''
      this.#expected = 'comma_or_close'
    }
    if (isSpace(char)) return this.#due.length === 0 ? 'bad' : 'more'
    switch (this.#expected) {
      case 'value':
        return this.#beginValue(char)
      case 'value_or_close':
        return char === ']' ? this.#close(char) : this.#beginValue(char)
      case 'key_or_close':
        if (char === '}') return this.#close(char)
        return this.#beginKey(char)
      case 'key':
        return this.#beginKey(char)
      case 'colon':
        this.#expected = 'value'
        return char === ':' ? 'more' : 'bad'
      case 'comma_or_close':
        if (char !== ',') return this.#close(char)
        this.#expected = this.#due.at(-1) === '}' ? 'key' : 'value'
        return 'more'
    }
  }

  #beginValue(char: string): Verdict {
    if (char === '{') {
      this.#outermost ??= this.#due.length
      this.#expected = 'key_or_close'
      return this.#open('}')
    }
    // Outside the outermost object there is at most one list, and only objects stand in it.
    if (this.#outermost === undefined || this.#due.length === this.#outermost) {
      if (char !== '[' || this.#due.length > 0) return 'bad'
      this.#expected = 'value'
      return this.#open(']')
    }
    if (char === '[') {
      this.#expected = 'value_or_close'
      return this.#open(']')
    }
    if (char === '"') {
      this.#inString = 'value'
      return 'more'
    }
    if (!/[-\dtfn]/.test(char)) return 'bad'
    this.#scalar = char
    return 'more'
  }

  #beginKey(char: string): Verdict {
    if (char !== '"') return 'bad'
    this.#inString = 'key'
    this.#key = ''
    return 'more'
  }

  #open(closing: string): Verdict {
    this.#due.push(closing)
    return this.#due.length > MAX_JSON_DEPTH + ENVELOPE_LEVELS ? 'bad' : 'more'
  }

  #close(char: string): Verdict {
    if (this.#due.pop() !== char) return 'bad'
    this.#expected = 'comma_or_close'
    return this.#due.length === 0 ? 'done' : 'more'
  }

  #takeInString(char: string): Verdict {
    if (char < ' ') return 'bad'
    if (this.#escaped) this.#escaped = false
    else if (char === '\\') this.#escaped = true
    else if (char === '"') return this.#endString()
    if (this.#inString === 'key') this.#key += char
    return 'more'
  }

  #endString(): Verdict {
    const isKey = this.#inString === 'key'
    this.#inString = undefined
    this.#expected = isKey ? 'colon' : 'comma_or_close'
    if (!isKey || this.#isKey === undefined || this.#due.length - 1 !== this.#outermost) return 'more'
    return this.#isKey(this.#key) ? 'more' : 'bad'
  }
}
