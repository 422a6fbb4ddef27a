import { nextAlarm } from '../core/deadlines.ts'
import { type MemoryFact, withChanges } from '../core/memory.ts'
import { bundleOf, type ClearInput, messageRefs, openMessage, parseFact } from '../core/run/contents.ts'
import type { RunInputEvent } from '../core/run/inputs.ts'
import { type Standing, standingOf } from '../core/run/standing.ts'
import { LEASE_HEARTBEAT_MS, type RunState } from '../core/run/state.ts'
import { type Effect, type Step, type StepContext, step } from '../core/run/step.ts'
import { toPastCall } from '../core/transcript.ts'
import type { RunInput, TurnView } from '../core/turn-view.ts'
import { errorName } from '../protocol/error-name.ts'
import { callsRef, factRef, inputRef } from '../protocol/execution/content-refs.ts'
import type { ContinueRequest } from '../protocol/execution/continue.ts'
import { type Failure, failure } from '../protocol/execution/errors.ts'
import type { ContentRef } from '../protocol/execution/ids.ts'
import type { SealedMap } from '../protocol/execution/sealed.ts'
import type { TurnResponse } from '../protocol/execution/turn.ts'
import type { Access } from '../providers/access.ts'
import type { ProviderMap } from '../providers/provider.ts'
import { D1_DEADLINE_MS } from '../storage/d1/deadline.ts'
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
import { type KeyRecord, saveKey } from '../storage/session/idempotency.ts'
import { loadFacts, loadOwed, loadSealedFacts } from '../storage/session/memories.ts'
import { HeldRing, type RingStore, storedRing } from '../storage/session/ring-segments.ts'
import { isRunInput, loadClearInput, loadRunInput, openRunInput } from '../storage/session/run-input.ts'
import { isSealed, loadSealed, sealedAmong } from '../storage/session/sealed-contents.ts'
import { listedByRun, loadSession, type SessionRow, saveSession } from '../storage/session/session-row.ts'
import type { Sql } from '../storage/session/sql.ts'
import { ModelCatalogue } from './catalogue.ts'
import { type ListGateway, Listing } from './listing.ts'
import { forgetRequest, type LiveTurn, makeLiveTurn } from './live-turn.ts'
import { OutboxPump } from './outbox-pump.ts'
import { RING_FLUSH_MS, Ring } from './ring.ts'
import { RowSource } from './row-source.ts'
import { serveTurn } from './serve-turn.ts'
import { type History, TranscriptWindow } from './transcript-window.ts'
import { Vault } from './vault.ts'

export type EngineDeps = {
  sql: Sql
  db: D1Database
  /** Where the live list of a user is kept. */
  gateway(userId: string): ListGateway
  providers: ProviderMap
  /** Of a sealed session: what it is, and which key its envelopes are made with. */
  sealed: { sessionId: string; keyId: string } | null
  setAlarm(atMs: number | null): void
  /** Resolves when everything written so far is durable. */
  sync(): Promise<void>
  keepAlive(work: Promise<unknown>): void
}

/** What a request adds to the input that it causes. */
export type RequestContext = {
  access: Access | null
  /** What is remembered of the user, as D1 told it. */
  facts: readonly MemoryFact[]
  runInput: RunInput | null
  key: { key: string; digest: string } | null
}

export type Dispatched =
  | { ok: true; reply: Step['reply'] }
  | { ok: false; failure: Failure }
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
  readonly #ringStore: RingStore
  #ring: Ring
  readonly #transcript: TranscriptWindow
  readonly #vault = new Vault()
  /** The answer to the last request that needed no turn, where it may not be stored (D20). */
  #heldReply: { key: string; outcome: TurnResponse } | null = null
  #runInput: RunInput | null = null
  #live: LiveTurn | null = null
  #flushTimer: ReturnType<typeof setTimeout> | null = null
  /** Undefined until something had to be set: what the platform has stored is not asked for. */
  #alarmAtMs: number | null | undefined
  #abandoned = false
  #isStarting = false

  constructor(deps: EngineDeps) {
    this.#deps = deps
    this.catalogue = new ModelCatalogue(deps.providers)
    this.#checkpoint = loadCheckpoint(deps.sql)
    this.#ringStore = deps.sealed === null ? storedRing(deps.sql) : new HeldRing()
    this.#ring = new Ring(this.#ringStore, this.#checkpoint.counters.ringReserved)
    this.#transcript = new TranscriptWindow(deps.sql, { sealed: deps.sealed !== null })
    this.pump = new OutboxPump({
      sql: deps.sql,
      db: deps.db,
      checkpoint: () => this.#checkpoint,
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
    this.#isStarting = true
    if (this.#checkpoint.state?.active) this.dispatch({ type: 'object_started' })
    this.#isStarting = false
    // The alarm that was set with what is owed stays as it is. Moving it here would take it from an object that is started
    // by it before it has rung: it would be started for nothing again and again.
    if (this.#isFlushDue()) deps.keepAlive(this.pump.flush())
    this.listing.changed()
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
    if (this.#checkpoint.state === null) return null
    return this.#deps.sealed === null ? this.#input() : loadClearInput(this.#deps.sql)
  }

  #input(): RunInput {
    const { sql, sealed } = this.#deps
    // What is open is not kept longer than its text: the vault alone says what is in memory.
    if (sealed !== null) return openRunInput(sql, this.#vault.texts.get(inputRef(sealed.sessionId)) ?? null)
    this.#runInput ??= loadRunInput(sql)
    return this.#runInput
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
  saveSession(session: SessionRow): SessionRow {
    const { sql } = this.#deps
    const { outbox } = this.#checkpoint
    const counters = { ...this.#checkpoint.counters, rev: this.#checkpoint.counters.rev + 1 }
    const changed = { ...session, rev: counters.rev }
    const isListing = changed.listed || loadSession(sql)?.listed === true
    const listing = isListing ? (outbox.listing ?? Date.now()) : outbox.listing
    const after = { ...this.#checkpoint, counters, outbox: { ...outbox, session: true, listing } }
    sql.transaction(() => {
      saveSession(sql, changed)
      saveCheckpoint(sql, after)
    })
    this.#checkpoint = after
    this.#armAlarm()
    this.listing.changed()
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

  get ring(): Ring {
    return this.#ring
  }

  /** The turn that is being served, or the last one that was, while this object remembers it. */
  liveTurn(turnId: string): LiveTurn | null {
    return this.#live?.turnId === turnId ? this.#live : null
  }

  /** Runs the machine, stores what it says, then does it. */
  dispatch(input: RunInputEvent, request: RequestContext = NO_REQUEST): Dispatched {
    const nowMs = Date.now()
    const result = step(this.#checkpoint.state, input, this.#context(nowMs, request))
    if ('refused' in result) return { ok: false, failure: result.refused }
    if ('dropped' in result) return { ok: false, dropped: true }
    this.#commit(result, nowMs, request)
    this.#remember(result, request)
    const { active } = result.state
    if (active && request.access && this.#live?.turnId !== active.turnId) {
      // The turn that this one supersedes still has to be cut: it is found by the effect below.
      const superseded = this.#live
      this.#live = makeLiveTurn(active.turnId, active.lease, request.access, this.#withOwed(request.facts))
      if (superseded) {
        this.#cancel(superseded, result.effects)
        superseded.channel.retire()
      }
    } else if (this.#live) {
      if (result.writes.some(({ w }) => w === 'memory')) this.#live.facts = this.#withOwed(this.#live.facts)
      this.#cancel(this.#live, result.effects)
    }
    for (const effect of result.effects) this.#perform(effect)
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
        factOf: (key) => this.#sealedFacts().find((fact) => fact.key === key)?.id ?? null,
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
  #commit(result: Step, nowMs: number, { runInput, key }: RequestContext): void {
    const { sql, sealed } = this.#deps
    try {
      this.#checkpoint = sql.transaction(() => {
        const ringReserved = this.#ring.store(result.events, nowMs)
        const counters = { ...this.#checkpoint.counters, ringReserved }
        const after = commitStep(sql, { ...this.#checkpoint, counters }, result, {
          nowMs,
          runInput,
          sealedId: sealed?.sessionId ?? null,
        })
        if (key) saveKey(sql, key.key, keyRecord(key.digest, result, sealed !== null), nowMs)
        return after
      })
    } catch (error) {
      this.#checkpoint = loadCheckpoint(sql)
      this.#ring = new Ring(this.#ringStore, this.#checkpoint.counters.ringReserved)
      throw error
    }
    this.#transcript.changed(this.#checkpoint.outbox.messagesFrom)
    if (runInput) this.#rows.begins(runInput)
    if (sealed !== null) this.#runInput = null
    else if (runInput) this.#runInput = runInput
    else if (result.writes.some(({ w }) => w === 'injected_input')) this.#runInput = null
    this.#stopFlushTimer()
    this.#armAlarm()
    this.listing.changed()
  }

  #perform(effect: Effect): void {
    switch (effect.e) {
      case 'serve_turn': {
        const live = this.#live
        if (live?.lease === effect.lease) this.#deps.keepAlive(this.#serve(live))
        return
      }
      case 'answer': {
        const live = this.liveTurn(effect.turnId)
        if (live) this.#deps.keepAlive(this.#answer(live, effect))
        return
      }
      case 'cancel_turn':
        // The turn that dispatched goes on by itself; a cancelled one was cut when the step was committed.
        return
    }
  }

  #cancel(live: LiveTurn, effects: Effect[]): void {
    const cut = effects.some((effect) => effect.e === 'cancel_turn' && effect.turnId === live.turnId)
    if (!cut) return
    live.abort.abort()
    forgetRequest(live)
    live.channel.end({ k: 'superseded', traceId: this.#checkpoint.state?.traceId ?? '' })
  }

  async #serve(live: LiveTurn): Promise<void> {
    try {
      await serveTurn(live, {
        providers: this.#deps.providers,
        state: () => this.#requireState(),
        view: () => this.view(live),
        closed: () => this.closed(),
        memories: () => this.#memories(live),
        catalogue: () => this.catalogue.view(live.access, Date.now()),
        list: (provider, models, signal, localOnly) =>
          this.catalogue.list(provider, models, live.access, signal, localOnly),
        dispatch: (input) => this.dispatch(input).ok,
        textArrived: (type, text) => this.#textArrived(type, text),
        routed: ({ purpose, provider, model, local, chosenBy, origin }) =>
          console.info(
            `route ${purpose} ${provider}/${model} local=${local} by=${JSON.stringify(chosenBy)} to ${origin}`,
          ),
      })
    } catch (error) {
      // An error may quote what it stumbled over; of a sealed session nothing of that is logged.
      const told = this.#deps.sealed === null ? error : errorName(error)
      console.error(`turn ${live.turnId} failed inside the router:`, told)
      this.dispatch({
        type: 'turn_failed',
        lease: live.lease,
        failure: failure('internal_error', 'the router failed while serving this turn'),
        partial: live.partial,
        call: live.partial?.call ?? null,
      })
    }
  }

  /** What is told is durable first; the copy in D1 gets a moment (U03, D23). */
  async #answer(live: LiveTurn, { outcome }: Extract<Effect, { e: 'answer' }>): Promise<void> {
    await this.#deps.sync()
    await this.pump.flush()
    forgetRequest(live)
    live.channel.end({ k: 'outcome', outcome })
  }

  /** Everything that is remembered for a request: what D1 told of the user, and what this object knows (EC 16). */
  memories(facts: readonly MemoryFact[]): MemoryFact[] {
    return [...this.#withOwed(facts), ...this.#sessionFacts()]
  }

  #memories(live: LiveTurn): MemoryFact[] {
    return [...live.facts, ...this.#sessionFacts()]
  }

  #sessionFacts(): MemoryFact[] {
    return this.#deps.sealed === null ? loadFacts(this.#deps.sql) : this.#sealedFacts()
  }

  /** The facts of a sealed session that are open. */
  #sealedFacts(): (MemoryFact & { key: string })[] {
    const facts = loadSealedFacts(this.#deps.sql)
    const replaced = new Set(facts.map(({ replaces }) => replaces))
    return facts.flatMap(({ id, localOnly, updatedAtMs }) => {
      const text = replaced.has(id) ? undefined : this.#vault.texts.get(factRef(id))
      return text === undefined
        ? []
        : [
            {
              scope: 'session' as const,
              id,
              ...parseFact(text),
              ...(localOnly ? { localOnly: true as const } : {}),
              updatedAtMs,
            },
          ]
    })
  }

  /** What of a sealed session has to be opened before the turn can be decided; null when everything is in memory. */
  closed(): SealedMap | null {
    const { sealed, sql } = this.#deps
    if (sealed === null) return null
    const { transcript, pastAnswers } = this.#transcriptOf(this.#requireState().runId)
    const needed = [
      inputRef(sealed.sessionId),
      ...transcript.flatMap(messageRefs),
      ...pastAnswers.map(({ id }) => callsRef(id)),
      ...loadSealedFacts(sql).map(({ id }) => factRef(id)),
    ]
    const isOpen = [...sealedAmong(sql, needed)].every((ref) => this.#vault.texts.has(ref))
    this.#vault.keepOnly(new Set([...needed, ...(this.#requireState().unsealed?.refs ?? [])]))
    // All of it or nothing: of what is open already the object may be evicted before the rest comes.
    return isOpen ? null : loadSealed(sql, needed)
  }

  /** The user's facts with those changes of this session that D1 had not got when it told them. */
  #withOwed(facts: readonly MemoryFact[]): MemoryFact[] {
    const owed = this.#checkpoint.outbox.memory ? loadOwed(this.#deps.sql) : []
    return withChanges(
      facts,
      owed.map(({ change }) => change),
    )
  }

  /** Everything that the turn is decided from. */
  view(live: LiveTurn): TurnView {
    const state = this.#requireState()
    return {
      runInput: this.#input(),
      runId: state.runId,
      firstTurn: state.turn === 1,
      planning: state.planning,
      planApproved: state.planApproved,
      remoteDeclined: state.remoteDeclined,
      ...(state.localDeclined ? { localDeclined: true } : {}),
      ...this.history(state.runId),
      memories: this.#memories(live),
    }
  }

  /** What of the transcript takes part in a turn of this run; null: of one that begins. */
  history(runId: string | null): History {
    const history = this.#transcriptOf(runId)
    if (this.#deps.sealed === null) return history
    const textOf = (ref: ContentRef) => this.#vault.texts.get(ref)
    return {
      ...history,
      transcript: history.transcript.map((said) => openMessage(said, textOf)),
      pastCalls: history.pastAnswers.flatMap((said) => openMessage(said, textOf).calls.map(toPastCall)),
    }
  }

  /** As it is stored. */
  #transcriptOf(runId: string | null): History {
    return this.#transcript.read(this.#checkpoint.counters.message, runId)
  }

  /** What a message that supersedes takes over from the turn it cuts. */
  partial(): LiveTurn['partial'] {
    const { state } = this.#checkpoint
    return state?.active && this.#live?.turnId === state.active.turnId ? this.#live.partial : null
  }

  /** The object's alarm rang: renew the lease, send what D1 is owed. Waits for no model, tool or host (D21). */
  async alarm(): Promise<void> {
    this.#alarmAtMs = null
    const active = this.#checkpoint.state?.active
    // A gateway keeps the row of a run in memory at first: it may have lost what it was told.
    this.listing.ring({ again: active != null })
    if (active && this.#live?.lease === active.lease)
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
    this.#stopFlushTimer()
    this.#live?.abort.abort()
    this.#live?.channel.end({ k: 'superseded', traceId: this.#checkpoint.state?.traceId ?? '' })
    this.#live = null
  }

  #textArrived(type: 'text_delta' | 'reasoning_delta', text: string): void {
    const full = this.#ring.delta(type, text, Date.now())
    if (full) this.#flushRing()
    else this.#flushTimer ??= setTimeout(() => this.#flushRing(), RING_FLUSH_MS)
  }

  #flushRing(): void {
    this.#stopFlushTimer()
    if (!this.#ring.hasUnstored) return
    const { sql } = this.#deps
    sql.transaction(() => {
      const ringReserved = this.#ring.store([], Date.now())
      if (ringReserved === this.#checkpoint.counters.ringReserved) return
      this.#checkpoint = { ...this.#checkpoint, counters: { ...this.#checkpoint.counters, ringReserved } }
      saveCheckpoint(sql, this.#checkpoint)
    })
  }

  #stopFlushTimer(): void {
    if (this.#flushTimer !== null) clearTimeout(this.#flushTimer)
    this.#flushTimer = null
  }

  #saveOutbox(outbox: Outbox): void {
    this.#checkpoint = { ...this.#checkpoint, outbox }
    this.#deps.sql.transaction(() => saveCheckpoint(this.#deps.sql, this.#checkpoint))
    this.#armAlarm()
  }

  #armAlarm(): void {
    if (this.#abandoned || this.#isStarting) return
    const { state } = this.#checkpoint
    const at = nextAlarm({
      leaseHeartbeatAtMs: state?.active ? state.active.leaseUntilMs - 2 * LEASE_HEARTBEAT_MS : null,
      outboxRetryAtMs: this.#flushAtMs(),
      // What is on its way needs no alarm: if it is lost with the object, the gateway asks for it after a while.
      listingRetryAtMs: this.#checkpoint.outbox.listing === null ? null : this.listing.retryAtMs,
    })
    if (at === this.#alarmAtMs) return
    this.#alarmAtMs = at
    this.#deps.setAlarm(at)
  }

  /**
   * When the alarm has to send what D1 is owed. A flush follows each commit and takes the alarm back when it is through;
   * the alarm is for the one that fails, or that a crash leaves nobody to start (D26).
   */
  #flushAtMs(): number | null {
    const { state, outbox } = this.#checkpoint
    if (isDrained(outbox)) return null
    const nowMs = Date.now()
    if (outbox.retryAtMs !== null && outbox.retryAtMs > nowMs) return outbox.retryAtMs
    return state?.active ? null : (this.#alarmAtMs ?? nowMs + D1_DEADLINE_MS)
  }

  #requireState(): RunState {
    const { state } = this.#checkpoint
    if (state === null) throw new Error('invariant broken: a turn without a run')
    return state
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
