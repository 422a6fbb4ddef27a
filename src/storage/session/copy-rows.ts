import type { TraceEntry } from '../../core/run/writes.ts'
import type { TranscriptCall } from '../../core/transcript.ts'
import { byteLength, MAX_D1_TEXT_BYTES } from '../limits.ts'
import { type MessageSize, sizesFrom } from './message-sizes.ts'
import { loadMessages, type StoredMessage } from './messages.ts'
import { type SealedCalls, type SealedEntry, sealedParts, sealedTrace } from './sealed-copy.ts'
import type { Sql } from './sql.ts'
import { loadTurns, type StoredTurn, turnSizesFrom } from './turns.ts'

/**
 * A message for D1; of a sealed session the text is its envelope as JSON. Of what is omitted nothing was read but its
 * size, in bytes.
 */
export type CopiedMessage = Omit<StoredMessage, 'calls'> & {
  calls: TranscriptCall[] | SealedCalls
  omittedText?: number
  omittedCalls?: number
}
/** A turn for D1, likewise. */
export type CopiedTurn = Omit<StoredTurn, 'trace'> & {
  trace: (TraceEntry | SealedEntry)[]
  omittedTrace?: number
  omittedCalls?: number
}

/** A batch holds at most so many rows and so many bytes of text; one row at least. */
export type CopyRoom = { rows: number; bytes: number }

/** Rows for D1, oldest first. `to`: the last of them, where more are to follow; else null. */
export type CopyPage<Row> = { rows: Row[]; to: number | null }

/** A text that D1 gets a marker for (D27) is not read at all. */
const fits = (bytes: number): boolean => bytes <= MAX_D1_TEXT_BYTES
const carried = (bytes: number): number => (fits(bytes) ? bytes : 0)

/** Messages for D1 from `fromSeq` on. Those of a sealed session that wait for their envelope are left out. */
export const messagesToCopy = (
  sql: Sql,
  fromSeq: number,
  room: CopyRoom,
  sealed = false,
): CopyPage<CopiedMessage> =>
  page(
    sizesFrom(sql, fromSeq, room.rows + 1, sealed).map((size) => ({
      seq: size.seq,
      bytes: carried(size.textBytes) + carried(size.callBytes),
      read: () => readMessage(sql, size, sealed),
    })),
    room,
  )

function readMessage(sql: Sql, { seq, textBytes, callBytes }: MessageSize, sealed: boolean): CopiedMessage[] {
  if (sealed && textBytes === 0) return []
  const parts = { texts: fits(textBytes), calls: fits(callBytes) }
  return loadMessages(sql, seq, 1, parts).map((message) => ({
    ...(sealed ? withEnvelopes(sql, message, parts) : message),
    ...(parts.texts ? {} : { omittedText: textBytes }),
    ...(parts.calls ? {} : { omittedCalls: callBytes }),
  }))
}

function withEnvelopes(
  sql: Sql,
  message: StoredMessage,
  parts: { texts: boolean; calls: boolean },
): CopiedMessage {
  const { text, calls } = sealedParts(sql, message, parts)
  return {
    ...message,
    text: text === undefined ? '' : JSON.stringify(text),
    calls: calls.calls.length === 0 ? [] : calls,
  }
}

/** Turns for D1 from `fromSeq` on; what they came to is not copied, nor what of their traces waits for its envelope. */
export const turnsToCopy = (
  sql: Sql,
  fromSeq: number,
  room: CopyRoom,
  sealed = false,
): CopyPage<CopiedTurn> =>
  page(sealed ? sealedTurns(sql, fromSeq, room) : clearTurns(sql, fromSeq, room), room)

const clearTurns = (sql: Sql, fromSeq: number, room: CopyRoom): Weighed<CopiedTurn>[] =>
  turnSizesFrom(sql, fromSeq, room.rows + 1).map(({ seq, traceBytes, callBytes }) => ({
    seq,
    bytes: carried(traceBytes) + carried(callBytes),
    read: () =>
      loadTurns(sql, seq, 1, { traces: fits(traceBytes), calls: fits(callBytes), outcomes: false }).map(
        (turn) => ({
          ...turn,
          ...(fits(traceBytes) ? {} : { omittedTrace: traceBytes }),
          ...(fits(callBytes) ? {} : { omittedCalls: callBytes }),
        }),
      ),
  }))

/** What a trace weighs with its envelopes is known when it is read, so turns are read one by one, and no more than fit. */
function* sealedTurns(sql: Sql, fromSeq: number, room: CopyRoom): Generator<Weighed<CopiedTurn>> {
  for (const { seq, callBytes } of turnSizesFrom(sql, fromSeq, room.rows + 1)) {
    for (const turn of loadTurns(sql, seq, 1, { calls: fits(callBytes), outcomes: false })) {
      const trace = sealedTrace(sql, turn.trace)
      const traceBytes = byteLength(JSON.stringify(trace))
      const copied = {
        ...turn,
        trace: fits(traceBytes) ? trace : [],
        ...(fits(traceBytes) ? {} : { omittedTrace: traceBytes }),
        ...(fits(callBytes) ? {} : { omittedCalls: callBytes }),
      }
      yield { seq, bytes: carried(traceBytes) + carried(callBytes), read: () => [copied] }
    }
  }
}

/** A row that may be copied: what it weighs, before it is read. */
type Weighed<Row> = { seq: number; bytes: number; read: () => Row[] }

/** `weighed`: one row more than there is room for, where there are as many. A row may turn out to be none. */
function page<Row>(weighed: Iterable<Weighed<Row>>, room: CopyRoom): CopyPage<Row> {
  const rows: Row[] = []
  let bytes = 0
  let seen = 0
  let to: number | null = null
  for (const row of weighed) {
    bytes += row.bytes
    if (rows.length > 0 && (rows.length === room.rows || bytes > room.bytes)) return { rows, to }
    rows.push(...row.read())
    to = row.seq
    seen++
  }
  return { rows, to: seen > room.rows ? to : null }
}
