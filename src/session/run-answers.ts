import { grantsOf } from '../core/run/grants.ts'
import { type Standing, toRunResponse } from '../core/run/standing.ts'
import type { RunState } from '../core/run/state.ts'
import { withDecisions } from '../core/run/with-decisions.ts'
import type { Grant, TurnResponse } from '../protocol/execution/turn.ts'
import type { KeyedOutcome } from '../storage/session/idempotency.ts'
import type { Sql } from '../storage/session/sql.ts'
import { loadTurn } from '../storage/session/turns.ts'
import { endingAnswer, outcomeAnswer } from './answers.ts'
import type { RunEngine } from './engine.ts'
import type { TurnAnswer } from './rpc.ts'
import { END_ONLY } from './turn-channel.ts'

/**
 * What a run answers to whoever started a turn of it, sends a request again, or asks where it stands. It changes nothing
 * but how far the decisions of devices have come (D10).
 */
export class RunAnswers {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  /** The current envelope, or the turn that is being served: as a state, or as its stream from any event on (D19). */
  current(
    engine: RunEngine,
    sessionId: string,
    { stream, lastEventId }: { stream: boolean; lastEventId: string | null },
  ): TurnAnswer {
    // Whoever asks for the state of the run is its driver, and is shown what devices decided.
    if (!stream && engine.state?.active === null) engine.dispatch({ type: 'decision_delivered' })
    const { state } = engine
    const held = state === null ? [] : grantsOf(state)
    const grants = held.length === 0 ? {} : { grants: held }
    const resume = lastEventId === null ? null : parseEventId(lastEventId)
    if (stream && resume !== null) {
      const live = engine.turns.turn(resume.turnId)
      if (live?.channel.holdsAfter(resume.n)) return { kind: 'stream', stream: live.channel.read(resume.n) }
      const stored = loadTurn(this.#sql, resume.turnId)
      if (stored?.outcome)
        return outcomeAnswer(stored.turnId, stored.outcome, { stream: true, endOnly: true })
    }
    if (state?.active) {
      const { turnId } = state.active
      const live = engine.turns.turn(turnId)
      // Whoever names an event that is not held gets the end alone: never a fresh stream in its place (U01, D19).
      const afterN = lastEventId === null ? 0 : END_ONLY
      if (stream && live) return { kind: 'stream', stream: live.channel.read(afterN) }
      return {
        kind: 'json',
        body: {
          status: 'running',
          data: { trace_id: state.traceId, run_id: state.runId },
          allowed_continuations: ['inject', 'break'],
          ...grants,
        },
      }
    }
    const { standing } = engine
    if (state !== null && standing !== null)
      return this.#ofSealed(engine, state, standing, {
        stream,
        endOnly: lastEventId !== null,
        grants,
      })
    const turnId = state?.checkpointTurnId ?? null
    const outcome = turnId === null ? null : (loadTurn(this.#sql, turnId)?.outcome ?? null)
    const envelope = outcome ?? {
      status: 'idle' as const,
      data: { trace_id: state?.traceId ?? `trace:${sessionId}` },
    }
    if (!stream) {
      const decided = state === null ? envelope : withDecisions(envelope, state)
      return { kind: 'json', body: { ...decided, ...grants } }
    }
    const ended = turnId === null || lastEventId !== null ? null : engine.turns.turn(turnId)
    // Its own events rather than their replay, while they are held: an id then means one event only.
    if (ended?.channel.holdsAfter(0)) return { kind: 'stream', stream: ended.channel.read(0) }
    return outcomeAnswer(turnId ?? 'idle', envelope, { stream: true, endOnly: lastEventId !== null })
  }

  /** The current envelope of a sealed session: as it was told while that is in memory, else as the state tells it. */
  #ofSealed(
    engine: RunEngine,
    state: RunState,
    standing: Standing,
    { stream, endOnly, grants }: { stream: boolean; endOnly: boolean; grants: { grants?: Grant[] } },
  ): TurnAnswer {
    const { phase, checkpointTurnId } = state
    const live = checkpointTurnId === null ? null : engine.turns.turn(checkpointTurnId)
    const told = live?.channel.outcome ?? null
    // What a failed or stopped turn left to seal stands in no outcome of a turn.
    const isTold =
      told !== null && !(phase.k === 'AwaitingEncrypt' && (told.status === 'error' || phase.stopped))
    if (!stream) {
      const decided = withDecisions(isTold ? told : toRunResponse(standing), state)
      return { kind: 'json', body: { ...decided, ...grants } }
    }
    if (isTold && !endOnly && live?.channel.holdsAfter(0))
      return { kind: 'stream', stream: live.channel.read(0) }
    return outcomeAnswer(checkpointTurnId ?? 'idle', isTold ? told : standing.outcome, {
      stream,
      // A call without its arguments is not announced as one to run.
      endOnly: endOnly || standing.lost.length > 0,
    })
  }

  /**
   * What a message learns that answers a gate or a question which a device has settled meanwhile: the turn that is being
   * served, when it is through, or the current envelope (D05).
   */
  async afterDevice(engine: RunEngine, sessionId: string, stream: boolean): Promise<TurnAnswer> {
    const active = engine.state?.active ?? null
    const answer = active === null ? null : await this.ofTurn(engine, active.turnId, stream)
    return answer ?? this.current(engine, sessionId, { stream, lastEventId: null })
  }

  /** What a known key stands for; null where a crash has taken it: the request may be processed again. */
  async again(
    engine: RunEngine,
    key: string,
    result: KeyedOutcome,
    stream: boolean,
  ): Promise<TurnAnswer | null> {
    if (result === 'not_kept') {
      // What it ended is ended; asked once more it says where that has left the run.
      const told = engine.heldReply(key) ?? engine.standing?.outcome ?? null
      return told && outcomeAnswer('keyed', told, { stream, endOnly: false })
    }
    if ('outcome' in result) return outcomeAnswer('keyed', result.outcome, { stream, endOnly: false })
    const answer = await this.ofTurn(engine, result.turnId, stream)
    if (answer || !engine.isSealed) return answer
    const standing = this.#standingAfter(engine, result.turnId)
    return standing && outcomeAnswer(result.turnId, standing, { stream, endOnly: !toldWhole(engine) })
  }

  /**
   * Where the run stands that this turn of a sealed session was part of; `idle` when there is another by now. Null: the
   * turn has to be served again, since what it came to is lost (D20).
   */
  #standingAfter(engine: RunEngine, turnId: string): TurnResponse | null {
    const { state, standing } = engine
    const turn = loadTurn(this.#sql, turnId)
    if (state === null || standing === null || turn === null) return null
    if (turn.status === 'running' || turn.status === 'interrupted') return null
    if (turn.runId !== state.runId) return { status: 'idle', data: { trace_id: state.traceId } }
    return state.checkpointTurnId === turnId && standing.lost.length > 0 ? null : standing.outcome
  }

  /** The answer of a turn, live or stored; null for one that a crash cut off: the request may be processed again. */
  async ofTurn(engine: RunEngine, turnId: string, stream: boolean): Promise<TurnAnswer | null> {
    const live = engine.turns.turn(turnId)
    if (live) {
      const { channel } = live
      if (!stream) return endingAnswer(await channel.ending())
      await channel.opened()
      const refused = channel.refused
      return refused ? endingAnswer(refused) : { kind: 'stream', stream: channel.read(0) }
    }
    const stored = loadTurn(this.#sql, turnId)
    if (stored?.status === 'superseded') return endingAnswer({ k: 'superseded', traceId: '' })
    return stored?.outcome ? outcomeAnswer(turnId, stored.outcome, { stream, endOnly: false }) : null
  }
}

/** Nothing of what the run waits for is lost: a call is announced with its arguments, or not at all. */
const toldWhole = ({ standing }: RunEngine): boolean => standing?.lost.length === 0

/** `<turn>.<n>` of a stream event (D19). */
function parseEventId(id: string): { turnId: string; n: number } | null {
  const match = /^(.{1,64})\.(\d{1,12})$/.exec(id)
  return match?.[1] === undefined ? null : { turnId: match[1], n: Number(match[2]) }
}
