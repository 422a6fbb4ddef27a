import { PassThrough } from 'node:stream'

/** What a terminal shows of what is written to it, as far as a line editor uses one. */
export class Screen extends PassThrough {
  readonly isTTY = true
  readonly columns: number
  readonly rows: number
  #lines: string[][] = [[]]
  #row = 0
  #column = 0

  constructor(columns: number, rows: number) {
    super()
    this.columns = columns
    this.rows = rows
    this.setEncoding('utf8')
    this.on('data', (text: string) => this.#take(text))
  }

  /** Everything from the first line on, what has scrolled away included; trailing blanks are not seen. */
  get text(): string[] {
    return this.#lines.map((line) =>
      Array.from(line, (char) => char ?? ' ')
        .join('')
        .trimEnd(),
    )
  }

  /** Where the next character goes, counted like `text`. */
  get cursor(): { row: number; column: number } {
    return { row: this.#row, column: this.#column }
  }

  /** The uppermost line that can still be reached. */
  get #top(): number {
    return Math.max(0, this.#lines.length - this.rows)
  }

  #take(text: string): void {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what a terminal is told
    for (const [, count, order, plain] of text.matchAll(/\u001b\[(\d*)([A-Za-z])|([\s\S])/g)) {
      if (order !== undefined) this.#obey(order, count === '' ? undefined : Number(count))
      else if (plain !== undefined) this.#put(plain)
    }
  }

  #obey(order: string, count: number | undefined): void {
    const steps = count ?? 1
    if (order === 'A') this.#row = Math.max(this.#top, this.#row - steps)
    else if (order === 'B') this.#down(steps)
    else if (order === 'C') this.#column = Math.min(this.columns - 1, this.#column + steps)
    else if (order === 'D') this.#column = Math.max(0, this.#column - steps)
    else if (order === 'G') this.#column = steps - 1
    else if (order === 'K') this.#line().length = Math.min(this.#line().length, this.#column)
    else if (order === 'J') {
      this.#line().length = Math.min(this.#line().length, this.#column)
      for (const line of this.#lines.slice(this.#row + 1)) line.length = 0
    } else throw new Error(`this screen does not know the order ${order}`)
  }

  #put(char: string): void {
    if (char === '\r') this.#column = 0
    else if (char === '\n') {
      this.#column = 0
      this.#down(1)
    } else {
      if (this.#column === this.columns) this.#put('\n')
      this.#line()[this.#column++] = char
    }
  }

  #down(steps: number): void {
    this.#row += steps
    while (this.#lines.length <= this.#row) this.#lines.push([])
  }

  #line(): string[] {
    const line = this.#lines[this.#row]
    if (!line) throw new Error('invariant broken: the cursor is outside the screen')
    return line
  }
}
