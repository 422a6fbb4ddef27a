/**
 * A session without an object around it: the real machine, the real rows in a database in memory, the real catalogue
 * and the real way to serve a turn. What it leaves out is what only an object has: the ring, D1, alarms, streams.
 */

import type { MemoryFact } from '../../../src/core/memory.ts'
import type { RunInputEvent } from '../../../src/core/run/inputs.ts'
import { step } from '../../../src/core/run/step.ts'
import type { RunInput, TurnView } from '../../../src/core/turn-view.ts'
import type { ContinueRequest } from '../../../src/protocol/execution/continue.ts'
import type { TurnResponse } from '../../../src/protocol/execution/turn.ts'
import type { Access } from '../../../src/providers/access.ts'
import type { RouteRecord } from '../../../src/providers/egress.ts'
import type { ProviderMap } from '../../../src/providers/provider.ts'
import { ModelCatalogue } from '../../../src/session/catalogue.ts'
import { makeLiveTurn } from '../../../src/session/live-turn.ts'
import { serveTurn } from '../../../src/session/serve-turn.ts'
import { type History, TranscriptWindow } from '../../../src/session/transcript-window.ts'
import { newId } from '../../../src/storage/ids.ts'
import { type Checkpoint, loadCheckpoint } from '../../../src/storage/session/checkpoint.ts'
import { commitStep } from '../../../src/storage/session/commit.ts'
import { loadFacts } from '../../../src/storage/session/memories.ts'
import { loadMessages, type StoredMessage } from '../../../src/storage/session/messages.ts'
import { migrateSession } from '../../../src/storage/session/migrations.ts'
import { loadRunInput } from '../../../src/storage/session/run-input.ts'
import { numberOf, type Sql } from '../../../src/storage/session/sql.ts'
import { loadTurns, type StoredTurn } from '../../../src/storage/session/turns.ts'
import { makeNodeSql } from './node-sql.ts'

/** What comes with a request besides its body. */
export type Bringing = { access: Access; facts?: readonly MemoryFact[] }

const ALL = Number.MAX_SAFE_INTEGER

/** What is said under such a request stays with local models for good (U37). */
const isKeptLocal = ({ policy, local_preferences: { local_only, no_network } }: RunInput): boolean =>
  local_only || no_network || policy.privacy.remote?.mode === 'deny'

export class InMemorySession {
  readonly catalogue: ModelCatalogue
  /** What left for a provider, in order, listings aside (U38). */
  readonly routes: RouteRecord[] = []
  readonly #sql: Sql = makeNodeSql()
  readonly #providers: ProviderMap
  readonly #transcript: TranscriptWindow
  #checkpoint: Checkpoint
  #digests = 0

  constructor(providers: ProviderMap) {
    migrateSession(this.#sql)
    this.#providers = providers
    this.catalogue = new ModelCatalogue(providers)
    this.#transcript = new TranscriptWindow(this.#sql)
    this.#checkpoint = loadCheckpoint(this.#sql)
  }

  /** Starts a run and serves its first turn, up to what the client would be told. */
  execute(body: RunInput, bringing: Bringing): Promise<TurnResponse> {
    return this.#serve(
      {
        type: 'execute_requested',
        digest: `digest-${++this.#digests}`,
        text: body.input.text,
        command: body.input.command ?? null,
        driver: { kind: 'http' },
        policyDigest: null,
        localOnly: isKeptLocal(body),
      },
      bringing,
      body,
    )
  }

  /** Answers what the run waits for. */
  proceed(message: ContinueRequest, bringing: Bringing): Promise<TurnResponse> {
    const digest = `digest-${++this.#digests}`
    const localOnly = isKeptLocal(loadRunInput(this.#sql))
    const input = { type: 'continuation_received', digest, message, partial: null, localOnly } as const
    return this.#serve(input, bringing, null)
  }

  /** What a new run, or its preview, finds. */
  history(): History {
    return this.#transcript.read(this.#checkpoint.counters.message, null)
  }

  memories(facts: readonly MemoryFact[] = []): MemoryFact[] {
    return [...facts, ...loadFacts(this.#sql)]
  }

  messages(): StoredMessage[] {
    return loadMessages(this.#sql, 1, ALL)
  }

  turns(): StoredTurn[] {
    return loadTurns(this.#sql, 1, ALL)
  }

  /** Grows with every row that is written, changed or removed. */
  rowsWritten(): number {
    const [row] = this.#sql.rows('SELECT total_changes() AS n')
    if (row === undefined) throw new Error('no count')
    return numberOf(row, 'n')
  }

  async #serve(
    input: RunInputEvent,
    { access, facts = [] }: Bringing,
    runInput: RunInput | null,
  ): Promise<TurnResponse> {
    const told: TurnResponse[] = []
    const dispatch = (next: RunInputEvent, body: RunInput | null = null): true => {
      told.push(...this.#dispatch(next, body))
      return true
    }
    dispatch(input, runInput)
    const { active } = this.#state()
    const live = active && makeLiveTurn(active.turnId, active.lease, access, facts)
    // When the router has answered all calls itself, the model is asked again in the same turn.
    while (live && told.length === 0) {
      const before = this.#checkpoint
      await serveTurn(live, {
        providers: this.#providers,
        state: () => this.#state(),
        view: () => this.#view(facts),
        closed: () => null,
        memories: () => this.memories(facts),
        catalogue: () => this.catalogue.view(access, Date.now()),
        list: (provider, models, signal, localOnly) =>
          this.catalogue.list(provider, models, access, signal, localOnly),
        dispatch,
        callBegins: () => {},
        clock: () => ({ responseMs: 0 }),
        textArrived: () => {},
        routed: (route) => this.routes.push(route),
      })
      if (this.#checkpoint === before) throw new Error('a turn was served and nothing came of it')
    }
    const [outcome] = told
    if (outcome === undefined || told.length > 1) throw new Error(`one outcome, not ${told.length}`)
    return outcome
  }

  /** Commits a step; what the request or the turn came to, if it has. */
  #dispatch(input: RunInputEvent, runInput: RunInput | null): TurnResponse[] {
    const nowMs = Date.now()
    const result = step(this.#checkpoint.state, input, { nowMs, newId })
    if (!('state' in result)) throw new Error(`not accepted: ${JSON.stringify(result)}`)
    this.#checkpoint = this.#sql.transaction(() =>
      commitStep(this.#sql, this.#checkpoint, result, { nowMs, runInput, sealedId: null }),
    )
    this.#transcript.changed(this.#checkpoint.outbox.messagesFrom)
    return [
      ...(result.reply?.by === 'outcome' ? [result.reply.outcome] : []),
      ...result.effects.flatMap((effect) => (effect.e === 'answer' ? [effect.outcome] : [])),
    ]
  }

  #view(facts: readonly MemoryFact[]): TurnView {
    const state = this.#state()
    return {
      runInput: loadRunInput(this.#sql),
      runId: state.runId,
      firstTurn: state.turn === 1,
      planning: state.planning,
      planApproved: state.planApproved,
      remoteDeclined: state.remoteDeclined,
      ...(state.localDeclined ? { localDeclined: true } : {}),
      ...this.#transcript.read(this.#checkpoint.counters.message, state.runId),
      memories: this.memories(facts),
    }
  }

  #state() {
    const { state } = this.#checkpoint
    if (state === null) throw new Error('there is no run')
    return state
  }
}
