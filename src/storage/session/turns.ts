import type { CallRecord, TraceEntry } from '../../core/run/writes.ts'
import type { TurnResponse } from '../../protocol/execution/turn.ts'
import { numberOf, optionalNumber, optionalText, type Sql, type SqlRow, textOf } from './sql.ts'
import { loadText, storeText } from './texts.ts'

export type TurnStatus = 'running' | 'done' | 'failed' | 'superseded' | 'interrupted'

/** A served turn as it is kept. */
export type StoredTurn = {
  turnId: string
  seq: number
  runId: string
  turn: number
  status: TurnStatus
  trace: TraceEntry[]
  calls: CallRecord[]
  outcome: TurnResponse | null
  startedAtMs: number
  endedAtMs: number | null
  rev: number
}

export function saveTurn(sql: Sql, turn: StoredTurn): void {
  sql.rows(
    `INSERT INTO turns
       (turn_id, seq, run_id, turn, status, trace, calls, outcome, started_at, ended_at, rev)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (seq) DO UPDATE SET status = excluded.status, trace = excluded.trace, calls = excluded.calls,
       outcome = excluded.outcome, ended_at = excluded.ended_at, rev = excluded.rev`,
    turn.turnId,
    turn.seq,
    turn.runId,
    turn.turn,
    turn.status,
    storeText(sql, `trace:${turn.turnId}`, JSON.stringify(turn.trace)),
    storeText(sql, `calls:${turn.turnId}`, JSON.stringify(turn.calls)),
    turn.outcome === null ? null : storeText(sql, `outcome:${turn.turnId}`, JSON.stringify(turn.outcome)),
    turn.startedAtMs,
    turn.endedAtMs,
    turn.rev,
  )
}

export function loadTurn(sql: Sql, turnId: string): StoredTurn | null {
  const row = sql.rows('SELECT * FROM turns WHERE turn_id = ?', turnId)[0]
  return row ? toTurn(sql, row) : null
}

/** At most `limit` turns from a sequence on, oldest first. */
export function loadTurns(sql: Sql, fromSeq: number, limit: number): StoredTurn[] {
  return sql
    .rows('SELECT * FROM turns WHERE seq >= ? ORDER BY seq LIMIT ?', fromSeq, limit)
    .map((row) => toTurn(sql, row))
}

/** Turns held in memory at once while all of a session are gone through. */
const TURNS_PER_READ = 100

/** Every turn of the session, oldest first; what one asks for more than once is read again. */
export function* eachTurn(sql: Sql): Generator<StoredTurn, void> {
  for (let from = 1; ; ) {
    const turns = loadTurns(sql, from, TURNS_PER_READ)
    yield* turns
    const last = turns.at(-1)
    if (last === undefined || turns.length < TURNS_PER_READ) return
    from = last.seq + 1
  }
}

/** Every model call of the session, oldest first. */
export function* eachCall(sql: Sql): Generator<CallRecord, void> {
  for (const { calls } of eachTurn(sql)) yield* calls
}

function toTurn(sql: Sql, row: SqlRow): StoredTurn {
  const outcome = optionalText(row, 'outcome')
  return {
    turnId: textOf(row, 'turn_id'),
    seq: numberOf(row, 'seq'),
    runId: textOf(row, 'run_id'),
    turn: numberOf(row, 'turn'),
    status: textOf(row, 'status') as TurnStatus,
    trace: JSON.parse(loadText(sql, textOf(row, 'trace'))),
    calls: JSON.parse(loadText(sql, textOf(row, 'calls'))),
    outcome: outcome === null ? null : JSON.parse(loadText(sql, outcome)),
    startedAtMs: numberOf(row, 'started_at'),
    endedAtMs: optionalNumber(row, 'ended_at'),
    rev: numberOf(row, 'rev'),
  }
}

/**
 * Empties the traces of turns that ended before this time; what they called and came to stays, and with it every sum of
 * usage (D31). A running turn has not ended. The rows get the revision `rev`. Returns how many turns had one.
 */
export function expireTraces(sql: Sql, beforeMs: number, rev: number): number {
  const rows = sql.rows(`SELECT turn_id FROM turns WHERE ended_at < ? AND trace <> '[]'`, beforeMs)
  for (const row of rows) {
    const turnId = textOf(row, 'turn_id')
    sql.rows(
      'UPDATE turns SET trace = ?, rev = ? WHERE turn_id = ?',
      storeText(sql, `trace:${turnId}`, '[]'),
      rev,
      turnId,
    )
  }
  return rows.length
}

/** Whether `expireTraces` has something to do. */
export const hasTracesBefore = (sql: Sql, beforeMs: number): boolean =>
  sql.rows(`SELECT 1 FROM turns WHERE ended_at < ? AND trace <> '[]' LIMIT 1`, beforeMs).length > 0

/** When the oldest turn that still has a trace, or may get one, began; null when there is none. */
export function tracesStartMs(sql: Sql): number | null {
  const row = sql.rows(
    `SELECT min(started_at) AS first FROM turns WHERE status = 'running' OR trace <> '[]'`,
  )[0]
  return row ? optionalNumber(row, 'first') : null
}
