import { eventTurnId } from '../../core/run/events.ts'
import type { EndedClock } from '../../core/run/run-clock.ts'
import { isOver, type RunState } from '../../core/run/state.ts'
import type { RemoteTurnTiming } from '../../protocol/remote/message.ts'
import { toWireTime } from '../../protocol/time.ts'
import {
  firstOfRun,
  lastOfRun,
  newestTurn,
  type RunTurn,
  turnAt,
  turnUpTo,
} from '../../storage/session/run-turns.ts'
import type { Sql } from '../../storage/session/sql.ts'

export type TimingDeps = { sql: Sql; state(): RunState | null; nowMs(): number }

/** Runs whose timing is remembered: it never changes once a run has ended. */
const MAX_KEPT = 64
/** Runs that are looked at for the newest one that has ended: those of older releases do not tell how they did. */
const MAX_RUNS_BACK = 3

const PREFIX = eventTurnId('')

/** When runs ran and how they ended, as the messages of each show it (RF 14). What is not known is absent. */
export class RunTimings {
  readonly #deps: TimingDeps
  readonly #ended = new Map<string, RemoteTurnTiming>()
  /** The last turn of the run that was looked up last: the run before it is mostly the next one. */
  #last: RunTurn | null = null

  constructor(deps: TimingDeps) {
    this.#deps = deps
  }

  /** Of the run that a message belongs to. `atMs`: when that was. */
  ofRun(runId: string, atMs: number): RemoteTurnTiming {
    const kept = this.#ended.get(runId)
    if (kept !== undefined) return kept
    const timing = this.#look(runId, atMs)
    if (timing.outcome !== undefined) this.#keep(runId, timing)
    return timing
  }

  /** Of the run that an event tells of. It is not remembered: what the event comes from may yet fail to be stored. */
  ofTurn(turnId: string): RemoteTurnTiming {
    const runId = turnId.startsWith(PREFIX) ? turnId.slice(PREFIX.length) : turnId
    return this.#look(runId, this.#deps.nowMs())
  }

  /** Of the newest run that has ended; null when none has. */
  newestEnded(): RemoteTurnTiming | null {
    let last = newestTurn(this.#deps.sql)
    for (let runs = 0; last !== null && runs < MAX_RUNS_BACK; runs++) {
      if (last.end !== null) return this.ofRun(last.runId, last.startedAtMs)
      last = this.#before(last)
    }
    return null
  }

  #look(runId: string, atMs: number): RemoteTurnTiming {
    const state = this.#deps.state()
    if (state?.runId === runId && !isOver(state)) return running(state, this.#deps.nowMs())
    const last = this.#lastTurn(runId, atMs)
    if (last === null) return { turn_id: eventTurnId(runId) }
    this.#last = last
    return this.#timing(last)
  }

  #timing(last: RunTurn): RemoteTurnTiming {
    const { outcome, clock = null } = last.end ?? {}
    const { startedAtMs, workMs, endedAtMs }: Partial<EndedClock> = clock ?? {}
    return {
      turn_id: eventTurnId(last.runId),
      started_at: toWireTime(startedAtMs ?? firstOfRun(this.#deps.sql, last).startedAtMs),
      ...(endedAtMs === undefined ? {} : { ended_at: toWireTime(endedAtMs) }),
      ...(workMs === undefined ? {} : { elapsed_work_ms: workMs }),
      ...(outcome === undefined ? {} : { outcome }),
    }
  }

  /** The last turn of a run: the one before the run looked up last, one of the newest, or wherever its time leads. */
  #lastTurn(runId: string, atMs: number): RunTurn | null {
    const { sql } = this.#deps
    const next = this.#last === null ? null : this.#before(this.#last)
    if (next?.runId === runId) return next
    const newest = newestTurn(sql)
    if (newest === null || newest.runId === runId) return newest
    const before = this.#before(newest)
    if (before?.runId === runId) return before
    const then = turnAt(sql, atMs, newest)
    return then?.runId === runId ? lastOfRun(sql, then, newest) : null
  }

  /** The last turn of the run before that of a turn. */
  #before(turn: RunTurn): RunTurn | null {
    const { sql } = this.#deps
    return turnUpTo(sql, firstOfRun(sql, turn).seq - 1)
  }

  #keep(runId: string, timing: RemoteTurnTiming): void {
    const oldest = this.#ended.keys().next().value
    if (this.#ended.size >= MAX_KEPT && oldest !== undefined) this.#ended.delete(oldest)
    this.#ended.set(runId, timing)
  }
}

function running({ runId, clock, active }: RunState, nowMs: number): RemoteTurnTiming {
  const turnId = eventTurnId(runId)
  // A run of an older release has no clock.
  if (clock === undefined) return { turn_id: turnId }
  const underWay = active === null ? 0 : Math.max(0, nowMs - active.startedAtMs)
  return {
    turn_id: turnId,
    started_at: toWireTime(clock.startedAtMs),
    elapsed_work_ms: clock.workMs + underWay,
  }
}
