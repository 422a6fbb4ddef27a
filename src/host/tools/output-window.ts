/** What is kept of each end of an output: the beginning says what ran, the end how it went. */
export const WINDOW_HALF_BYTES = 32 * 1024

/** Keeps the first and the last bytes of an output of any length, in bounded memory. */
export class OutputWindow {
  readonly #half: number
  #head: Buffer = Buffer.alloc(0)
  #tail: Buffer[] = []
  #tailBytes = 0
  #totalBytes = 0

  constructor(halfBytes: number = WINDOW_HALF_BYTES) {
    this.#half = halfBytes
  }

  get totalBytes(): number {
    return this.#totalBytes
  }

  add(chunk: Buffer): void {
    this.#totalBytes += chunk.length
    let rest = chunk
    if (this.#head.length < this.#half) {
      const taken = rest.subarray(0, this.#half - this.#head.length)
      this.#head = Buffer.concat([this.#head, taken])
      rest = rest.subarray(taken.length)
    }
    if (rest.length === 0) return
    this.#tail.push(rest)
    this.#tailBytes += rest.length
    // Joined only now and then, so that many small chunks stay cheap.
    if (this.#tailBytes > 4 * this.#half) this.#joinTail()
  }

  /** The text, with a line in the middle that counts what was left out. Bytes that are not UTF-8 become U+FFFD. */
  text(): string {
    this.#joinTail()
    const tail = this.#tail[0] ?? Buffer.alloc(0)
    const leftOut = this.#totalBytes - this.#head.length - tail.length
    if (leftOut <= 0) return Buffer.concat([this.#head, tail]).toString('utf8')
    const headEnd = lastLineEnd(this.#head)
    const tailStart = firstLineStart(tail)
    const omitted = this.#totalBytes - headEnd - (tail.length - tailStart)
    return `${this.#head.toString('utf8', 0, headEnd)}\n[… ${omitted} bytes left out …]\n${tail.toString('utf8', tailStart)}`
  }

  #joinTail(): void {
    const joined = Buffer.concat(this.#tail)
    const kept = joined.length > this.#half ? joined.subarray(joined.length - this.#half) : joined
    // A copy, so that the large chunk behind a small view can be freed.
    this.#tail = kept.length > 0 ? [Buffer.from(kept)] : []
    this.#tailBytes = kept.length
  }
}

const NEWLINE = 10

/** Whole lines where there is a break near, else whole characters. */
function lastLineEnd(head: Buffer): number {
  const newline = head.lastIndexOf(NEWLINE)
  if (newline >= head.length / 2) return newline
  let lead = head.length - 1
  while (lead > 0 && isContinuation(head[lead])) lead--
  return lead + characterBytes(head[lead]) <= head.length ? head.length : lead
}

const isContinuation = (byte: number | undefined): boolean => ((byte ?? 0) & 0xc0) === 0x80

/** How many bytes a UTF-8 character has, by its first one. */
function characterBytes(lead = 0): number {
  if (lead < 0xc0) return 1
  if (lead < 0xe0) return 2
  return lead < 0xf0 ? 3 : 4
}

function firstLineStart(tail: Buffer): number {
  const newline = tail.indexOf(NEWLINE)
  if (newline >= 0 && newline < tail.length / 2) return newline + 1
  let start = 0
  while (start < tail.length && isContinuation(tail[start])) start++
  return start
}
