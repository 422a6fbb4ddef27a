import type { OfferedTool } from '../../core/prompt.ts'
import { isCallKey, type Offered, type PrintedCall, readCalls } from './call-shapes.ts'
import { Cursor, END, literal, type Reading, skipSpace } from './cursor.ts'
import { type PrintedForm, readFencedValues } from './form.ts'
import { readJsonValues } from './json-scanner.ts'
import { MARKS, type Marks, marksOfLine } from './marks.ts'
import { THINKING } from './thinking.ts'

/** More than a model with a window of its own prints for one call, and little to keep per answer. */
const MAX_HELD_CHARS = 64 * 1024

/** A sentence or three before a call that bears no mark. After more than that, JSON belongs to what is being said. */
const MAX_LEAD_IN_CHARS = 512

/** Labels of fences that hold a call. `json` holds other things, too, so such a call counts like one without a fence. */
const FENCE_LABELS = ['json', 'tool_call', 'tool_code']

/** Text that is kept until the end, since a form stands in it or before it. */
type Piece = { text: string; form?: PrintedForm }

/** A fenced block; `inInfo` while its opening line goes on. */
type Fence = { char: string; chars: number; inInfo: boolean }

/**
 * Finds calls in the text of one answer as it arrives (EC 12.6). Text that cannot belong to a call is given out at once.
 * From the first complete form on everything is kept, for the end decides whether its calls count: then it is cut out,
 * else it is text, and stands where it stood. What is kept grows to `MAX_HELD_CHARS`; beyond that the answer, to its
 * end, is text.
 *
 * A form with a mark counts outside a fenced block, a quotation and inline code, when no more words follow. JSON without
 * one counts when it ends the answer, begins a line, and follows little text. Nothing counts in thinking, which begins where
 * a mark could and goes on to its closing tag or to the end.
 */
export class PrintedAnswer {
  readonly #offered: Offered
  readonly #marksOfLine: Marks
  readonly #cursor = new Cursor()
  readonly #reading: Reading<void>
  #decided = ''
  #pieces: Piece[] = []
  #pieceChars = 0
  #leadInChars = 0
  #isText = false
  #fence: Fence | undefined
  /** Only white space so far in this line. */
  #atLineStart = true
  #lastChar = ''
  /** This line begins with the mark of a quotation. */
  #isQuoted = false

  constructor(tools: readonly OfferedTool[]) {
    this.#offered = new Map(tools.map((tool) => [tool.name, tool]))
    this.#marksOfLine = marksOfLine(this.#offered)
    this.#reading = this.#read()
  }

  /** Takes the next piece of the answer. @returns what is text for certain since the last call */
  push(text: string): string {
    let at = 0
    for (; at < text.length && !this.#isText; at += 1) {
      this.#step(text.charAt(at))
      if (this.#pieceChars + this.#cursor.heldChars > MAX_HELD_CHARS) this.#decided = this.giveUp()
    }
    return this.#takeDecided() + text.slice(at)
  }

  /**
   * Ends the answer.
   * @param isWhole whether the model ended it; one that was cut off has no calls that only its end completes
   * @returns the rest of its text, and its calls
   */
  end(isWhole: boolean): { text: string; calls: PrintedCall[] } {
    if (!this.#isText) this.#step(END)
    // A model that calls stops there. What words follow is quoted, by it or by the file that it quotes; in an answer
    // that was cut off, what follows last may be the beginning of another call.
    const words = isWhole ? this.#pieces : this.#pieces.slice(0, -1)
    const lastWords = words.findLastIndex(({ text, form }) => form === undefined && text.trim() !== '')
    const counted = this.#pieces.map(
      ({ form }, index) => form !== undefined && index > lastWords && (isWhole || !form.byEnd),
    )
    const calls = this.#pieces.flatMap(({ form }, index) => (counted[index] ? (form?.calls ?? []) : []))
    const rest = this.#pieces.map(({ text }, index) => (counted[index] ? '' : text)).join('')
    // Line breaks that stood between forms are not worth a message.
    const isBlank = calls.length > 0 && rest.trim() === ''
    return { text: this.#takeDecided() + (isBlank ? '' : rest), calls }
  }

  /** Makes text of everything that is kept and of everything that comes. @returns what was kept */
  giveUp(): string {
    const kept = this.#pieces.map(({ text }) => text).join('') + this.#cursor.releaseAll()
    this.#isText = true
    this.#pieces = []
    return this.#takeDecided() + kept
  }

  #takeDecided(): string {
    const text = this.#decided
    this.#decided = ''
    return text
  }

  #step(char: string): void {
    this.#cursor.advance(char)
    this.#reading.next()
    for (let again = this.#cursor.takeAgain(); again !== undefined; again = this.#cursor.takeAgain()) {
      this.#cursor.advance(again)
      this.#reading.next()
    }
  }

  *#read(): Reading<void> {
    const cursor = this.#cursor
    // Kept back: line breaks before a call that is all of the answer would be all of its text.
    yield* skipSpace(cursor)
    while (!cursor.isAt(END)) {
      const fence = this.#fence
      if (fence !== undefined) {
        if (this.#mayCloseFence(fence, cursor.char)) yield* this.#readFenceClosing(fence)
      } else if (this.#mayBeginForm(cursor.char) && (yield* this.#readForm())) continue
      this.#giveOut(cursor.spend())
      yield
    }
    this.#giveOut(cursor.release())
  }

  #giveOut(text: string): void {
    for (const char of text) {
      if (char === '\n') {
        this.#atLineStart = true
        this.#isQuoted = false
      } else if (char !== ' ' && char !== '\t' && char !== '\r') {
        if (this.#atLineStart && char === '>') this.#isQuoted = true
        this.#atLineStart = false
      }
      this.#lastChar = char
    }
    if (this.#pieces.length === 0) {
      this.#decided += text
      this.#leadInChars += text.length
      return
    }
    this.#pieceChars += text.length
    const last = this.#pieces.at(-1)
    if (last === undefined || last.form !== undefined) this.#pieces.push({ text })
    else last.text += text
  }

  #mayBeginForm(char: string): boolean {
    if (this.#isQuoted) return false
    if (this.#atLineStart && (char === '`' || char === '~' || char === '{' || char === '[')) return true
    if (!this.#marks().mayBeginWith(char)) return false
    return this.#lastChar !== '`' && !(isWordChar(char) && isWordChar(this.#lastChar))
  }

  #marks(): Marks {
    return this.#atLineStart ? this.#marksOfLine : MARKS
  }

  /** Reads a form, or what turned out to be none. @returns false when nothing was read */
  *#readForm(): Reading<boolean> {
    const cursor = this.#cursor
    const marks = this.#marks()
    const beginning = yield* literal(cursor, marks.beginnings)
    const thinkingEnd = THINKING.get(beginning ?? '')
    if (thinkingEnd !== undefined) {
      yield* this.#readThinking(thinkingEnd)
      return true
    }
    const reader = marks.readerAfter(beginning)
    if (reader !== undefined) {
      this.#settle(yield* reader(cursor, this.#offered))
      return true
    }
    if (!this.#atLineStart) return false
    if (cursor.isAt('`') || cursor.isAt('~')) {
      yield* this.#readFence(cursor.char)
      return true
    }
    if (!this.#mayBeUnmarked() || (!cursor.isAt('{') && !cursor.isAt('['))) return false
    return this.#settle(this.#lastCalls(yield* readJsonValues(cursor, isCallKey)))
  }

  /** Reads on behind the tag that opens thinking, all of it text, until it is closed. */
  *#readThinking(closing: string): Reading<void> {
    const cursor = this.#cursor
    this.#giveOut(cursor.release())
    while (!cursor.isAt(END)) {
      if (cursor.isAt('<') && (yield* literal(cursor, [closing])) !== undefined) {
        return this.#giveOut(cursor.release())
      }
      this.#giveOut(cursor.spend())
      yield
    }
  }

  /** Keeps what was read as a form, or gives it out as text. @returns whether it was anything at all */
  #settle(form: PrintedForm | undefined): boolean {
    const text = this.#cursor.release()
    if (form === undefined) {
      this.#giveOut(text)
      return text !== ''
    }
    this.#pieces.push({ text, form })
    this.#pieceChars += text.length
    this.#atLineStart = true
    this.#lastChar = ''
    return true
  }

  #mayBeUnmarked(): boolean {
    return this.#pieces.length === 0 && this.#leadInChars <= MAX_LEAD_IN_CHARS
  }

  /** Unmarked calls are some only when nothing follows them. */
  #lastCalls(values: unknown[] | undefined): PrintedForm | undefined {
    const calls = values && this.#cursor.isAt(END) ? readCalls(values, this.#offered, true) : undefined
    return calls && { calls, byEnd: true }
  }

  /** Reads the line that may open a fenced block, and the block, if it is one of calls. */
  *#readFence(char: string): Reading<void> {
    const cursor = this.#cursor
    let chars = 0
    for (; cursor.isAt(char); chars += 1) yield
    if (chars < 3) return this.#giveOut(cursor.release())
    this.#fence = { char, chars, inInfo: true }
    const label = char === '`' ? yield* literal(cursor, FENCE_LABELS) : undefined
    while (label !== undefined && (cursor.isAt(' ') || cursor.isAt('\r'))) yield
    if (label === undefined || !cursor.isAt('\n')) return this.#giveOut(cursor.release())
    this.#fence.inInfo = false
    if (label !== 'json') {
      const block = yield* readFencedValues(cursor, chars)
      const calls = block && readCalls(block.values, this.#offered, false)
      if (block !== undefined) this.#fence = undefined
      this.#settle(block && calls && { calls, byEnd: block.byEnd })
      return
    }
    const block = this.#mayBeUnmarked() ? yield* readFencedValues(cursor, chars, isCallKey) : undefined
    if (block !== undefined) {
      this.#fence = undefined
      yield* skipSpace(cursor)
    }
    this.#settle(this.#lastCalls(block?.values))
  }

  #mayCloseFence(fence: Fence, char: string): boolean {
    if (!fence.inInfo) return this.#atLineStart && char === fence.char
    // An opening line has no backtick behind its fence: that was code within a line.
    if (char === '`' && fence.char === '`') this.#fence = undefined
    if (char === '\n') fence.inInfo = false
    return false
  }

  /** Reads what may close a block, all of it text, up to the character that tells. */
  *#readFenceClosing(fence: Fence): Reading<void> {
    const cursor = this.#cursor
    let chars = 0
    for (; cursor.isAt(fence.char); chars += 1) {
      this.#giveOut(cursor.spend())
      yield
    }
    while (cursor.isAt(' ') || cursor.isAt('\t') || cursor.isAt('\r')) {
      this.#giveOut(cursor.spend())
      yield
    }
    if (chars >= fence.chars && (cursor.isAt('\n') || cursor.isAt(END))) this.#fence = undefined
  }
}

const isWordChar = (char: string): boolean => /^\w$/.test(char)
