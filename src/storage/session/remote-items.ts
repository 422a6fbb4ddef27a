import type { Position } from '../../core/remote/positions.ts'
import type { AnswerClock } from '../../core/run/writes.ts'
import { numberOf, optionalNumber, optionalText, type Sql, type SqlRow, textOf } from './sql.ts'
import { pieceOf, pieceSql, pieceText, readPiece, type TextPiece, type TextPlace } from './text-pieces.ts'

/** The beginning of a stored text, and the UTF-8 bytes of the whole. */
export type TextHead = { text: string; totalBytes: number }

type Item = Position & { runId: string; createdAtMs: number; content: TextHead }
export type MessageItem = Item & { k: 'message'; role: 'user' | 'assistant'; clock: AnswerClock | null }
export type CallItem = Item & {
  k: 'call'
  callId: string
  name: string
  status: 'pending' | 'completed' | 'failed'
  /** The beginning of its arguments, as JSON. */
  arguments: string
  completedAtMs: number | null
}
/** One item of the transcript as devices see it: a message, or one of the calls that it made. Times are epoch milliseconds. */
export type StoredItem = MessageItem | CallItem

/** How much of each text is read, in UTF-8 bytes; a character that is cut is left out. */
export type HeadSizes = { contentBytes: number; argumentBytes: number }

/** Behind everything that is. */
const END: Position = { seq: Number.MAX_SAFE_INTEGER, part: 0 }

/**
 * At most `limit` items before a place, the oldest of them first; null: the newest. Costs what they are, whatever is stored.
 * An answer of calls alone says nothing, no event tells of it, and it is none; of a sealed session no text is stored.
 */
export function itemsBefore(
  sql: Sql,
  before: Position | null,
  limit: number,
  sizes: HeadSizes,
  isSealed = false,
): StoredItem[] {
  const { seq, part } = before ?? END
  const messages = sql
    .rows(
      `SELECT seq, run_id, role, created_at, clock, ${pieceSql('content', 'content', sizes.contentBytes)},
         content = '' AND EXISTS (SELECT 1 FROM tool_calls WHERE message_seq = seq) AS is_silent
       FROM messages WHERE seq < ? ORDER BY seq DESC LIMIT ?`,
      part > 0 ? seq + 1 : seq,
      // One may be left out, and its calls not be among those that are asked for.
      limit + 1,
    )
    .filter((row) => isSealed || numberOf(row, 'is_silent') === 0)
    .map((row) => toMessage(sql, row, sizes))
  const calls = sql
    .rows(
      `SELECT message_seq, ordinal, tool_calls.id AS call_id, name, status, completed_at,
         tool_calls.created_at AS created_at, run_id,
         ${pieceSql('arguments', 'arguments', sizes.argumentBytes)},
         ${pieceSql("coalesce(result, '')", 'content', sizes.contentBytes)}
       FROM tool_calls CROSS JOIN messages ON messages.seq = message_seq
       WHERE (message_seq, ordinal) < (?, ?) ORDER BY message_seq DESC, ordinal DESC LIMIT ?`,
      seq,
      Math.max(0, part - 1),
      limit,
    )
    .map((row) => toCall(sql, row, sizes))
  return [...messages, ...calls].sort((a, b) => a.seq - b.seq || a.part - b.part).slice(-limit)
}

/** Whether there is an item before this one. */
export const hasItemsBefore = (sql: Sql, { seq, part }: Position): boolean =>
  part > 0 || sql.rows('SELECT 1 FROM messages WHERE seq < ? LIMIT 1', seq).length > 0

/** Whether a cursor can name this place: an item, or the place of the next message. */
export function isPlace(sql: Sql, { seq, part }: Position): boolean {
  if (part > 0)
    return (
      sql.rows('SELECT 1 FROM tool_calls WHERE message_seq = ? AND ordinal = ?', seq, part - 1).length > 0
    )
  return seq === nextSeq(sql) || sql.rows('SELECT 1 FROM messages WHERE seq = ?', seq).length > 0
}

/** The place of the next message. */
export function nextSeq(sql: Sql): number {
  const row = sql.rows('SELECT coalesce(max(seq), 0) + 1 AS seq FROM messages')[0]
  return row ? numberOf(row, 'seq') : 1
}

/** Where the text of an item stands: of a message its words, of a call its result. */
export const contentPlace = ({ seq, part }: Position): TextPlace =>
  part === 0
    ? { column: 'content', from: 'messages WHERE seq = ?', values: [seq] }
    : {
        column: "coalesce(result, '')",
        from: 'tool_calls WHERE message_seq = ? AND ordinal = ?',
        values: [seq, part - 1],
      }

/** Where the arguments of a call stand, as JSON; of a message, nowhere. */
export const argumentsPlace = ({ seq, part }: Position): TextPlace => ({
  column: 'arguments',
  from: 'tool_calls WHERE message_seq = ? AND ordinal = ?',
  values: [seq, part - 1],
})

/** The same, by the id of the call. */
export const callArgumentsPlace = (callId: string): TextPlace => ({
  column: 'arguments',
  from: 'tool_calls WHERE id = ?',
  values: [callId],
})

export const planPlace = (planId: string): TextPlace => ({
  column: 'content',
  from: 'plans WHERE id = ?',
  values: [planId],
})

/** The beginning of a text; null where there is none. */
export function readHead(sql: Sql, place: TextPlace, maxBytes: number): TextHead | null {
  const piece = readPiece(sql, place, 0, maxBytes)
  return piece === null ? null : headOf(piece)
}

/** The newest message that a model said; null when there is none. */
export function newestAnswer(sql: Sql): { seq: number; id: string; runId: string } | null {
  const row = sql.rows(
    `SELECT seq, id, run_id FROM messages WHERE role = 'assistant' ORDER BY seq DESC LIMIT 1`,
  )[0]
  return row ? { seq: numberOf(row, 'seq'), id: textOf(row, 'id'), runId: textOf(row, 'run_id') } : null
}

/** The calls of one message, in order; at most `limit`, and how many there are. Their results are not read. */
export function callsOf(
  sql: Sql,
  seq: number,
  limit: number,
  argumentBytes: number,
): { calls: CallHead[]; total: number } {
  const calls = sql
    .rows(
      `SELECT id AS call_id, name, status, ${pieceSql('arguments', 'arguments', argumentBytes)}
       FROM tool_calls WHERE message_seq = ? ORDER BY ordinal LIMIT ?`,
      seq,
      limit,
    )
    .map((row) => callHead(sql, row, argumentBytes))
  const row = sql.rows('SELECT count(*) AS n FROM tool_calls WHERE message_seq = ?', seq)[0]
  return { calls, total: row ? numberOf(row, 'n') : 0 }
}

function toMessage(sql: Sql, row: SqlRow, { contentBytes }: HeadSizes): MessageItem {
  const clock = optionalText(row, 'clock')
  return {
    k: 'message',
    seq: numberOf(row, 'seq'),
    part: 0,
    runId: textOf(row, 'run_id'),
    role: textOf(row, 'role') === 'assistant' ? 'assistant' : 'user',
    createdAtMs: numberOf(row, 'created_at'),
    content: headOf(pieceOf(sql, row, 'content', 0, contentBytes)),
    clock: clock === null ? null : JSON.parse(clock),
  }
}

const toCall = (sql: Sql, row: SqlRow, { contentBytes, argumentBytes }: HeadSizes): CallItem => ({
  k: 'call',
  seq: numberOf(row, 'message_seq'),
  part: numberOf(row, 'ordinal') + 1,
  runId: textOf(row, 'run_id'),
  createdAtMs: numberOf(row, 'created_at'),
  completedAtMs: optionalNumber(row, 'completed_at'),
  content: headOf(pieceOf(sql, row, 'content', 0, contentBytes)),
  ...callHead(sql, row, argumentBytes),
})

/** A call without its result. */
type CallHead = Pick<CallItem, 'callId' | 'name' | 'status' | 'arguments'>

function callHead(sql: Sql, row: SqlRow, argumentBytes: number): CallHead {
  const status = textOf(row, 'status')
  return {
    callId: textOf(row, 'call_id'),
    name: textOf(row, 'name'),
    status: status === 'pending' || status === 'failed' ? status : 'completed',
    arguments: pieceText(pieceOf(sql, row, 'arguments', 0, argumentBytes)),
  }
}

const headOf = (piece: TextPiece): TextHead => ({ text: pieceText(piece), totalBytes: piece.totalBytes })
