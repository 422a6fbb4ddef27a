/**
 * A session that devices operate, without an object around it: the real operations, machine and rows in a database in
 * memory. What a model would answer, the test says.
 */

import { parseQuestions } from '../../../src/core/ask-user.ts'
import { liveRow } from '../../../src/core/live-row.ts'
import type { MediatedCall } from '../../../src/core/mediate.ts'
import type { MemoryFact } from '../../../src/core/memory.ts'
import { eventTurnId, type RunEvent } from '../../../src/core/run/events.ts'
import type { Gate, RunInputEvent } from '../../../src/core/run/inputs.ts'
import { openQuestion } from '../../../src/core/run/pending.ts'
import { step } from '../../../src/core/run/step.ts'
import type { RunInput } from '../../../src/core/turn-view.ts'
import type { ContinueRequest } from '../../../src/protocol/execution/continue.ts'
import type { OutrightResult } from '../../../src/protocol/remote/results.ts'
import { ok } from '../../../src/protocol/result.ts'
import { type Access, NO_ACCESS } from '../../../src/providers/access.ts'
import { forgetRequest, type LiveTurn, makeLiveTurn } from '../../../src/session/live-turn.ts'
import { Operations } from '../../../src/session/operations/operations.ts'
import type {
  OperationsDeps,
  OperationsEngine,
  PromptImages,
  StepRequest,
  StepTaken,
} from '../../../src/session/operations/ports.ts'
import type { OperationAnswer, SessionOperation } from '../../../src/session/rpc.ts'
import { newId } from '../../../src/storage/ids.ts'
import { type Checkpoint, loadCheckpoint, saveCheckpoint } from '../../../src/storage/session/checkpoint.ts'
import { commitStep } from '../../../src/storage/session/commit.ts'
import { loadMessages } from '../../../src/storage/session/messages.ts'
import { migrateSession } from '../../../src/storage/session/migrations.ts'
import { saveReceipt } from '../../../src/storage/session/receipts.ts'
import { loadRunInput } from '../../../src/storage/session/run-input.ts'
import {
  loadSession,
  NOT_LISTED,
  type SessionRow,
  saveSession,
} from '../../../src/storage/session/session-row.ts'
import type { Sql } from '../../../src/storage/session/sql.ts'
import { makeRecord, makeReport } from '../core/run-machine.ts'
import { makeNodeSql } from './node-sql.ts'

export const EPOCH = 7

export type Asking = { requestId?: string; digest?: string; epoch?: number; device?: string }

export class OperatedSession {
  readonly sql: Sql = makeNodeSql()
  readonly events: RunEvent[] = []
  /** How often devices had to be shown the state anew without a step. */
  cuts = 0
  /** Turns that were given to a model, each with what it was served with. */
  readonly served: LiveTurn[] = []
  facts: () => Promise<MemoryFact[]> = async () => []
  access: (deploymentProviders: boolean) => Promise<Access> = async () => NO_ACCESS
  published: Awaited<ReturnType<OperationsDeps['defaultPolicy']>> = null
  images: PromptImages = {
    put: () => ({ type: 'error', code: 'unsupported_operation', message: 'no images here' }),
    check: () => ok([]),
  }
  /** The next transaction breaks before it is through … */
  breaksNext = false
  /** … or the next step after it is stored. */
  breaksAfterNext = false
  nowMs = 1_700_000_000_000
  syncs = 0
  operations: Operations
  #checkpoint: Checkpoint
  #live: LiveTurn | null = null
  #work: Promise<unknown>[] = []
  #requests = 0

  constructor({ keyId = null as string | null } = {}) {
    migrateSession(this.sql)
    const row: SessionRow = {
      sessionId: 'session',
      userId: 'user',
      title: '',
      scope: null,
      keyId,
      createdAtMs: 0,
      updatedAtMs: 0,
      archivedAtMs: null,
      deletedAtMs: null,
      rev: 0,
      ...NOT_LISTED,
      epoch: EPOCH,
      listed: true,
    }
    saveSession(this.sql, row)
    this.#checkpoint = loadCheckpoint(this.sql)
    this.operations = this.#operations()
  }

  get session(): SessionRow {
    const session = loadSession(this.sql)
    if (session === null) throw new Error('there is no session')
    return session
  }

  get state() {
    return this.#checkpoint.state
  }

  /** The turn that is being served, as it is in memory. */
  get live(): LiveTurn | null {
    return this.#live
  }

  /** The remote protocol's name of the run. */
  get turnId(): string {
    return eventTurnId(this.state?.runId ?? '')
  }

  /** A device asks. Every request has another id, unless the test says which. */
  async ask(operation: SessionOperation, asking: Asking = {}): Promise<OperationAnswer> {
    const { requestId = `request-${++this.#requests}`, epoch = EPOCH, device = 'phone' } = asking
    return this.operations.serve(
      { id: device, deploymentProviders: true },
      { requestId, registrationEpoch: epoch, digest: asking.digest ?? JSON.stringify(operation), operation },
    )
  }

  /** Waits for what goes on behind the answers. */
  async settled(): Promise<void> {
    for (let work = this.#work.shift(); work !== undefined; work = this.#work.shift()) await work
  }

  /** A client starts a run over HTTP. */
  execute(body: RunInput, { keyed }: { keyed?: string[] } = {}): void {
    const input: RunInputEvent = {
      type: 'execute_requested',
      digest: newId(),
      text: body.input.text,
      command: body.input.command ?? null,
      driver: { kind: 'http' },
      policyDigest: 'sha256:p',
      localOnly: false,
      ...(keyed === undefined ? {} : { keyed }),
    }
    this.#mustTake(input, body)
  }

  continueRun(message: ContinueRequest): void {
    this.#mustTake({
      type: 'continuation_received',
      digest: newId(),
      message,
      partial: null,
      localOnly: false,
    })
  }

  /** The model that was asked answers, with the calls that it makes. */
  answer(text: string, calls: MediatedCall[] = []): void {
    this.#resolve(null)
    this.#mustTake({
      type: 'model_responded',
      lease: this.#lease,
      text,
      ending: null,
      report: makeReport(),
      calls,
      call: makeRecord('answered', { inputTokens: 1, outputTokens: 1 }),
      usage: { input_tokens: 1, output_tokens: 1 },
    })
  }

  /** The turn stands at a gate. */
  pauseAt(gate: Gate): void {
    this.#resolve(gate)
  }

  #resolve(gate: Gate | null): void {
    this.#mustTake({
      type: 'turn_resolved',
      lease: this.#lease,
      report: makeReport(),
      traces: [],
      gate,
      call: makeRecord('lost'),
      failedCall: null,
    })
  }

  /** The object is gone where it stands and comes up again. */
  crash(): void {
    this.#live = null
    this.#checkpoint = loadCheckpoint(this.sql)
    this.operations = this.#operations()
    if (this.state?.active) this.#mustTake({ type: 'object_started' })
    this.operations.runNext()
  }

  said(): string[] {
    return loadMessages(this.sql, 1, 1_000).map(({ role, text }) => `${role}: ${text}`)
  }

  receipts(): { request: unknown; receipt: unknown; result: OutrightResult }[] {
    return this.sql.rows('SELECT request_id, receipt, result FROM receipts ORDER BY seq').map((row) => ({
      request: row.request_id,
      receipt: row.receipt,
      result: JSON.parse(String(row.result)),
    }))
  }

  #mustTake(input: RunInputEvent, runInput: RunInput | null = null): void {
    const context = { access: NO_ACCESS, facts: [], runInput, key: null }
    const taken = this.#dispatch(input, context)
    if (!taken.ok) throw new Error(`not accepted: ${JSON.stringify(taken)}`)
  }

  get #lease(): string {
    const lease = this.state?.active?.lease
    if (lease === undefined) throw new Error('no turn is being served')
    return lease
  }

  #operations(): Operations {
    const deps: OperationsDeps = {
      sql: this.sql,
      engine: this.#engine(),
      view: {
        question: () => this.#question(),
        history: (cursor, limit) => ({
          type: 'history',
          history_revision: `${cursor}/${limit}`,
          messages: [],
        }),
        content: (content_id, offset) => ({
          type: 'content',
          content_id,
          offset,
          text: '',
          total_bytes: offset,
        }),
      },
      uploads: {
        put: (actorId, upload) => this.images.put(actorId, upload),
        check: (actorId, text) => this.images.check(actorId, text),
      },
      session: () => this.session,
      access: ({ deploymentProviders }) => this.access(deploymentProviders),
      facts: () => this.facts(),
      defaultPolicy: async () => this.published,
      sync: async () => {
        this.syncs++
      },
      keepAlive: (work) => this.#work.push(work),
      nowMs: () => this.nowMs,
      newId,
    }
    return new Operations(deps)
  }

  #engine(): OperationsEngine {
    const self = this
    return {
      get state() {
        return self.#checkpoint.state
      },
      get counters() {
        return self.#checkpoint.counters
      },
      get isSealed() {
        return self.session.keyId !== null
      },
      get startedWith() {
        return self.state === null ? null : loadRunInput(self.sql)
      },
      get row() {
        return liveRow(self.state, {
          sessionId: 'session',
          registrationEpoch: EPOCH,
          title: self.session.title,
          derivedTitle: null,
          workspace: null,
          runs: 0,
          lastMessageAtMs: null,
        })
      },
      turns: {
        get partial() {
          return self.#live?.partial ?? null
        },
        turn: (turnId) => (self.#live?.turnId === turnId ? self.#live : null),
      },
      dispatch: (input, context) => self.#dispatch(input, context),
      change: (work, { receipt, cut }) => {
        self.#transaction(() => {
          work(self.sql)
          if (receipt) saveReceipt(self.sql, typeof receipt === 'function' ? receipt() : receipt, self.nowMs)
        })
        if (cut) self.cuts++
      },
      saveSession: (session, { receipt } = {}) => {
        self.#transaction(() => {
          saveSession(self.sql, session)
          if (receipt) saveReceipt(self.sql, typeof receipt === 'function' ? receipt() : receipt, self.nowMs)
          saveCheckpoint(self.sql, self.#checkpoint)
        })
        return session
      },
    }
  }

  #transaction<T>(work: () => T): T {
    return this.sql.transaction(() => {
      const value = work()
      if (this.breaksNext) {
        this.breaksNext = false
        throw new Error('the disk is gone')
      }
      return value
    })
  }

  #dispatch(input: RunInputEvent, { access, facts, runInput, receipt, also }: StepRequest): StepTaken {
    const result = step(this.state, input, { nowMs: this.nowMs, newId })
    if ('refused' in result)
      return { ok: false, failure: result.refused, ...(result.remote ? { remote: result.remote } : {}) }
    if ('dropped' in result) return { ok: false, dropped: true }
    this.#checkpoint = this.#transaction(() => {
      const after = commitStep(this.sql, this.#checkpoint, result, {
        nowMs: this.nowMs,
        runInput,
        sealedId: null,
      })
      if (receipt) saveReceipt(this.sql, receipt, this.nowMs)
      also?.(this.sql)
      return after
    })
    if (this.breaksAfterNext) {
      this.breaksAfterNext = false
      throw new Error('nobody takes the effects')
    }
    this.events.push(...result.events)
    const { active } = result.state
    if (active && access && this.#live?.turnId !== active.turnId) {
      this.#live = makeLiveTurn(active.turnId, active.lease, access, facts)
      this.served.push({ ...this.#live })
    }
    if (!active && this.#live) forgetRequest(this.#live)
    const { phase, unsettled } = result.state
    if (!active && unsettled === null && phase.k === 'Idle') this.operations.runNext()
    return { ok: true }
  }

  #question() {
    const open = this.state === null ? null : openQuestion(this.state.phase)
    if (open === null) return null
    const calls = loadMessages(this.sql, 1, 1_000).flatMap((message) => message.calls)
    const call = calls.find(({ id }) => id === open.call.callId)
    const asked = parseQuestions(call?.arguments ?? {})?.[open.index]
    if (asked === undefined) throw new Error('no such question')
    const length = open.call.questions?.length ?? 0
    return { question_id: open.question.id, ...asked, position: open.index + 1, chain_length: length }
  }
}
