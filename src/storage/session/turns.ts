import type { EndedClock } from '../../core/run/run-clock.ts'
import type { CallRecord, RunOutcome, TraceEntry } from '../../core/run/writes.ts'
import { traceRef } from '../../protocol/execution/content-refs.ts'
import type { TurnResponse } from '../../protocol/execution/turn.ts'
import { forgetUnusedPolicies } from './policies.ts'
import { dropSealed } from './sealed-contents.ts'
import { loadSession } from './session-row.ts'
import { numberOf, optionalNumber, optionalText, type Sql, type SqlRow, textOf } from './sql.ts'
import { loadText, storeText, textBytesSql } from './texts.ts'

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
  /** The key of the policy that its route was decided by. */
  policyDigest?: string
  /** How its run ended, where it is the last one of a run that has. */
  runOutcome?: RunOutcome
  /** With it: the clocks of the run, as they stand for good (RF 14). */
  runClock?: EndedClock
  rev: number
}

export function saveTurn(sql: Sql, turn: StoredTurn): void {
  sql.rows(
    `INSERT INTO turns
       (turn_id, seq, run_id, turn, status, trace, calls, outcome, started_at, ended_at, rev, policy,
        run_outcome, run_clock)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (seq) DO UPDATE SET status = excluded.status, trace = excluded.trace, calls = excluded.calls,
       outcome = excluded.outcome, ended_at = excluded.ended_at, rev = excluded.rev,
       run_outcome = excluded.run_outcome, run_clock = excluded.run_clock`,
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
    turn.policyDigest ?? null,
    turn.runOutcome ?? null,
    turn.runClock === undefined ? null : JSON.stringify(turn.runClock),
  )
}

/** Marks the turns from one on as changed, for the copy. */
export function touchTurns(sql: Sql, fromSeq: number, rev: number): void {
  sql.rows('UPDATE turns SET rev = ? WHERE seq >= ?', rev, fromSeq)
}

export function loadTurn(sql: Sql, turnId: string): StoredTurn | null {
  const row = sql.rows('SELECT * FROM turns WHERE turn_id = ?', turnId)[0]
  return row ? toTurn(sql, row) : null
}

/** The turn that was begun last; null when none was. */
export function newestTurnId(sql: Sql): string | null {
  const row = sql.rows('SELECT turn_id FROM turns ORDER BY seq DESC LIMIT 1')[0]
  return row ? textOf(row, 'turn_id') : null
}

/** Which parts of turns are read; what is not is empty. */
export type TurnParts = { traces?: boolean; calls?: boolean; outcomes?: boolean }

/** At most `limit` turns from a sequence on, oldest first. */
export function loadTurns(
  sql: Sql,
  fromSeq: number,
  limit: number,
  { traces = true, calls = true, outcomes = true }: TurnParts = {},
): StoredTurn[] {
  return sql
    .rows(
      `SELECT turn_id, seq, run_id, turn, status, ${traces ? 'trace' : `'[]' AS trace`},
         ${calls ? 'calls' : `'[]' AS calls`}, ${outcomes ? 'outcome' : 'NULL AS outcome'}, started_at, ended_at, rev, policy
       FROM turns WHERE seq >= ? ORDER BY seq LIMIT ?`,
      fromSeq,
      limit,
    )
    .map((row) => toTurn(sql, row))
}

/** What the parts of a turn that are copied weigh, in UTF-8 bytes. */
export type TurnSize = { seq: number; traceBytes: number; callBytes: number }

/** At most `limit` turns from a sequence on, oldest first; reads none of their texts. */
export const turnSizesFrom = (sql: Sql, fromSeq: number, limit: number): TurnSize[] =>
  sql
    .rows(
      `SELECT seq, ${textBytesSql('trace')} AS trace_bytes, ${textBytesSql('calls')} AS call_bytes
       FROM turns WHERE seq >= ? ORDER BY seq LIMIT ?`,
      fromSeq,
      limit,
    )
    .map((row) => ({
      seq: numberOf(row, 'seq'),
      traceBytes: numberOf(row, 'trace_bytes'),
      callBytes: numberOf(row, 'call_bytes'),
    }))

/** Traces held in memory at once: each tells of up to a thousand messages and every file. */
const TRACES_PER_READ = 10
/** Lists of calls are short. */
const CALL_LISTS_PER_READ = 100

/** Every trace of the session, oldest first; what one asks for more than once is read again. */
export const eachTrace = (sql: Sql): Generator<Pick<StoredTurn, 'turnId' | 'runId' | 'trace'>, void> =>
  eachTurn(sql, TRACES_PER_READ, { calls: false, outcomes: false })

/** Every model call of the session, oldest first. */
export function* eachCall(sql: Sql): Generator<CallRecord, void> {
  for (const { calls } of eachTurn(sql, CALL_LISTS_PER_READ, { traces: false, outcomes: false })) yield* calls
}

function* eachTurn(sql: Sql, perRead: number, parts: TurnParts): Generator<StoredTurn, void> {
  for (let from = 1; ; ) {
    const turns = loadTurns(sql, from, perRead, parts)
    yield* turns
    const last = turns.at(-1)
    if (last === undefined || turns.length < perRead) return
    from = last.seq + 1
  }
}

function toTurn(sql: Sql, row: SqlRow): StoredTurn {
  const outcome = optionalText(row, 'outcome')
  const policyDigest = optionalText(row, 'policy')
  const runOutcome = optionalText(row, 'run_outcome')
  const runClock = optionalText(row, 'run_clock')
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
    ...(policyDigest === null ? {} : { policyDigest }),
    ...(runOutcome === null ? {} : { runOutcome: runOutcome as RunOutcome }),
    ...(runClock === null ? {} : { runClock: JSON.parse(runClock) }),
    rev: numberOf(row, 'rev'),
  }
}

/**
 * Empties the traces of turns that ended before this time; what they called and came to stays, and with it every sum of
 * usage (D31). In a sealed session the envelopes go with them. A running turn has not ended. The rows get the revision
 * `rev`. Returns how many turns had one.
 */
export function expireTraces(sql: Sql, beforeMs: number, rev: number): number {
  const rows = sql.rows(`SELECT turn_id FROM turns WHERE ended_at < ? AND trace <> '[]'`, beforeMs)
  const sealed = loadSession(sql)?.keyId != null
  for (const row of rows) {
    const turnId = textOf(row, 'turn_id')
    const trace = sealed ? loadTurn(sql, turnId)?.trace : undefined
    if (trace)
      dropSealed(
        sql,
        trace.map(({ id }) => traceRef(id)),
      )
    sql.rows(
      'UPDATE turns SET trace = ?, rev = ? WHERE turn_id = ?',
      storeText(sql, `trace:${turnId}`, '[]'),
      rev,
      turnId,
    )
  }
  if (rows.length > 0) forgetUnusedPolicies(sql)
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
