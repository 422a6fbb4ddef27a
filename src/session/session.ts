import { DurableObject } from 'cloudflare:workers'
import { refuseFact } from '../core/memory.ts'
import { isKeptLocal } from '../core/privacy/kept-local.ts'
import { bundleOf } from '../core/run/contents.ts'
import { sessionUsage } from '../core/usage.ts'
import { errorName } from '../protocol/error-name.ts'
import type { ContinueRequest } from '../protocol/execution/continue.ts'
import { type Failure, failure } from '../protocol/execution/errors.ts'
import type { ExecuteRequest } from '../protocol/execution/execute.ts'
import type { MemoryRecord } from '../protocol/execution/memory.ts'
import type { PreviewResponse } from '../protocol/execution/preview.ts'
import type { SessionDetail, SessionSummary, UpdateSessionRequest } from '../protocol/execution/session.ts'
import type { Trace } from '../protocol/execution/trace.ts'
import type { SessionUsageResponse } from '../protocol/execution/usage.ts'
import { isMutation } from '../protocol/remote/operation-kinds.ts'
import type { RemoteSessionInfo } from '../protocol/remote/session-info.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { toWireTime } from '../protocol/time.ts'
import { type Caller, makeAccess } from '../providers/access.ts'
import { type ProviderConfig, parseProviderConfig, textVars } from '../providers/config.ts'
import { makeProviders } from '../providers/registry.ts'
import { openDatabase } from '../storage/d1/database.ts'
import { D1_DEADLINE_MS, withDeadline } from '../storage/d1/deadline.ts'
import { writeChanges } from '../storage/d1/memory.ts'
import { writeReceipts } from '../storage/d1/receipts.ts'
import { expireTraceCopies } from '../storage/d1/retention.ts'
import type { SessionCutoffs } from '../storage/d1/session-cutoffs.ts'
import { deleteSession } from '../storage/d1/sessions.ts'
import { digestOf } from '../storage/digest.ts'
import { makeSql } from '../storage/object-sql.ts'
import { retryDelayMs, retryDelaySinceMs } from '../storage/outbox.ts'
import { owedReceipts } from '../storage/session/copy-receipts.ts'
import { loadKey } from '../storage/session/idempotency.ts'
import { deleteFact, type FactPatch, loadOwed, putFact, toRecord } from '../storage/session/memories.ts'
import { migrateSession } from '../storage/session/migrations.ts'
import { loadPolicies, policiesOfTurns } from '../storage/session/policies.ts'
import {
  listedAnew,
  loadSession,
  NOT_LISTED,
  type SessionRow,
  saveSession,
  toSummary,
} from '../storage/session/session-row.ts'
import type { Sql } from '../storage/session/sql.ts'
import {
  eachCall,
  eachTrace,
  expireTraces,
  hasTracesBefore,
  tracesStartMs,
} from '../storage/session/turns.ts'
import { outcomeAnswer } from './answers.ts'
import { refuseLargeBundle, refuseOverfull } from './bounds.ts'
import { type RequestContext, RunEngine } from './engine.ts'
import type { EventGateway } from './event-pusher.ts'
import { eventPage, eventStream } from './event-stream.ts'
import { isExpired } from './expiry.ts'
import { lineStream, sessionRecords } from './export.ts'
import { listFacts } from './facts.ts'
import type { ListGateway } from './listing.ts'
import { refuseLongResults } from './long-results.ts'
import { refuseLongWords } from './long-words.ts'
import { previewTurn } from './preview.ts'
import type {
  Actor,
  AttachAnswer,
  AttachRequest,
  EventsAnswer,
  EventsView,
  NewSession,
  OperationAnswer,
  OperationRequest,
  PullAnswer,
  ReceiptStatus,
  SessionRpc,
  TurnAnswer,
  TurnOptions,
} from './rpc.ts'
import { RunAnswers } from './run-answers.ts'
import { clearMessages, openTraces, sealedMessages } from './sealed-views.ts'
import { SessionDevices } from './session-devices.ts'
import { isSettledByDevice, withSettled } from './settled.ts'
import { policiesOf, traceWindow } from './traces.ts'
import { ANSWER_WAIT_MS, atMost } from './waiting.ts'

/** What the object needs of its deployment; providers are read from the text variables. */
export type SessionEnv = { DB: D1Database; GATEWAY: DurableObjectNamespace }

/** The deletion mark of a session that nobody was told of: the time of no deletion that anybody asked for. */
const UNMADE_MS = 0

const notFound = (): Failure => failure('session_not_found', 'there is no such session')

/**
 * One coding session: the object that owns it. Its methods read: who asks, is the session there, let the machine decide,
 * answer. What it owns and what it only copies is in docs/architecture.md.
 */
export class Session extends DurableObject<SessionEnv> implements SessionRpc {
  readonly #sql: Sql
  readonly #answers: RunAnswers
  readonly #config: ProviderConfig
  #engine: RunEngine | null = null
  #devices: SessionDevices | null = null
  #alarmFailures = 0

  constructor(ctx: DurableObjectState, env: SessionEnv) {
    super(ctx, env)
    this.#sql = makeSql(ctx.storage)
    this.#answers = new RunAnswers(this.#sql)
    this.#config = parseProviderConfig(textVars(env))
    for (const { failure: problem } of this.#config.problems) console.warn(problem.message)
    // An object that holds no session makes no tables: a stray id leaves nothing behind.
    if (this.#sql.rows("SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'").length > 0)
      this.#start()
  }

  #start(): RunEngine {
    migrateSession(this.#sql)
    const session = loadSession(this.#sql)
    const engine = new RunEngine({
      sql: this.#sql,
      sealed:
        session === null || session.keyId === null
          ? null
          : { sessionId: session.sessionId, keyId: session.keyId },
      db: this.env.DB,
      // The stub's generated type is too deep to spell out; the interface is what it serves.
      gateway: (userId) => this.env.GATEWAY.getByName(userId) as unknown as ListGateway,
      events: (userId) => this.env.GATEWAY.getByName(userId) as unknown as EventGateway,
      providers: makeProviders(this.#config),
      setAlarm: (atMs) =>
        this.ctx.waitUntil(atMs === null ? this.ctx.storage.deleteAlarm() : this.ctx.storage.setAlarm(atMs)),
      sync: () => this.ctx.storage.sync(),
      keepAlive: (work) => this.ctx.waitUntil(work),
      becameIdle: () => this.#devices?.wake(),
      hasSuccessor: () => this.#devices?.hasSuccessor() === true,
      settings: () => this.#devices?.settings() ?? null,
      takesImages: () => this.#devices?.takesImages() ?? null,
    })
    this.#engine = engine
    this.#devices = new SessionDevices({
      sql: this.#sql,
      engine,
      secrets: this.#config.secrets,
      database: () => openDatabase(this.env.DB),
      sync: () => this.ctx.storage.sync(),
      keepAlive: (work) => this.ctx.waitUntil(work),
    })
    // A stray object may have tables and no session: it died while it was made.
    if (session !== null) engine.start()
    return engine
  }

  /** Makes the session. Called once, before anyone else knows its id. */
  async create({ sessionId, userId, title, scope, keyId }: NewSession): Promise<SessionSummary> {
    const nowMs = Date.now()
    const row: SessionRow = {
      sessionId,
      userId,
      title,
      scope,
      keyId,
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
      archivedAtMs: null,
      deletedAtMs: null,
      rev: 0,
      ...NOT_LISTED,
    }
    migrateSession(this.#sql)
    this.#sql.transaction(() => saveSession(this.#sql, row))
    if (this.#engine === null) this.#start()
    return toSummary(row)
  }

  async detail(userId: string): Promise<Result<SessionDetail, Failure>> {
    const found = this.#open(userId)
    if (!found.ok) return found
    const { session } = found.value
    return ok({
      id: session.sessionId,
      title: session.title ?? '',
      ...(session.scope === null ? {} : { scope: session.scope }),
      ...(session.keyId === null ? {} : { key_id: session.keyId }),
      created_at: toWireTime(session.createdAtMs),
      updated_at: toWireTime(session.updatedAtMs),
      messages: session.keyId === null ? clearMessages(this.#sql) : sealedMessages(this.#sql),
      metadata: {},
    })
  }

  /** Changes title, archive state or sharing; works on archived sessions, which is how they come back (EC 2.9, D03). */
  async update(userId: string, patch: UpdateSessionRequest): Promise<Result<SessionSummary, Failure>> {
    const found = this.#open(userId, { archivedToo: true })
    if (!found.ok) return found
    const { session, engine } = found.value
    const nowMs = Date.now()
    const archivedAtMs = patch.archived == null ? session.archivedAtMs : patch.archived ? nowMs : null
    if (patch.shared && archivedAtMs !== null)
      return err(failure('invalid_request', 'an archived session is not listed live: restore it first'))
    // Nobody could stop a turn in an archived session: it would look like none (U28).
    if (patch.archived && engine.state?.active) {
      const message = { type: 'break' } as const
      const partial = engine.turns.partial
      engine.dispatch({
        type: 'continuation_received',
        digest: 'archived',
        message,
        partial,
        localOnly: false,
      })
    }
    const patched = {
      ...session,
      title: patch.title ?? session.title,
      archivedAtMs,
      updatedAtMs: nowMs,
      listed: session.listed && archivedAtMs === null && patch.shared !== false,
      sharingOff: patch.shared == null ? session.sharingOff : !patch.shared,
    }
    const changed = engine.saveSession(patch.shared && !session.listed ? listedAnew(patched, nowMs) : patched)
    // What was queued waited for the session to come back.
    if (archivedAtMs === null) this.#devices?.wake()
    await this.ctx.storage.sync()
    await Promise.all([engine.pump.flush(), atMost(engine.listing.told(), ANSWER_WAIT_MS)])
    return ok(toSummary(changed))
  }

  /** The gateway took the session off the live list by itself; of a registration that is over this is no news (D03). */
  async delisted(userId: string, epoch: number): Promise<void> {
    const found = this.#open(userId, { archivedToo: true })
    if (!found.ok) return
    found.value.engine.delisted(epoch)
    await this.ctx.storage.sync()
  }

  async relist(userId: string): Promise<boolean> {
    const found = this.#open(userId, { archivedToo: true })
    if (found.ok) found.value.engine.relist()
    return found.ok
  }

  async share(userId: string): Promise<RemoteSessionInfo | null> {
    const found = this.#open(userId)
    if (!found.ok) return null
    const { session, engine } = found.value
    if (!session.listed) {
      engine.saveSession({ ...listedAnew(session, Date.now()), sharingOff: false })
      await this.ctx.storage.sync()
      await atMost(engine.listing.told(), ANSWER_WAIT_MS)
    }
    return engine.row
  }

  async attach(userId: string, request: AttachRequest): Promise<AttachAnswer> {
    return this.#devicesOf(userId)?.attach(request) ?? { k: 'stale' }
  }

  async pull(userId: string, request: AttachRequest & { after: number }): Promise<PullAnswer> {
    return this.#devicesOf(userId)?.pull(request) ?? { k: 'stale' }
  }

  /** The events for programs that hold no socket; nobody is told of them for this, and nothing is stored (D38). */
  async events(userId: string, view: EventsView): Promise<EventsAnswer> {
    const found = this.#open(userId)
    if (!found.ok) return { kind: 'failure', failure: found.error }
    const { feed } = found.value.engine
    if (view.stream)
      return { kind: 'stream', stream: eventStream(feed, view.cursor, () => this.#open(userId).ok) }
    return { kind: 'page', body: await eventPage(feed, view.cursor, view.waitMs) }
  }

  async operate(userId: string, actor: Actor, request: OperationRequest): Promise<OperationAnswer> {
    const devices = this.#devicesOf(userId)
    if (devices !== null) return devices.operate(actor, request)
    const result = { type: 'error', code: 'not_found', message: 'there is no such session' } as const
    return { receipt: isMutation(request.operation.type) ? 'rejected' : null, result }
  }

  async requestStatus(
    userId: string,
    actorId: string,
    target: { requestId: string; registrationEpoch: number | null },
  ): Promise<ReceiptStatus | null> {
    return this.#devicesOf(userId, { archivedToo: true })?.status(actorId, target) ?? null
  }

  #devicesOf(userId: string, which = {}): SessionDevices | null {
    return this.#open(userId, which).ok ? this.#devices : null
  }

  /** Deletes everything. From the first line on the session answers nothing, whatever D1 does (D26). */
  async remove(
    userId: string,
    { unmade = false }: { unmade?: boolean } = {},
  ): Promise<Result<true, Failure>> {
    const found = this.#open(userId, { archivedToo: true })
    if (!found.ok) return found
    await this.#delete(found.value, unmade ? UNMADE_MS : Date.now())
    return ok(true)
  }

  /** Removes the session if, by its own row, its time is over: whoever listed it may have read an older one (D31). */
  async expire(userId: string, cutoffs: SessionCutoffs): Promise<Result<boolean, Failure>> {
    const found = this.#open(userId, { archivedToo: true })
    if (!found.ok) return found
    const { session, engine } = found.value
    if (engine.state?.active || !isExpired(session, cutoffs)) return ok(false)
    await this.#delete(found.value, Date.now())
    return ok(true)
  }

  async expireTraces(userId: string, beforeMs: number): Promise<Result<number, Failure>> {
    const found = this.#open(userId, { archivedToo: true })
    if (!found.ok) return found
    const { engine } = found.value
    let { session } = found.value
    if (hasTracesBefore(this.#sql, beforeMs)) {
      // For its new revision: under it the change beats every copy that is still on its way (D26).
      session = engine.saveSession(session)
      this.#sql.transaction(() => expireTraces(this.#sql, beforeMs, session.rev))
    }
    const { sessionId, rev } = session
    const tracesFromMs = Math.max(beforeMs, tracesStartMs(this.#sql) ?? Date.now())
    await expireTraceCopies(openDatabase(this.env.DB), { sessionId, beforeMs, tracesFromMs, rev })
    await engine.pump.flush()
    return ok(tracesFromMs)
  }

  async exportLines(userId: string): Promise<Result<ReadableStream<Uint8Array>, Failure>> {
    const found = this.#open(userId, { archivedToo: true })
    return found.ok ? ok(lineStream(sessionRecords(this.#sql, found.value.session))) : found
  }

  async execute(caller: Caller, body: ExecuteRequest, options: TurnOptions): Promise<TurnAnswer> {
    const access = await makeAccess(caller, this.#config.secrets)
    const policyDigest = `sha256:${await digestOf(JSON.stringify(body.policy))}`
    return this.#admit(caller, options, access, body, (engine, request) => {
      const tooMuch =
        refuseOverfull(this.#sql, engine.state, engine.counters, { digest: options.digest, message: null }) ??
        (engine.isSealed ? refuseLargeBundle(bundleOf(body), body.input.text) : null)
      if (tooMuch) return { ok: false, failure: tooMuch }
      return engine.dispatch(
        {
          type: 'execute_requested',
          digest: options.digest,
          text: body.input.text,
          command: body.input.command ?? null,
          driver: { kind: 'http' },
          policyDigest,
          localOnly: isKeptLocal(body),
          keyed: Object.keys(caller.credentials),
        },
        request,
      )
    })
  }

  async continueRun(caller: Caller, body: ContinueRequest, options: TurnOptions): Promise<TurnAnswer> {
    const access = await makeAccess(caller, this.#config.secrets)
    const settled: { in: RunEngine | null } = { in: null }
    const answer = await this.#admit(caller, options, access, null, (engine, request) => {
      const asked = { digest: options.digest, message: body }
      const tooMuch =
        refuseLongResults(body) ??
        refuseLongWords(this.#sql, engine.state, asked, engine.isSealed) ??
        refuseOverfull(this.#sql, engine.state, engine.counters, asked) ??
        engine.refuseBundle(body)
      if (tooMuch) return { ok: false, failure: tooMuch }
      const { state } = engine
      const startedWith = body.type === 'inject' ? engine.startedWith : null
      const dispatched = engine.dispatch(
        {
          type: 'continuation_received',
          digest: options.digest,
          message: body,
          partial: engine.turns.partial,
          localOnly: startedWith !== null && isKeptLocal(startedWith),
          keyed: Object.keys(caller.credentials),
        },
        request,
      )
      if (dispatched.ok || !('failure' in dispatched)) return dispatched
      if (isSettledByDevice(state, body)) settled.in = engine
      return { ok: false, failure: withSettled(this.#sql, state, body, dispatched.failure) }
    })
    // A device was first: whoever answers now learns where that has led (D05).
    const engine = settled.in
    return engine === null ? answer : this.#answers.afterDevice(engine, engine.row.session_id, options.stream)
  }

  /** Takes back what the user allowed for the rest of the run; works while a turn is served (U23). */
  async revokeGrant(userId: string, grantId: string): Promise<Result<true, Failure>> {
    const found = this.#open(userId)
    if (!found.ok) return found
    const revoked = found.value.engine.dispatch({ type: 'grant_revoked', grantId })
    if (!revoked.ok) {
      if ('dropped' in revoked) throw new Error('invariant broken: a request was dropped')
      return err(revoked.failure)
    }
    await this.ctx.storage.sync()
    return ok(true)
  }

  /** The current envelope, or the turn that is being served: as a state, or as its stream from any event on (D19). */
  async currentRun(
    userId: string,
    view: { stream: boolean; lastEventId: string | null },
  ): Promise<TurnAnswer> {
    const found = this.#open(userId)
    if (!found.ok) return { kind: 'failure', failure: found.error }
    const { session, engine } = found.value
    return this.#answers.current(engine, session.sessionId, view)
  }

  async preview(caller: Caller, body: ExecuteRequest): Promise<Result<PreviewResponse, Failure>> {
    const found = this.#open(caller.userId)
    if (!found.ok) return found
    const { engine } = found.value
    const { facts = [] } = caller
    return previewTurn({
      body,
      // What is sealed a preview cannot ask to have opened (EC 2.13).
      ...(engine.isSealed ? NO_HISTORY : engine.material.history(null)),
      memories: engine.isSealed ? [...facts] : engine.material.memories(facts),
      catalogue: engine.catalogue,
      access: await makeAccess(caller, this.#config.secrets),
    })
  }

  async traces(
    userId: string,
    { limit, offset }: { limit: number; offset: number },
  ): Promise<Result<Trace, Failure>> {
    const found = this.#open(userId)
    if (!found.ok) return found
    const { engine } = found.value
    const events = traceWindow(eachTrace(this.#sql), { limit, offset }, (trace) =>
      openTraces(this.#sql, engine, trace),
    )
    const named = policiesOf(events, (turnIds) => policiesOfTurns(this.#sql, turnIds))
    const policies = loadPolicies(this.#sql, named)
    return ok({
      session_id: found.value.session.sessionId,
      events,
      ...(Object.keys(policies).length === 0 ? {} : { policies }),
    })
  }

  async usage(userId: string): Promise<Result<SessionUsageResponse, Failure>> {
    const found = this.#open(userId)
    if (!found.ok) return found
    return ok(sessionUsage(eachCall(this.#sql)))
  }

  async facts(userId: string): Promise<Result<MemoryRecord[], Failure>> {
    const found = this.#open(userId, { archivedToo: true })
    return found.ok ? ok(listFacts(this.#sql, found.value.session)) : found
  }

  async putMemory(userId: string, fact: FactPatch): Promise<Result<MemoryRecord, Failure>> {
    const found = this.#open(userId, { archivedToo: true })
    if (!found.ok) return found
    const { session, engine } = found.value
    if (session.keyId !== null)
      return err(failure('invalid_request', 'the facts of an encrypted session are not kept in clear'))
    const stored = engine.changeMemory((sql, atMs) => putFact(sql, fact, atMs))
    if ('kind' in stored) return err(refuseFact(stored))
    await this.ctx.storage.sync()
    await engine.pump.flush()
    return ok(toRecord(session.sessionId, stored))
  }

  async deleteMemory(userId: string, memoryId: string): Promise<Result<boolean, Failure>> {
    const found = this.#open(userId, { archivedToo: true })
    if (!found.ok) return found
    const { engine } = found.value
    const deleted = engine.changeMemory((sql, atMs) => deleteFact(sql, memoryId, atMs))
    await this.ctx.storage.sync()
    await engine.pump.flush()
    return ok(deleted)
  }

  override async alarm(): Promise<void> {
    try {
      const session = this.#engine === null ? null : loadSession(this.#sql)
      if (session?.deletedAtMs != null) await this.#finishDeletion(session)
      else {
        await this.#engine?.alarm()
        this.#devices?.wake()
      }
      this.#alarmFailures = 0
    } catch (error) {
      // A throw would make the platform repeat the alarm at its own pace; deadlines are ours to keep.
      console.error('alarm failed:', error)
      this.#alarmFailures++
      await this.ctx.storage.setAlarm(Date.now() + retryDelayMs(this.#alarmFailures + 2))
    }
  }

  /** The session, if it is this user's, alive and, unless said otherwise, not archived. All else looks alike (EC 2). */
  #open(
    userId: string,
    { archivedToo = false } = {},
  ): Result<{ session: SessionRow; engine: RunEngine }, Failure> {
    const engine = this.#engine
    const session = engine === null ? null : loadSession(this.#sql)
    if (engine === null || session === null || session.userId !== userId) return err(notFound())
    if (session.deletedAtMs !== null || (session.archivedAtMs !== null && !archivedToo))
      return err(notFound())
    return ok({ session, engine })
  }

  /** A request that may start a turn: a known key is answered from what it did, everything else goes to the machine. */
  async #admit(
    { userId, facts = [] }: Caller,
    { stream, digest, idempotencyKey }: TurnOptions,
    access: RequestContext['access'],
    runInput: ExecuteRequest | null,
    dispatch: (engine: RunEngine, request: RequestContext) => ReturnType<RunEngine['dispatch']>,
  ): Promise<TurnAnswer> {
    const found = this.#open(userId)
    if (!found.ok) return { kind: 'failure', failure: found.error }
    const { engine } = found.value
    if (idempotencyKey !== null) {
      const known = loadKey(this.#sql, idempotencyKey, Date.now())
      if (known && known.digest !== digest) {
        const other = failure('invalid_request', 'this idempotency key was used with another request')
        return { kind: 'failure', failure: other }
      }
      if (known) {
        const answer = await this.#answers.again(engine, idempotencyKey, known.result, stream)
        if (answer) return answer
      }
    }
    const key = idempotencyKey === null ? null : { key: idempotencyKey, digest }
    const dispatched = dispatch(engine, { access, facts, runInput, key })
    if (!dispatched.ok) {
      if ('dropped' in dispatched) throw new Error('invariant broken: a request was dropped')
      return { kind: 'failure', failure: dispatched.failure }
    }
    const { reply } = dispatched
    if (!reply) throw new Error('invariant broken: a request without a reply')
    if (reply.by === 'turn') {
      const answer = await this.#answers.ofTurn(engine, reply.turnId, stream)
      if (!answer) throw new Error('invariant broken: a turn that was just started is unknown')
      return answer
    }
    await this.ctx.storage.sync()
    await engine.pump.flush()
    return outcomeAnswer('idle', reply.outcome, { stream, endOnly: false })
  }

  async #delete(
    { session, engine }: { session: SessionRow; engine: RunEngine },
    deletedAtMs: number,
  ): Promise<void> {
    const deleted = { ...session, deletedAtMs }
    engine.abandon()
    this.#sql.transaction(() => saveSession(this.#sql, deleted))
    // Stored together with the mark: a crash from here on leaves somebody to finish.
    this.ctx.waitUntil(this.ctx.storage.setAlarm(Date.now() + D1_DEADLINE_MS))
    await this.ctx.storage.sync()
    const deletion = this.#finishDeletion(deleted)
    this.ctx.waitUntil(deletion)
    await atMost(deletion, ANSWER_WAIT_MS)
  }

  async #finishDeletion(session: SessionRow): Promise<void> {
    const { userId, sessionId, deletedAtMs } = session
    try {
      const db = openDatabase(this.env.DB)
      // What is remembered of the user outlives the session: D1 has it before the rest goes (EC 16).
      const owed = loadOwed(this.#sql).filter(({ change }) => change.scope === 'user')
      await withDeadline(writeChanges(db, { userId, sessionId }, owed), D1_DEADLINE_MS)
      // Devices may ask later what became of what they asked for.
      await withDeadline(writeReceipts(db, { userId, sessionId }, owedReceipts(this.#sql)), D1_DEADLINE_MS)
      const withKey = deletedAtMs === UNMADE_MS
      await withDeadline(deleteSession(db, userId, sessionId, { withKey }), D1_DEADLINE_MS)
      // Whoever lists sessions finds it nowhere any more: nor does a device.
      if (this.#engine !== null) await withDeadline(this.#engine.listing.end(session), D1_DEADLINE_MS)
    } catch (error) {
      console.warn(`deleting a session's copy failed: ${errorName(error)}`)
      await this.ctx.storage.setAlarm(Date.now() + retryDelaySinceMs(deletedAtMs ?? 0, Date.now()))
      return
    }
    this.#engine = null
    this.#devices = null
    await this.ctx.storage.deleteAlarm()
    await this.ctx.storage.deleteAll()
  }
}

const NO_HISTORY = { transcript: [], olderMessages: 0, pastCalls: [] }
