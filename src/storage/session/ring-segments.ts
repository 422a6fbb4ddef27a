import { byteLength } from '../limits.ts'
import { numberOf, type Sql, textOf } from './sql.ts'

/** A row of the ring is not appended to beyond this size; rows are evicted whole (D33). */
const MAX_SEGMENT_BYTES = 32 * 1024
/** What the ring keeps of a session's latest events (D33). */
export const RING_BYTES = 4 * 1024 * 1024

/** One event with its number. `json` has no line break in it. */
export type RingLine = { seq: number; json: string }

/** How a line stands in its segment: the number, a blank, the event. */
const toText = ({ seq, json }: RingLine): string => `${seq} ${json}`

function toLine(text: string): RingLine {
  const blank = text.indexOf(' ')
  return { seq: Number(text.slice(0, blank)), json: text.slice(blank + 1) }
}

export type RingExtent = { firstSeq: number; lastSeq: number; bytes: number } | null

/** What the ring holds now; null when it is empty. */
export function ringExtent(sql: Sql): RingExtent {
  const row = sql.rows(
    'SELECT min(first_seq) AS first, max(last_seq) AS last, sum(bytes) AS bytes FROM ring_segments',
  )[0]
  if (!row || row.first === null) return null
  return { firstSeq: numberOf(row, 'first'), lastSeq: numberOf(row, 'last'), bytes: numberOf(row, 'bytes') }
}

/** Appends lines in order: to the newest row while it has room, else as a new row; then evicts the oldest. */
export function appendToRing(sql: Sql, lines: readonly RingLine[]): void {
  const first = lines[0]
  const last = lines.at(-1)
  if (!first || !last) return
  const body = lines.map((line) => `${toText(line)}\n`).join('')
  const bytes = byteLength(body)
  const newest = sql.rows('SELECT first_seq, bytes FROM ring_segments ORDER BY first_seq DESC LIMIT 1')[0]
  if (newest && numberOf(newest, 'bytes') + bytes <= MAX_SEGMENT_BYTES) {
    sql.rows(
      'UPDATE ring_segments SET body = body || ?, last_seq = ?, bytes = bytes + ? WHERE first_seq = ?',
      body,
      last.seq,
      bytes,
      numberOf(newest, 'first_seq'),
    )
    return
  }
  sql.rows(
    'INSERT INTO ring_segments (first_seq, last_seq, bytes, body) VALUES (?, ?, ?, ?)',
    first.seq,
    last.seq,
    bytes,
    body,
  )
  evict(sql)
}

/** Drops the oldest rows until the rest fits; the newest row always stays. */
function evict(sql: Sql): void {
  let left = ringExtent(sql)?.bytes ?? 0
  while (left > RING_BYTES) {
    const oldest = sql.rows('SELECT first_seq, bytes FROM ring_segments ORDER BY first_seq LIMIT 2')
    const [row, second] = oldest
    if (!row || !second) return
    sql.rows('DELETE FROM ring_segments WHERE first_seq = ?', numberOf(row, 'first_seq'))
    left -= numberOf(row, 'bytes')
  }
}

/** The stored lines after a sequence, oldest first. */
export function readRing(sql: Sql, afterSeq: number): RingLine[] {
  const rows = sql.rows('SELECT body FROM ring_segments WHERE last_seq > ? ORDER BY first_seq', afterSeq)
  return rows.flatMap((row) =>
    textOf(row, 'body')
      .split('\n')
      .filter(Boolean)
      .map(toLine)
      .filter(({ seq }) => seq > afterSeq),
  )
}

/** Where a ring keeps its lines. */
export type RingStore = {
  append(lines: readonly RingLine[]): void
  extent(): RingExtent
  /** The lines after a sequence, oldest first. */
  read(afterSeq: number): RingLine[]
  /** Forgets what was appended behind a sequence by a step that was not stored; a transaction does so by itself. */
  truncate(last: number): void
}

export const storedRing = (sql: Sql): RingStore => ({
  append: (lines) => appendToRing(sql, lines),
  extent: () => ringExtent(sql),
  read: (afterSeq) => readRing(sql, afterSeq),
  truncate: () => {},
})

/** The ring of a sealed session is in memory alone: its events tell what was said (D47). */
export class HeldRing implements RingStore {
  #lines: (RingLine & { bytes: number })[] = []
  #bytes = 0

  append(lines: readonly RingLine[]): void {
    for (const line of lines) {
      const bytes = byteLength(line.json)
      this.#lines.push({ ...line, bytes })
      this.#bytes += bytes
    }
    let gone = 0
    while (this.#bytes > RING_BYTES && gone < this.#lines.length - 1) {
      this.#bytes -= this.#lines[gone]?.bytes ?? 0
      gone++
    }
    if (gone > 0) this.#lines = this.#lines.slice(gone)
  }

  extent(): RingExtent {
    const first = this.#lines[0]
    const last = this.#lines.at(-1)
    return first && last ? { firstSeq: first.seq, lastSeq: last.seq, bytes: this.#bytes } : null
  }

  truncate(last: number): void {
    const gone = this.#lines.filter(({ seq }) => seq > last)
    for (const { bytes } of gone) this.#bytes -= bytes
    this.#lines = this.#lines.filter(({ seq }) => seq <= last)
  }

  read(afterSeq: number): RingLine[] {
    return this.#lines.filter(({ seq }) => seq > afterSeq)
  }
}
