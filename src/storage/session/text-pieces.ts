import { bytesOf, numberOf, optionalText, type Sql, type SqlRow, type SqlValue } from './sql.ts'
import { chunkRefOf, markSql } from './texts.ts'

/**
 * Parts of long texts, read without the rest of them. Offsets are UTF-8 bytes. SQLite counts the characters of a text only
 * as far as the first NUL, so texts are taken as bytes here.
 */

/** Some bytes of a text; those of a character that is cut at the end of `bytes` are not whole. */
export type TextPiece = { bytes: Uint8Array; totalBytes: number }

/** A text column of one row. `from`: what stands behind FROM, with the condition that names the row. */
export type TextPlace = { column: string; from: string; values: readonly SqlValue[] }

/** A mark of a BOM is a character like any other. */
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })

/** At most `length` bytes from `offset` on; null where there is no such row, or no text in it. */
export function readPiece(
  sql: Sql,
  { column, from, values }: TextPlace,
  offset: number,
  length: number,
): TextPiece | null {
  const row = sql.rows(`SELECT ${pieceSql(column, 'piece', length, offset)} FROM ${from}`, ...values)[0]
  return row === undefined || row.piece_bytes === null ? null : pieceOf(sql, row, 'piece', offset, length)
}

/** SQL for the columns that `pieceOf` reads. `length` and `offset` are numbers of ours, never of a request as it came. */
export const pieceSql = (column: string, name: string, length: number, offset = 0): string =>
  `octet_length(${column}) AS ${name}_bytes, ${markSql(column)} AS ${name}_mark,
   substr(CAST(${column} AS BLOB), ${Math.trunc(offset) + 1}, ${Math.trunc(length)}) AS ${name}`

/** The piece in a row that was asked for by `pieceSql`. The column is not null. */
export function pieceOf(sql: Sql, row: SqlRow, name: string, offset: number, length: number): TextPiece {
  const mark = optionalText(row, `${name}_mark`)
  const ref = mark === null ? null : chunkRefOf(mark)
  return ref === null
    ? { bytes: pieceBytes(row, name), totalBytes: numberOf(row, `${name}_bytes`) }
    : chunkedPiece(sql, ref, offset, length)
}

/** The whole characters of a piece that begins with one. */
export const pieceText = ({ bytes }: TextPiece): string => decoder.decode(bytes.subarray(0, wholeEnd(bytes)))

/** Whether a piece begins inside a character. */
export const isInsideChar = ({ bytes }: TextPiece): boolean => isContinuation(bytes[0] ?? 0)

function chunkedPiece(sql: Sql, ref: string, offset: number, length: number): TextPiece {
  const parts: Uint8Array[] = []
  let begin = 0
  for (const row of sql.rows(
    'SELECT n, octet_length(body) AS bytes FROM chunks WHERE ref = ? ORDER BY n',
    ref,
  )) {
    const size = numberOf(row, 'bytes')
    const from = Math.max(offset, begin)
    const to = Math.min(offset + length, begin + size)
    if (from < to) {
      const found = sql.rows(
        'SELECT substr(CAST(body AS BLOB), ?, ?) AS part FROM chunks WHERE ref = ? AND n = ?',
        from - begin + 1,
        to - from,
        ref,
        numberOf(row, 'n'),
      )[0]
      if (found) parts.push(pieceBytes(found, 'part'))
    }
    begin += size
  }
  return { bytes: joined(parts), totalBytes: begin }
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

/** SQLite says NULL for a piece without bytes. */
const pieceBytes = (row: SqlRow, column: string): Uint8Array =>
  row[column] === null ? new Uint8Array(0) : bytesOf(row, column)

const isContinuation = (byte: number): boolean => byte >= 0x80 && byte < 0xc0

/** Where the last whole character ends. */
function wholeEnd(bytes: Uint8Array): number {
  let start = bytes.length - 1
  while (start >= 0 && isContinuation(bytes[start] ?? 0)) start--
  const lead = bytes[start]
  if (lead === undefined) return bytes.length
  const size = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
  return start + size <= bytes.length ? bytes.length : start
}

/** The text of a place whole. Only for texts that are known to be short enough to be held. */
export function readWhole(sql: Sql, place: TextPlace): string | null {
  const first = readPiece(sql, place, 0, 0)
  if (first === null) return null
  const all = readPiece(sql, place, 0, first.totalBytes)
  return all === null ? null : pieceText(all)
}
