import { MAX_D1_TEXT_BYTES } from '../limits.ts'
import { sizesFrom } from './message-sizes.ts'
import { loadMessages, type StoredMessage } from './messages.ts'
import type { Sql } from './sql.ts'
import { loadTurns, type StoredTurn, turnSizesFrom } from './turns.ts'

/** A message for D1. Of what is omitted nothing was read but its size, in bytes. */
export type CopiedMessage = StoredMessage & { omittedText?: number; omittedCalls?: number }
/** A turn for D1, likewise. */
export type CopiedTurn = StoredTurn & { omittedTrace?: number; omittedCalls?: number }

/** A batch holds at most so many rows and so many bytes of text; one row at least. */
export type CopyRoom = { rows: number; bytes: number }

/** Rows for D1, oldest first. `to`: the last of them, where more are to follow; else null. */
export type CopyPage<Row> = { rows: Row[]; to: number | null }

/** A text that D1 gets a marker for (D27) is not read at all. */
const fits = (bytes: number): boolean => bytes <= MAX_D1_TEXT_BYTES
const carried = (bytes: number): number => (fits(bytes) ? bytes : 0)

/** Messages for D1 from `fromSeq` on. */
export function messagesToCopy(sql: Sql, fromSeq: number, room: CopyRoom): CopyPage<CopiedMessage> {
  const sizes = sizesFrom(sql, fromSeq, room.rows + 1)
  return page(
    sizes,
    room,
    ({ textBytes, callBytes }) => carried(textBytes) + carried(callBytes),
    ({ seq, textBytes, callBytes }) =>
      loadMessages(sql, seq, 1, { texts: fits(textBytes), calls: fits(callBytes) }).map((message) => ({
        ...message,
        ...(fits(textBytes) ? {} : { omittedText: textBytes }),
        ...(fits(callBytes) ? {} : { omittedCalls: callBytes }),
      })),
  )
}

/** Turns for D1 from `fromSeq` on; what they came to is not copied. */
export function turnsToCopy(sql: Sql, fromSeq: number, room: CopyRoom): CopyPage<CopiedTurn> {
  const sizes = turnSizesFrom(sql, fromSeq, room.rows + 1)
  return page(
    sizes,
    room,
    ({ traceBytes, callBytes }) => carried(traceBytes) + carried(callBytes),
    ({ seq, traceBytes, callBytes }) =>
      loadTurns(sql, seq, 1, { traces: fits(traceBytes), calls: fits(callBytes), outcomes: false }).map(
        (turn) => ({
          ...turn,
          ...(fits(traceBytes) ? {} : { omittedTrace: traceBytes }),
          ...(fits(callBytes) ? {} : { omittedCalls: callBytes }),
        }),
      ),
  )
}

function page<Size extends { seq: number }, Row>(
  sizes: readonly Size[],
  room: CopyRoom,
  weigh: (size: Size) => number,
  read: (size: Size) => Row[],
): CopyPage<Row> {
  const rows: Row[] = []
  let bytes = 0
  let to: number | null = null
  for (const size of sizes) {
    bytes += weigh(size)
    if (rows.length > 0 && (rows.length === room.rows || bytes > room.bytes)) return { rows, to }
    rows.push(...read(size))
    to = size.seq
  }
  return { rows, to: null }
}
