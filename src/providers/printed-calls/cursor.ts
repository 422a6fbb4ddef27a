/** A reader of text that is still arriving: each `yield` consumes the character under the cursor and waits for the next. */
export type Reading<T> = Generator<void, T, void>

/** What stands under the cursor after the last character. */
export const END = ''

/**
 * One character of an answer, and what was consumed before it and not given out yet. Readers see the text one character
 * at a time, so what they make of it cannot depend on how it was split.
 */
export class Cursor {
  #char = END
  /** The character under the cursor was given out already. */
  #spent = false
  #held = ''
  /** What was consumed since `beginToken`, while it may still be read again. */
  #token: string | undefined
  /** Characters to be read again, the next one last. */
  #again: string[] = []

  get char(): string {
    return this.#char
  }

  isAt(char: string): boolean {
    return this.#char === char
  }

  /** Characters that arrived and were not given out. */
  get heldChars(): number {
    const token = this.#token?.length ?? 0
    return this.#held.length + token + this.#again.length + (this.#spent ? 0 : this.#char.length)
  }

  /** Consumes the character under the cursor and moves on to `next`. */
  advance(next: string): void {
    if (!this.#spent) {
      if (this.#token === undefined) this.#held += this.#char
      else this.#token += this.#char
    }
    this.#spent = false
    this.#char = next
  }

  /** The next character of those to be read again. */
  takeAgain(): string | undefined {
    return this.#again.pop()
  }

  /** From here on what is consumed can be put back. */
  beginToken(): void {
    this.#token = ''
  }

  /** What was consumed since `beginToken` stays so. */
  endToken(): void {
    this.#held += this.#token ?? ''
    this.#token = undefined
  }

  /** Puts the cursor back to where `beginToken` was called. */
  rewindToken(): void {
    const token = this.#token ?? ''
    this.#token = undefined
    if (token === '') return
    this.#again.push(this.#char)
    for (let at = token.length - 1; at >= 1; at -= 1) this.#again.push(token.charAt(at))
    this.#char = token.charAt(0)
  }

  /** What was consumed and not given out. */
  release(): string {
    const text = this.#held
    this.#held = ''
    return text
  }

  /** What was consumed, and the character under the cursor. */
  spend(): string {
    const text = this.release() + (this.#spent ? '' : this.#char)
    this.#spent = true
    return text
  }

  /** Everything that arrived and was not given out, in the order in which it came. */
  releaseAll(): string {
    const unread = (this.#spent ? '' : this.#char) + this.#again.reverse().join('')
    const text = this.#held + (this.#token ?? '') + unread
    this.#held = ''
    this.#token = undefined
    this.#again = []
    this.#char = END
    return text
  }
}

export const isSpace = (char: string): boolean =>
  char === ' ' || char === '\n' || char === '\t' || char === '\r'

export function* skipSpace(cursor: Cursor): Reading<void> {
  while (isSpace(cursor.char)) yield
}

/** Reads one of the texts. Without a match the cursor stays where it was. */
export function* literal(cursor: Cursor, texts: readonly string[]): Reading<string | undefined> {
  let candidates = texts
  let seen = ''
  cursor.beginToken()
  while (!cursor.isAt(END)) {
    seen += cursor.char
    candidates = candidates.filter((text) => text.startsWith(seen))
    if (candidates.length === 0) break
    yield
    if (candidates.includes(seen)) {
      cursor.endToken()
      return seen
    }
  }
  cursor.rewindToken()
  return undefined
}

/** Tells whether `text` follows; the cursor stays where it was. */
export function* isAhead(cursor: Cursor, text: string): Reading<boolean> {
  cursor.beginToken()
  for (const expected of text) {
    if (!cursor.isAt(expected)) {
      cursor.rewindToken()
      return false
    }
    yield
  }
  cursor.rewindToken()
  return true
}

/** Reads up to `mark` and past it. Nothing when the text ends before. */
export function* textUntil(cursor: Cursor, mark: string): Reading<string | undefined> {
  let text = ''
  while (!cursor.isAt(END)) {
    if (cursor.isAt(mark.charAt(0)) && (yield* literal(cursor, [mark])) !== undefined) return text
    text += cursor.char
    yield
  }
  return undefined
}

/** Longer than any name that a provider lets a tool have. */
const MAX_NAME_CHARS = 128

/** Reads the name of a tool or a parameter, up to the first character that is in none. Empty when there is none. */
export function* readName(cursor: Cursor): Reading<string> {
  let name = ''
  while (/^[\w.:-]$/.test(cursor.char) && name.length < MAX_NAME_CHARS) {
    name += cursor.char
    yield
  }
  return name
}
