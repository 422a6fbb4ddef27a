import { eventTurnId } from '../../../src/core/run/events.ts'
import type { RunState } from '../../../src/core/run/state.ts'
import type { AnswerClock, NewCall } from '../../../src/core/run/writes.ts'
import { MAX_LISTED } from '../../../src/protocol/remote/limits.ts'
import type { RemoteSessionSettings } from '../../../src/protocol/remote/session-settings.ts'
import { RemoteView } from '../../../src/session/remote-view.ts'
import type { Counters } from '../../../src/storage/session/checkpoint.ts'
import { insertMessage, settleCall } from '../../../src/storage/session/messages.ts'
import { migrateSession } from '../../../src/storage/session/migrations.ts'
import type { Sql } from '../../../src/storage/session/sql.ts'
import { type StoredTurn, saveTurn } from '../../../src/storage/session/turns.ts'
import { makeNodeSql } from '../../support/node/node-sql.ts'
import {
  assistantMessage,
  makeSession,
  makeState,
  makeTurn,
  userMessage,
} from '../storage/contract/builders.ts'

/** Two o'clock; the session begins then, and each thing that happens in it takes a second. */
export const START_MS = Date.UTC(2030, 0, 1, 14)

type Said = { text: string; thoughts: { ms: number; tokens: number } | null }

/** A stored session, and what devices see of it. */
export class RemoteSession {
  readonly sql: Sql = makeNodeSql()
  nowMs = START_MS
  state: RunState | null = null
  keyId: string | null = null
  live: Said | null = null
  readonly held = new Map<string, string>()
  counters: Counters = { message: 0, turn: 0, rev: 0, ringReserved: 0 }
  pending: { kind: 'queue'; text: string }[] = []
  settings: RemoteSessionSettings | null = null
  /** Rows that were asked for, and the bytes in them. */
  readonly read = { queries: 0, rows: 0, bytes: 0 }
  readonly view: RemoteView
  #turn: StoredTurn | null = null

  constructor() {
    migrateSession(this.sql)
    this.view = new RemoteView({
      sql: this.#counting(),
      state: () => this.state,
      session: () => makeSession({ keyId: this.keyId }),
      row: () => ({
        session_id: 's',
        registration_epoch: 3,
        title: 'A session',
        model: 'small',
        activity: 'idle',
        attention: { approval: false, question: false },
        health: 'live',
      }),
      counters: () => this.counters,
      live: () => this.live,
      textOf: (ref) => this.held.get(ref),
      nowMs: () => this.nowMs,
      pending: () => ({
        queued: this.pending.slice(0, MAX_LISTED).map(({ text }) => ({
          head: text.slice(0, 600),
          totalBytes: Buffer.byteLength(text),
        })),
        total: this.pending.length,
      }),
      settings: () => this.settings,
      takesImages: () => true,
    })
  }

  snapshot() {
    return this.view.snapshot({ id: 'cut', sequence: 7 })
  }

  /** The page before a cursor; fails where there is none. */
  page(cursor: string | null, limit = 40) {
    const page = this.view.history(cursor, limit)
    if (page.type !== 'history') throw new Error(`no page: ${page.code}`)
    return page
  }

  /** All of a content, in pieces of so many bytes. */
  whole(contentId: string, maxBytes = 65_536): string {
    let text = ''
    for (let offset: number | undefined = 0; offset !== undefined; ) {
      const piece = this.view.content(contentId, offset, maxBytes)
      if (piece.type !== 'content') throw new Error(`no content: ${piece.code}`)
      text += piece.text
      offset = piece.next_offset
    }
    return text
  }

  /** A run begins: its prompt is stored, and a turn is being served. */
  begins(runId: string, prompt = `prompt of ${runId}`): this {
    this.state = makeState({
      runId,
      active: {
        lease: 'l',
        turnId: `t${this.counters.turn + 1}`,
        startedAtMs: this.nowMs,
        leaseUntilMs: this.nowMs,
      },
      clock: { startedAtMs: this.nowMs, workMs: 0 },
    })
    this.#openTurn(runId)
    return this.says(prompt)
  }

  /** The user says something. */
  says(text: string): this {
    this.counters.message++
    const runId = this.state?.runId ?? 'run'
    insertMessage(
      this.sql,
      this.counters.message,
      userMessage(`u${this.counters.message}`, text, runId),
      this.nowMs,
      1,
    )
    return this.#later()
  }

  /** The model says something, and makes these calls. */
  answers(text: string, calls: NewCall[] = [], clock?: AnswerClock): this {
    this.counters.message++
    const seq = this.counters.message
    const write = { ...assistantMessage(`a${seq}`, text, calls), runId: this.state?.runId ?? 'run' }
    insertMessage(this.sql, seq, clock === undefined ? write : { ...write, clock }, this.nowMs, 1)
    return this.#later()
  }

  settles(callId: string, content: string, isError = false): this {
    settleCall(this.sql, { w: 'settle_call', callId, isError, content }, this.nowMs)
    return this.#later()
  }

  /** The turn ends, and another one of the run begins. */
  goesOn(): this {
    const state = this.#requireState()
    this.#closeTurn()
    this.#openTurn(state.runId)
    return this
  }

  /** The turn ends at a pause. */
  pauses(changes: Partial<RunState>): this {
    const state = this.#requireState()
    this.#closeTurn()
    this.state = { ...this.#rested(state), ...changes }
    return this
  }

  ends(runOutcome: 'completed' | 'failed' | 'cancelled' = 'completed'): this {
    const state = this.#requireState()
    this.state = { ...this.#rested(state), phase: { k: 'Idle' } }
    const { clock } = this.state
    if (this.#turn !== null) {
      this.#turn.runOutcome = runOutcome
      this.#turn.runClock = { ...clock, endedAtMs: this.nowMs }
    }
    this.#closeTurn()
    return this
  }

  waits(ms: number): this {
    this.nowMs += ms
    return this
  }

  /** The same number of plain runs: a prompt and an answer each. */
  talks(runs: number): this {
    for (let n = 0; n < runs; n++) {
      const runId = `run ${this.counters.turn + 1}`
      this.begins(runId).answers(`answer of ${runId}`).ends()
    }
    return this
  }

  turnId(): string {
    return eventTurnId(this.#requireState().runId)
  }

  #rested(state: RunState): RunState {
    const { active, clock } = state
    if (active === null || clock === undefined) return state
    return {
      ...state,
      active: null,
      clock: { ...clock, workMs: clock.workMs + this.nowMs - active.startedAtMs },
    }
  }

  #openTurn(runId: string): void {
    this.counters.turn++
    this.#turn = makeTurn(this.counters.turn, { runId, startedAtMs: this.nowMs })
    saveTurn(this.sql, this.#turn)
  }

  #closeTurn(): void {
    if (this.#turn === null) return
    saveTurn(this.sql, { ...this.#turn, status: 'done', endedAtMs: this.nowMs })
  }

  #later(): this {
    return this.waits(1_000)
  }

  #requireState(): RunState {
    if (this.state === null) throw new Error('no run has begun')
    return this.state
  }

  #counting(): Sql {
    return {
      ...this.sql,
      rows: (query, ...values) => {
        const rows = this.sql.rows(query, ...values)
        this.read.queries++
        this.read.rows += rows.length
        for (const row of rows)
          for (const value of Object.values(row))
            this.read.bytes +=
              typeof value === 'string'
                ? value.length
                : typeof value === 'object' && value !== null
                  ? value.byteLength
                  : 0
        return rows
      },
    }
  }
}
