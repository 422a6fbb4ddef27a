import type { RunState } from '../../core/run/state.ts'
import { numberOf, optionalText, type Sql, textOf } from './sql.ts'

/**
 * What D1 has not got yet. Rows are never queued themselves: they are read when they are flushed, so a later state
 * replaces an earlier one by itself, and the outbox costs no row of its own (D26).
 */
export type Outbox = {
  session: boolean
  /** Messages, with their tool calls, from this sequence on; null when none are owed. */
  messagesFrom: number | null
  /** Turns from this sequence on. */
  turnsFrom: number | null
  /** Changes of facts stand in a log of their own: a user's facts are kept nowhere else in the object (EC 16). */
  memory: boolean
  /** Receipts of devices' requests from this sequence on (D26). */
  receiptsFrom: number | null
  failures: number
  retryAtMs: number | null
  /**
   * Since when the user's gateway may lack the newest row of the live list; null when it has it (D03). It is owed to the
   * gateway, not to D1, and stored only with what is stored anyway: one that stands here may have been paid since.
   */
  listing: number | null
}

/**
 * Counters that only grow: sequences, the revision that D1 compares (D26), and the time of the newest change of a fact,
 * which a clock that goes back must not pass again.
 */
export type Counters = {
  message: number
  turn: number
  rev: number
  ringReserved: number
  memoryAtMs?: number
  /** Runs that were begun; absent in checkpoints of older releases, until the next run. */
  runs?: number
  /** Of a sealed session: the first turn with trace events that lack their ciphertext. */
  unsealedTurn?: number
  /** The newest change that no event tells, and the events that came before it (RF 13); absent before the first. */
  cut?: SnapshotCut
  /** The gateway said that devices follow the session; it says when none does any more. Absent: nobody follows. */
  watched?: true
  /** No model that devices may use takes images, as far as was known at the newest cut. */
  blind?: true
  /** The newest event before the session was listed as it is now: what came until then is another registration's. Absent: 0. */
  registeredAt?: number
  /** How often the transcript was rewritten; absent: never. */
  rewrites?: number
}

/** A state that replaced another one without an event: `id` names it to those who have seen it. */
export type SnapshotCut = { sequence: number; id: string }

/** The time of the next change of a fact: now, and later than the one before (D26). */
export const nextMemoryAtMs = ({ memoryAtMs = 0 }: Counters, nowMs: number): number =>
  Math.max(nowMs, memoryAtMs + 1)

/** Runs that were begun in this session. Counted once in one that an older release has stored. */
export function runsBegun(sql: Sql, { runs }: Counters): number {
  if (runs !== undefined) return runs
  const row = sql.rows('SELECT count(DISTINCT run_id) AS runs FROM turns')[0]
  return row ? numberOf(row, 'runs') : 0
}

/** The one row that every step of the machine commits. */
export type Checkpoint = { state: RunState | null; outbox: Outbox; counters: Counters }

export const EMPTY_OUTBOX: Outbox = {
  session: false,
  messagesFrom: null,
  turnsFrom: null,
  memory: false,
  receiptsFrom: null,
  failures: 0,
  retryAtMs: null,
  listing: null,
}

/** D1 has everything. */
export const isDrained = ({ session, messagesFrom, turnsFrom, memory, receiptsFrom }: Outbox): boolean =>
  !session && messagesFrom === null && turnsFrom === null && !memory && receiptsFrom === null

const FRESH: Checkpoint = {
  state: null,
  outbox: EMPTY_OUTBOX,
  counters: { message: 0, turn: 0, rev: 0, ringReserved: 0 },
}

/** Reads the checkpoint; the JSON in it is our own and carries its version. */
export function loadCheckpoint(sql: Sql): Checkpoint {
  const row = sql.rows('SELECT state, outbox, counters FROM checkpoint')[0]
  if (!row) return structuredClone(FRESH)
  const state = optionalText(row, 'state')
  const parsed: RunState | null = state === null ? null : JSON.parse(state)
  if (parsed !== null && parsed.v !== 1) throw new Error(`invariant broken: run state of version ${parsed.v}`)
  return {
    state: parsed,
    // What an earlier release stored knows of no memory, or of no live list.
    outbox: { ...EMPTY_OUTBOX, ...JSON.parse(textOf(row, 'outbox')) },
    counters: JSON.parse(textOf(row, 'counters')),
  }
}

export function saveCheckpoint(sql: Sql, { state, outbox, counters }: Checkpoint): void {
  sql.rows(
    `INSERT INTO checkpoint (id, state, outbox, counters) VALUES (1, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET state = excluded.state, outbox = excluded.outbox, counters = excluded.counters`,
    state === null ? null : JSON.stringify(state),
    JSON.stringify(outbox),
    JSON.stringify(counters),
  )
}
