import type { MemoryFact } from '../core/memory.ts'
import { needsSnapshot, projectEvents } from '../core/remote/project.ts'
import { bundleOf, type ClearInput } from '../core/run/contents.ts'
import type { RunInputEvent } from '../core/run/inputs.ts'
import { type Standing, standingOf } from '../core/run/standing.ts'
import { isOver, type RunState } from '../core/run/state.ts'
import { type Step, type StepContext, step } from '../core/run/step.ts'
import type { RunInput } from '../core/turn-view.ts'
import { inputRef } from '../protocol/execution/content-refs.ts'
import type { ContinueRequest } from '../protocol/execution/continue.ts'
import { type Failure, failure } from '../protocol/execution/errors.ts'
import type { ContentRef } from '../protocol/execution/ids.ts'
import type { TurnResponse } from '../protocol/execution/turn.ts'
import type { RemoteErrorCode } from '../protocol/remote/errors.ts'
import { MAX_LISTED } from '../protocol/remote/limits.ts'
import type { RemoteSessionInfo } from '../protocol/remote/session-info.ts'
import type { RemoteSessionSettings } from '../protocol/remote/session-settings.ts'
import type { Access } from '../providers/access.ts'
import type { ProviderMap } from '../providers/provider.ts'
import { newId } from '../storage/ids.ts'
import {
  type Checkpoint,
  type Counters,
  isDrained,
  loadCheckpoint,
  nextMemoryAtMs,
  type Outbox,
  saveCheckpoint,
} from '../storage/session/checkpoint.ts'
import { commitStep } from '../storage/session/commit.ts'
import { owingReceipt } from '../storage/session/copy-receipts.ts'
import { type KeyRecord, saveKey } from '../storage/session/idempotency.ts'
import { countQueued, queuedHeads } from '../storage/session/prompt-queue.ts'
import { type StoredReceipt, saveReceipt } from '../storage/session/receipts.ts'
import { HeldRing, type RingStore, storedRing } from '../storage/session/ring-segments.ts'
import { isRunInput } from '../storage/session/run-input.ts'
import { isSealed, loadSealed } from '../storage/session/sealed-contents.ts'
import { listedByRun, loadSession, type SessionRow, saveSession } from '../storage/session/session-row.ts'
import type { Sql } from '../storage/session/sql.ts'
import { ModelCatalogue } from './catalogue.ts'
import type { EventGateway } from './event-pusher.ts'
import { Feed, type FeedStart } from './feed.ts'
import { type ListGateway, Listing } from './listing.ts'
import { ObjectAlarm } from './object-alarm.ts'
import type { ChangeOptions } from './operations/ports.ts'
import { OutboxPump } from './outbox-pump.ts'
import { RemoteView } from './remote-view.ts'
import { RowSource } from './row-source.ts'
import { TurnMaterial } from './turn-material.ts'
import { TurnServer } from './turn-server.ts'
import { Vault } from './vault.ts'

export type EngineDeps = {
  sql: Sql
  db: D1Database
  /** Where the live list of a user is kept. */
  gateway(userId: string): ListGateway
  /** Where the devices of a user are told of events. */
  events(userId: string): EventGateway
  providers: ProviderMap
  /** Of a sealed session: what it is, and which key its envelopes are made with. */
  sealed: { sessionId: string; keyId: string } | null
  setAlarm(atMs: number | null): void
  /** Resolves when everything written so far is durable. */
  sync(): Promise<void>
  keepAlive(work: Promise<unknown>): void
  /** The run may have come to its end: what was queued behind it can go on. */
  becameIdle(): void
  /** Something waits that nobody will ask for: a queued prompt, or a turn that was cut off. */
  hasSuccessor?(): boolean
  /** What devices are shown besides the run. */
  settings?(): RemoteSessionSettings | null
  /** Null: that is not known yet. */
  takesImages?(): boolean | null
}

/** What a request adds to the input that it causes. */
export type RequestContext = {
  access: Access | null
  /** What is remembered of the user, as D1 told it. */
  facts: readonly MemoryFact[]
  runInput: RunInput | null
  key: { key: string; digest: string } | null
  /** Of a device's mutation: what it will be told if the step is accepted (D29). */
  receipt?: StoredReceipt
  /** Stored in the same transaction as the step. */
  also?: (sql: Sql) => void
}

export type Dispatched =
  | { ok: true; reply: Step['reply'] }
  | { ok: false; failure: Failure; remote?: RemoteErrorCode }
  | { ok: false; dropped: true }

const NO_REQUEST: RequestContext = { access: null, facts: [], runInput: null, key: null }

/**
 * The shell around the run machine: decide, commit, act. The whole of a step is stored in one transaction before
 * anything that it says is done or told. What is in memory here can be lost at any line.
 */
export class RunEngine {
  readonly #deps: EngineDeps
  readonly catalogue: ModelCatalogue
  readonly pump: OutboxPump
  readonly listing: Listing
  readonly #rows: RowSource
  #checkpoint: Checkpoint
  /** What turns are decided from. */
  readonly material: TurnMaterial
  readonly feed: Feed
  readonly remote: RemoteView
  readonly #vault = new Vault()
  /** The answer to the last request that needed no turn, where it may not be stored (D20). */
  #heldReply: { key: string; outcome: TurnResponse } | null = null
  /** The turn that is being served. */
  readonly turns: TurnServer
  readonly #alarm: ObjectAlarm
  #abandoned = false
  /** The step that is being stored, for what is told of it in the same transaction. */
  #committing: Step | null = null
  /** When that step is. */
  #committingAtMs: number | null = null
  #isStarting = false

  constructor(deps: EngineDeps) {
    this.#deps = deps
    this.catalogue = new ModelCatalogue(deps.providers)
    this.#checkpoint = loadCheckpoint(deps.sql)
    this.material = new TurnMaterial({
      sql: deps.sql,
      sealed: deps.sealed,
      vault: this.#vault,
      checkpoint: () => this.#checkpoint,
    })
    this.pump = new OutboxPump({
      sql: deps.sql,
      db: deps.db,
      checkpoint: () => this.#checkpoint,
      labels: (session) => this.#rows.labels(session, this.#checkpoint),
      saveOutbox: (outbox) => this.#saveOutbox(outbox),
    })
    this.#rows = new RowSource(deps.sql)
    this.listing = new Listing({
      gateway: deps.gateway,
      session: () => loadSession(deps.sql),
      row: (session) => this.#rows.row(session, this.#checkpoint),
      isServing: () => this.#isServing,
      owedSinceMs: () => this.#checkpoint.outbox.listing,
      paid: () => this.#listingPaid(),
      failed: () => this.#armAlarm(),
      lost: (epoch, byRun) => this.#registrationLost(epoch, byRun),
      keepAlive: deps.keepAlive,
    })
    const store = deps.sealed === null ? storedRing(deps.sql) : new HeldRing()
    this.remote = new RemoteView({
      sql: deps.sql,
      state: () => this.#committing?.state ?? this.#checkpoint.state,
      session: () => this.#requireSession(),
      row: () => this.row,
      counters: () => this.#checkpoint.counters,
      live: () => this.turns.answer(this.#nowMs),
      textOf: (ref) => this.#committing?.contents?.[ref] ?? this.#vault.texts.get(ref),
      nowMs: () => this.#nowMs,
      pending: () => ({ queued: queuedHeads(deps.sql, MAX_LISTED), total: countQueued(deps.sql) }),
      ...(deps.settings === undefined ? {} : { settings: deps.settings }),
      takesImages: () => this.takesImages,
    })
    this.feed = new Feed(
      {
        store,
        gateway: deps.events,
        registration: () => {
          const session = loadSession(deps.sql)
          return session === null || !session.listed || session.epoch === null || session.deletedAtMs !== null
            ? null
            : { userId: session.userId, sessionId: session.sessionId, epoch: session.epoch }
        },
        snapshot: ({ id, sequence }) => ({
          id,
          sequence,
          body: JSON.stringify(this.remote.snapshot({ id, sequence })),
        }),
        clock: () => ({
          timing: this.remote.timing(),
          thoughts: this.turns.answer(this.#nowMs)?.thoughts ?? null,
        }),
        save: (work) => {
          this.#checkpoint = deps.sql.transaction(() => {
            work()
            const after = { ...this.#checkpoint, counters: this.#withFeed(this.#checkpoint.counters) }
            saveCheckpoint(deps.sql, after)
            return after
          })
        },
        reserved: () => this.#checkpoint.counters.ringReserved,
        newId,
        failed: () => this.#armAlarm(),
        keepAlive: deps.keepAlive,
      },
      this.#feedStart(store),
    )
    this.turns = new TurnServer({
      providers: deps.providers,
      catalogue: this.catalogue,
      material: this.material,
      feed: this.feed,
      sealed: deps.sealed,
      state: () => this.#checkpoint.state,
      dispatch: (input) => this.dispatch(input).ok,
      settled: async () => {
        await deps.sync()
        await this.pump.flush()
      },
      keepAlive: deps.keepAlive,
    })
    this.#alarm = new ObjectAlarm({
      checkpoint: () => this.#checkpoint,
      listingRetryAtMs: () => this.listing.retryAtMs,
      followersRetryAtMs: () => this.feed.retryAtMs,
      hasSuccessor: () => deps.hasSuccessor?.() === true,
      setAlarm: deps.setAlarm,
    })
  }

  /** The object came up: what a crash left is cleared, and what is owed goes on. Called once, when everything around it is there. */
  start(): void {
    this.#isStarting = true
    if (this.#checkpoint.state?.active) this.dispatch({ type: 'object_started' })
    this.#isStarting = false
    // The alarm that was set with what is owed stays as it is. Moving it here would take it from an object that is started
    // by it before it has rung: it would be started for nothing again and again.
    if (this.#isFlushDue()) this.#deps.keepAlive(this.pump.flush())
    this.listing.changed()
    // What the devices were told before the object went is not known.
    this.feed.announce()
    this.#deps.becameIdle()
  }

  get state(): RunState | null {
    return this.#checkpoint.state
  }

  get counters(): Readonly<Counters> {
    return this.#checkpoint.counters
  }

  get isSealed(): boolean {
    return this.#deps.sealed !== null
  }

  /** What stays clear of what the current run was started with; null before the first. */
  get startedWith(): ClearInput | null {
    return this.material.startedWith
  }

  /** Where the run of a sealed session stands (D20); null before its first. */
  get standing(): Standing | null {
    const { state } = this.#checkpoint
    return state === null || this.#deps.sealed === null
      ? null
      : standingOf(state, {
          held: this.#vault.texts,
          sealedOf: (refs) => loadSealed(this.#deps.sql, refs),
        })
  }

  /** Refuses an opened input that is not the one that was sealed; null for any other message (EC 17.3). */
  refuseBundle(message: ContinueRequest): Failure | null {
    const { sealed, sql } = this.#deps
    if (sealed === null || message.type !== 'decrypted' || this.#checkpoint.state === null) return null
    const ref = inputRef(sealed.sessionId)
    const bundle = message.data.plaintext[ref]
    if (bundle === undefined || isRunInput(sql, bundle)) return null
    return failure('invalid_request', 'the plaintext of the run input is not what was to be sealed', { ref })
  }

  /** The texts of a sealed session that are in memory. */
  get held(): ReadonlyMap<ContentRef, string> {
    return this.#vault.texts
  }

  /** The outcome that was told under this key, while it is in memory. */
  heldReply(key: string): TurnResponse | null {
    return this.#heldReply?.key === key ? this.#heldReply.outcome : null
  }

  /** Stores a change of the session's own row, and owes D1 and the live list the new one. */
  saveSession(session: SessionRow, how: ChangeOptions = {}): SessionRow {
    const { sql } = this.#deps
    const { outbox } = this.#checkpoint
    const counters = { ...this.#checkpoint.counters, rev: this.#checkpoint.counters.rev + 1 }
    const changed = { ...session, rev: counters.rev }
    const before = loadSession(sql)
    const isListing = changed.listed || before?.listed === true
    const listing = isListing ? (outbox.listing ?? Date.now()) : outbox.listing
    const next = { ...this.#checkpoint, counters, outbox: { ...outbox, session: true, listing } }
    // Whoever follows shows the title, and a registration begins with a state of its own (RF 12).
    const isListedAnew = before !== null && before.epoch !== changed.epoch
    const cut = isListedAnew || (before !== null && before.title !== changed.title)
    if (isListedAnew) this.feed.registered()
    this.#storeChange(next, () => saveSession(sql, changed), { cut, ...how })
    this.#armAlarm()
    return changed
  }

  /** The gateway took a registration off its list by itself, since the session was idle or others were newer (D03). */
  delisted(epoch: number): void {
    this.listing.wasTakenOff(epoch)
    this.#registrationLost(epoch, false)
  }

  /** The gateway has not heard of the session for long, and asks for its row. */
  relist(): void {
    const { outbox } = this.#checkpoint
    this.#checkpoint = { ...this.#checkpoint, outbox: { ...outbox, listing: outbox.listing ?? Date.now() } }
    this.listing.ring({ again: true })
  }

  /** A run lists its session again, under another registration; without one it is not listed any more. */
  #registrationLost(epoch: number, byRun: boolean): void {
    const session = loadSession(this.#deps.sql)
    if (session === null || session.epoch !== epoch || session.deletedAtMs !== null) return
    const lost = { ...session, listed: false }
    const after = byRun || this.#isServing ? listedByRun(lost, Date.now()) : lost
    if (!session.listed && !after.listed) return
    this.saveSession(after)
    if (!this.#isServing) this.#deps.keepAlive(this.pump.flush())
  }

  /** What is paid is noted in memory only: it is stored with whatever is stored next. */
  #listingPaid(): void {
    const { outbox } = this.#checkpoint
    if (outbox.listing === null) return
    this.#checkpoint = { ...this.#checkpoint, outbox: { ...outbox, listing: null } }
    this.#armAlarm()
  }

  /** What is told with a step is not later than what the step stores. */
  get #nowMs(): number {
    return this.#committingAtMs ?? Date.now()
  }

  get #isServing(): boolean {
    return this.#checkpoint.state?.active != null
  }

  /** Changes what is remembered of this session, and owes D1 the change. `change` is told the time of it. */
  changeMemory<T>(change: (sql: Sql, atMs: number) => T): T {
    const memoryAtMs = nextMemoryAtMs(this.#checkpoint.counters, Date.now())
    const counters = { ...this.#checkpoint.counters, memoryAtMs }
    const after = { ...this.#checkpoint, counters, outbox: { ...this.#checkpoint.outbox, memory: true } }
    const changed = this.#deps.sql.transaction(() => {
      saveCheckpoint(this.#deps.sql, after)
      return change(this.#deps.sql, memoryAtMs)
    })
    this.#checkpoint = after
    this.#armAlarm()
    return changed
  }

  /** Runs the machine, stores what it says, then does it. */
  dispatch(input: RunInputEvent, request: RequestContext = NO_REQUEST): Dispatched {
    const nowMs = Date.now()
    const result = step(this.#checkpoint.state, input, this.#context(nowMs, request))
    if ('refused' in result)
      return {
        ok: false,
        failure: result.refused,
        ...(result.remote === undefined ? {} : { remote: result.remote }),
      }
    if ('dropped' in result) return { ok: false, dropped: true }
    this.#commit(result, nowMs, request)
    this.#remember(result, request)
    this.turns.stepStored(result, request)
    if (isOver(result.state)) this.#deps.becameIdle()
    return { ok: true, reply: result.reply }
  }

  #context(nowMs: number, { runInput }: RequestContext): StepContext {
    const { sealed, sql } = this.#deps
    if (sealed === null) return { nowMs, newId }
    const held = this.#vault.texts
    return {
      nowMs,
      newId,
      sealing: {
        ...sealed,
        held,
        isSealed: (ref) => isSealed(sql, ref),
        factOf: (key) => this.material.sealedFacts().find((fact) => fact.key === key)?.id ?? null,
        bundle: runInput === null ? null : bundleOf(runInput),
      },
    }
  }

  /** What a step of a sealed session leaves in memory, and in memory only. */
  #remember({ writes, contents, state, reply }: Step, { key }: RequestContext): void {
    if (this.#deps.sealed === null) return
    for (const write of writes) if (write.w === 'dropped') this.#vault.drop(write.refs)
    if (contents) this.#vault.add(contents)
    this.#vault.settle(state)
    if (key && reply?.by === 'outcome') this.#heldReply = { key: key.key, outcome: reply.outcome }
  }

  /** Stores one step whole. If storing fails, memory goes back to what is stored. */
  #commit(result: Step, nowMs: number, { runInput, key, receipt, also }: RequestContext): void {
    const { sql, sealed } = this.#deps
    const before = this.#checkpoint.state
    // What is taken out of the transcript no event tells either.
    const isCut =
      needsSnapshot(result.events, before, result.state) || result.writes.some(({ w }) => w === 'dropped')
    const isTold = isCut || result.events.length > 0
    const { last } = this.feed
    this.#committingAtMs = nowMs
    try {
      this.#checkpoint = sql.transaction(() => {
        // What was said until now is the old turn's, as its clocks are.
        if (isTold) this.feed.closeForStep()
        const epoch = loadSession(sql)?.epoch
        const owing = receipt ? owingReceipt(sql, this.#checkpoint) : this.#checkpoint
        const after = commitStep(sql, owing, result, {
          nowMs,
          runInput,
          sealedId: sealed?.sessionId ?? null,
          tell: (counters) => {
            this.#committing = result
            if (runInput) this.#rows.begins(runInput)
            if (loadSession(sql)?.epoch !== epoch) this.feed.registered()
            this.feed.storeStep(projectEvents(result.events, this.remote), isCut ? newId() : null)
            return this.#withFeed(isCut ? this.#withSight(counters) : counters)
          },
        })
        if (key) saveKey(sql, key.key, keyRecord(key.digest, result, sealed !== null), nowMs)
        if (receipt) saveReceipt(sql, receipt, nowMs)
        also?.(sql)
        return after
      })
    } catch (error) {
      this.#checkpoint = loadCheckpoint(sql)
      this.feed.reset(last)
      throw error
    } finally {
      this.#committing = null
      this.#committingAtMs = null
    }
    const isInjected = result.writes.some(({ w }) => w === 'injected_input')
    this.material.changed(this.#checkpoint.outbox.messagesFrom, runInput ?? (isInjected ? 'other' : null))
    this.#armAlarm()
    this.listing.changed()
    if (isTold) this.feed.stepStored({ ended: result.state.active === null })
    if (receipt) this.#receiptStored()
  }

  /** D1 gets it with the end of the turn that it belongs to, or else now (D26). */
  #receiptStored(): void {
    this.#armAlarm()
    if (this.#isFlushDue()) this.#deps.keepAlive(this.pump.flush())
  }

  /** The object's alarm rang: renew the lease, send what D1 is owed. Waits for no model, tool or host (D21). */
  async alarm(): Promise<void> {
    this.#alarm.rang()
    const active = this.#checkpoint.state?.active
    // A gateway keeps the row of a run in memory at first: it may have lost what it was told.
    this.listing.ring({ again: active != null })
    this.feed.announce()
    if (active && this.turns.holds(active.lease))
      this.dispatch({ type: 'lease_renewed', lease: active.lease })
    if (this.#isFlushDue()) await this.pump.flush()
    this.#armAlarm()
  }

  /** What a turn owes D1 before its end goes with the rest of it. */
  #isFlushDue(): boolean {
    const { state, outbox } = this.#checkpoint
    if (isDrained(outbox)) return false
    return outbox.retryAtMs === null ? !state?.active : outbox.retryAtMs <= Date.now()
  }

  /** Cuts the turn that is being served without a trace: the session is going away, and the alarm is its deletion’s. */
  abandon(): void {
    this.#abandoned = true
    this.pump.abandon()
    this.listing.close()
    this.feed.close()
    this.turns.abandon()
  }

  /** A picture may be uploaded: as far as was known when the state last changed without an event, so that it changes with it. */
  get takesImages(): boolean {
    return this.#deps.takesImages !== undefined && this.#checkpoint.counters.blind !== true
  }

  /** What was known stays so until something else is: an object that came up has to ask its models anew. */
  #withSight({ blind, ...counters }: Counters): Counters {
    const takes = this.#deps.takesImages?.() ?? null
    const isBlind = takes === null ? blind === true : !takes
    return isBlind ? { ...counters, blind: true } : counters
  }

  #withFeed(counters: Counters): Counters {
    const { watched: _, ...rest } = counters
    const { ringReserved, lost, cut, watched } = this.feed.record
    return {
      ...rest,
      ringReserved,
      cut,
      ...(lost > 0 ? { registeredAt: lost } : {}),
      ...(watched ? { watched: true as const } : {}),
    }
  }

  /**
   * Where the events go on. An object that died while it served a turn may have shown some that it had not stored: their
   * numbers are not given out again. Otherwise the newest one is stored (D33).
   */
  #feedStart(store: RingStore): FeedStart {
    const { state, counters } = this.#checkpoint
    const { ringReserved: reserved, registeredAt = 0, cut, watched = false } = counters
    const stored = store.extent()?.lastSeq ?? null
    const next = stored === null || state?.active ? reserved + 1 : stored + 1
    // A ring that is in memory alone went with the object before: whatever was told is not known any more (D04, D47).
    const isLost = this.#deps.sealed !== null && next > 1
    const fresh = { sequence: next - 1, id: newId() }
    return {
      next,
      reserved,
      lost: isLost ? next - 1 : registeredAt,
      cut: isLost ? fresh : (cut ?? fresh),
      watched,
    }
  }

  /** A device begins to follow: from now on the gateway is told of events. */
  watch(): void {
    if (this.feed.watch()) this.change(() => {}, {})
  }

  /** Stores a change that is no step of the machine, with the receipt of whoever asked for it. `cut`: no event tells of it. */
  change(work: (sql: Sql) => void, how: ChangeOptions): void {
    this.#storeChange(this.#checkpoint, work, how)
  }

  #storeChange(next: Checkpoint, work: (sql: Sql) => void, { receipt, cut }: ChangeOptions): void {
    const { sql } = this.#deps
    const nowMs = Date.now()
    const { last } = this.feed
    const before = this.#checkpoint
    this.#checkpoint = next
    try {
      sql.transaction(() => {
        work(sql)
        if (receipt) {
          this.#checkpoint = owingReceipt(sql, this.#checkpoint)
          saveReceipt(sql, typeof receipt === 'function' ? receipt() : receipt, nowMs)
        }
        if (cut) {
          this.feed.closeForStep()
          this.feed.storeStep([], newId())
          this.#checkpoint = { ...this.#checkpoint, counters: this.#withSight(this.#checkpoint.counters) }
        }
        // `work` may have changed it as well.
        this.#checkpoint = { ...this.#checkpoint, counters: this.#withFeed(this.#checkpoint.counters) }
        saveCheckpoint(sql, this.#checkpoint)
      })
    } catch (error) {
      this.#checkpoint = before
      this.feed.reset(last)
      throw error
    }
    this.#armAlarm()
    this.listing.changed()
    if (receipt) this.#receiptStored()
    if (cut) this.feed.announce()
  }

  #requireSession(): SessionRow {
    const session = loadSession(this.#deps.sql)
    if (session === null) throw new Error('invariant broken: an engine without its session')
    return session
  }

  /** The session's row of the live list, as it is now. */
  get row(): RemoteSessionInfo {
    const session = this.#requireSession()
    const checkpoint = { ...this.#checkpoint, state: this.#committing?.state ?? this.#checkpoint.state }
    return this.#rows.row({ ...session, epoch: session.epoch ?? 0 }, checkpoint)
  }

  #saveOutbox(outbox: Outbox): void {
    this.#checkpoint = { ...this.#checkpoint, outbox }
    this.#deps.sql.transaction(() => saveCheckpoint(this.#deps.sql, this.#checkpoint))
    this.#armAlarm()
  }

  #armAlarm(): void {
    if (!this.#abandoned && !this.#isStarting) this.#alarm.arm()
  }
}

function keyRecord(digest: string, { reply }: Step, isSealed: boolean): KeyRecord {
  if (reply?.by === 'outcome') {
    // An outcome with texts to seal is kept in memory only (D20).
    const isKept = !isSealed || reply.outcome.status === 'idle'
    return { digest, result: isKept ? { outcome: reply.outcome } : 'not_kept' }
  }
  if (reply?.by === 'turn') return { digest, result: { turnId: reply.turnId } }
  throw new Error('invariant broken: a keyed request without a reply')
}
