import type { EndedClock } from '../../core/run/run-clock.ts'
import type { RunOutcome } from '../../core/run/writes.ts'
import { numberOf, optionalText, type Sql, type SqlRow, textOf } from './sql.ts'

/**
 * The served turns of a run: they stand together. Rows are found by their number, a few at a time, however many there are.
 * Times are epoch milliseconds.
 */
export type RunTurn = {
  seq: number
  runId: string
  startedAtMs: number
  /** How its run ended, and its clocks, where this is the last turn of one that has. */
  end: { outcome: RunOutcome; clock: EndedClock | null } | null
}

const COLUMNS = 'SELECT seq, run_id, started_at, run_outcome, run_clock FROM turns'

export function newestTurn(sql: Sql): RunTurn | null {
  const row = sql.rows(`${COLUMNS} ORDER BY seq DESC LIMIT 1`)[0]
  return row ? toTurn(row) : null
}

/** The newest turn up to this number. */
export function turnUpTo(sql: Sql, seq: number): RunTurn | null {
  const row = sql.rows(`${COLUMNS} WHERE seq <= ? ORDER BY seq DESC LIMIT 1`, seq)[0]
  return row ? toTurn(row) : null
}

/** The last turn that had begun at a time, by halving; null when none had. */
export function turnAt(sql: Sql, atMs: number, newest: RunTurn): RunTurn | null {
  let low = 0
  let high = newest.seq
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    const turn = turnUpTo(sql, middle)
    if (turn !== null && turn.startedAtMs > atMs) high = turn.seq - 1
    else low = middle
  }
  return low === 0 ? null : turnUpTo(sql, low)
}

/** The first turn of the run that a turn belongs to. */
export const firstOfRun = (sql: Sql, turn: RunTurn): RunTurn => edgeOfRun(sql, turn, -1, 1)

/** Its last turn. */
export const lastOfRun = (sql: Sql, turn: RunTurn, newest: RunTurn): RunTurn =>
  edgeOfRun(sql, turn, 1, newest.seq)

/** Goes from a turn of a run towards `bound`, in longer and longer steps and then in shorter ones, as far as the run goes. */
function edgeOfRun(sql: Sql, turn: RunTurn, direction: 1 | -1, bound: number): RunTurn {
  let edge = turn
  let stride = 1
  let growing = true
  while (stride >= 1) {
    const seq = edge.seq + direction * stride
    const isWithin = direction === 1 ? seq <= bound : seq >= bound
    const next = isWithin && isOfRun(sql, seq, turn.runId) ? turnUpTo(sql, seq) : null
    if (next !== null && next.seq !== edge.seq) edge = next
    else growing = false
    stride = growing ? stride * 2 : Math.floor(stride / 2)
  }
  return edge
}

/** Reads nothing but the beginning of the row. */
function isOfRun(sql: Sql, seq: number, runId: string): boolean {
  const row = sql.rows('SELECT run_id FROM turns WHERE seq <= ? ORDER BY seq DESC LIMIT 1', seq)[0]
  return row !== undefined && textOf(row, 'run_id') === runId
}

function toTurn(row: SqlRow): RunTurn {
  const outcome = optionalText(row, 'run_outcome')
  const clock = optionalText(row, 'run_clock')
  return {
    seq: numberOf(row, 'seq'),
    runId: textOf(row, 'run_id'),
    startedAtMs: numberOf(row, 'started_at'),
    end:
      outcome === null
        ? null
        : { outcome: outcome as RunOutcome, clock: clock === null ? null : JSON.parse(clock) },
  }
}
