import type { NewCall, Write } from '../../core/run/writes.ts'
import type { TranscriptCall, TranscriptMessage } from '../../core/transcript.ts'
import { numberOf, optionalText, type Sql, type SqlRow, textOf } from './sql.ts'
import { loadText, storeText } from './texts.ts'

/** A message as it is kept. */
export type StoredMessage = TranscriptMessage & { id: string; createdAtMs: number; rev: number }

type MessageWrite = Extract<Write, { w: 'user_message' } | { w: 'assistant_message' }>

export function insertMessage(sql: Sql, seq: number, write: MessageWrite, nowMs: number, rev: number): void {
  const assistant = write.w === 'assistant_message' ? write : null
  sql.rows(
    `INSERT INTO messages (seq, id, run_id, role, provider, model, content, interrupted, local_only, created_at,
       rev, seen, clock)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    seq,
    write.id,
    write.runId,
    assistant ? 'assistant' : 'user',
    assistant?.provider ?? null,
    assistant?.model ?? null,
    storeText(sql, `message:${write.id}`, write.text),
    assistant?.interrupted ? 1 : 0,
    write.localOnly ? 1 : 0,
    nowMs,
    rev,
    assistant?.seen === undefined ? null : storeText(sql, `seen:${write.id}`, JSON.stringify(assistant.seen)),
    assistant?.clock === undefined ? null : JSON.stringify(assistant.clock),
  )
  for (const [ordinal, call] of (assistant?.calls ?? []).entries()) insertCall(sql, seq, ordinal, call, nowMs)
}

function insertCall(sql: Sql, messageSeq: number, ordinal: number, call: NewCall, nowMs: number): void {
  const answer = call.answer
  sql.rows(
    `INSERT INTO tool_calls (message_seq, ordinal, id, provider_call_id, name, arguments, opaque, status, result,
       is_error, diff_status, created_at, completed_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    messageSeq,
    ordinal,
    call.id,
    call.providerCallId ?? null,
    call.name,
    storeText(sql, `arguments:${call.id}`, JSON.stringify(call.arguments)),
    call.opaque === undefined ? null : storeText(sql, `opaque:${call.id}`, JSON.stringify(call.opaque)),
    answer === undefined ? 'pending' : answer.isError ? 'failed' : 'completed',
    answer === undefined ? null : storeText(sql, `result:${call.id}`, answer.result),
    answer?.isError ? 1 : 0,
    call.recordsDiff ? 'proposed' : null,
    nowMs,
    answer === undefined ? null : nowMs,
  )
}

/** Records a result; a later one for the same call replaces it. Returns the message whose copy is now stale. */
export function settleCall(
  sql: Sql,
  { callId, isError, content }: Extract<Write, { w: 'settle_call' }>,
  nowMs: number,
): number | null {
  const row = sql.rows('SELECT message_seq FROM tool_calls WHERE id = ?', callId)[0]
  if (!row) return null
  sql.rows(
    `UPDATE tool_calls SET status = ?, result = ?, is_error = ?, completed_at = ?,
       diff_status = CASE WHEN diff_status IS NULL THEN NULL ELSE ? END WHERE id = ?`,
    isError ? 'failed' : 'completed',
    storeText(sql, `result:${callId}`, content),
    isError ? 1 : 0,
    nowMs,
    isError ? 'rejected' : 'applied',
    callId,
  )
  return numberOf(row, 'message_seq')
}

/** Which parts of messages are read; what is not is empty. */
export type MessageParts = {
  texts?: boolean
  calls?: boolean
  /** Reads a result in place of the whole of it. */
  readResult?: (stored: string, callId: string) => string
}

/** At most `limit` messages from `fromSeq` on, oldest first, with their calls. */
export function loadMessages(
  sql: Sql,
  fromSeq: number,
  limit: number,
  {
    texts = true,
    calls: withCalls = true,
    readResult = (stored) => loadText(sql, stored),
  }: MessageParts = {},
): StoredMessage[] {
  const calls = new Map<number, TranscriptCall[]>()
  const rows = sql.rows('SELECT * FROM messages WHERE seq >= ? ORDER BY seq LIMIT ?', fromSeq, limit)
  const last = rows.at(-1)
  const callRows = withCalls
    ? sql.rows(
        'SELECT * FROM tool_calls WHERE message_seq >= ? AND message_seq <= ? ORDER BY message_seq, ordinal',
        fromSeq,
        last === undefined ? 0 : numberOf(last, 'seq'),
      )
    : []
  for (const row of callRows) {
    const seq = numberOf(row, 'message_seq')
    const list = calls.get(seq) ?? []
    list.push(toCall(sql, row, readResult))
    calls.set(seq, list)
  }
  return rows.map((row) => {
    const seq = numberOf(row, 'seq')
    const provider = optionalText(row, 'provider')
    const model = optionalText(row, 'model')
    const seen = optionalText(row, 'seen')
    return {
      seq,
      id: textOf(row, 'id'),
      runId: textOf(row, 'run_id'),
      role: textOf(row, 'role') === 'assistant' ? 'assistant' : 'user',
      text: texts ? loadText(sql, textOf(row, 'content')) : '',
      ...(provider === null ? {} : { provider }),
      ...(model === null ? {} : { model }),
      interrupted: numberOf(row, 'interrupted') === 1,
      ...(numberOf(row, 'local_only') === 1 ? { localOnly: true as const } : {}),
      ...(seen === null ? {} : { seen: JSON.parse(loadText(sql, seen)) }),
      calls: calls.get(seq) ?? [],
      createdAtMs: numberOf(row, 'created_at'),
      rev: numberOf(row, 'rev'),
    }
  })
}

function toCall(sql: Sql, row: SqlRow, readResult: NonNullable<MessageParts['readResult']>): TranscriptCall {
  const id = textOf(row, 'id')
  const providerCallId = optionalText(row, 'provider_call_id')
  const result = optionalText(row, 'result')
  const opaque = optionalText(row, 'opaque')
  return {
    id,
    ...(providerCallId === null ? {} : { providerCallId }),
    name: textOf(row, 'name'),
    arguments: JSON.parse(loadText(sql, textOf(row, 'arguments'))),
    ...(result === null ? {} : { result: readResult(result, id) }),
    isError: numberOf(row, 'is_error') === 1,
    changesFiles: optionalText(row, 'diff_status') !== null,
    ...(opaque === null ? {} : { opaque: JSON.parse(loadText(sql, opaque)) }),
  }
}

/** Marks a message as changed, for the copy. */
export function touchMessage(sql: Sql, seq: number, rev: number): void {
  sql.rows('UPDATE messages SET rev = ? WHERE seq = ?', rev, seq)
}

/** What was said in a run so far is for local models from now on. Returns the messages that were not before. */
export const keepRunLocal = (sql: Sql, runId: string, rev: number): number[] =>
  sql
    .rows(
      'UPDATE messages SET local_only = 1, rev = ? WHERE run_id = ? AND local_only = 0 RETURNING seq',
      rev,
      runId,
    )
    .map((row) => numberOf(row, 'seq'))
