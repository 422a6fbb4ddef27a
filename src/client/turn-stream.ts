import type { ContentRef } from '../protocol/execution/ids.ts'
import type { TurnEvent } from '../protocol/execution/stream.ts'
import { RunResponse, type TurnResponse } from '../protocol/execution/turn.ts'
import { type Backoff, backoffMs, wait } from './backoff.ts'
import { readEvents } from './event-stream.ts'
import type { ClientFailure } from './failure.ts'
import { type HttpRequest, readJson, type Transport } from './http.ts'

/**
 * How a turn ended. `lost`: in an encrypted session, texts that the router asked to seal and does not hold any more (D20);
 * only of a run that was attached to, since whoever sent the request has it sent again.
 */
export type TurnEnd = { type: 'turn_end'; lost?: ContentRef[] | undefined } & TurnResponse

/**
 * What a streamed turn yields: the wire's events, each once, and at its end exactly one `turn_end` or one `failed`.
 * `turn_restarted` says that the router lost the turn in a crash and serves it anew: what came since the last
 * `turn_end` is void.
 */
export type StreamEvent =
  | Exclude<TurnEvent, { type: 'turn_end' }>
  | TurnEnd
  | { type: 'turn_restarted' }
  | { type: 'failed'; failure: ClientFailure }

/** How far a turn that the router serves was followed; `lastEventId` is absent before its first event. */
export type TurnPlace = { lastEventId?: string }

/** Told before each wait for the next attempt. */
export type OnReconnect = (attempt: { number: number; waitMs: number; reason: string }) => void

export type TurnStreamOptions = {
  transport: Transport
  /** The request that starts the turn, with its idempotency key; absent when only attaching. */
  open?: HttpRequest
  /** `GET …/run`, which attaches to the turn being served (D19). */
  attach: HttpRequest
  /** Resume an earlier stream after this event. */
  lastEventId?: string
  backoff: Backoff
  silenceMs?: number
  /** The session is encrypted: what a turn said may be in nobody's hands any more (D20). */
  sealed?: boolean
  onReconnect?: OnReconnect
  /**
   * Told when the router is known to serve the turn, and of every step in it; null when that is not known any more, since
   * the connection or the turn itself is lost.
   */
  onPlace?: (place: TurnPlace | null) => void
  signal?: AbortSignal
}

/** A router that loses the texts of one turn as often as this is not asked again. */
const MAX_LOST_TURNS = 3

const EVENT_STREAM = 'text/event-stream'

/**
 * One turn as one uninterrupted sequence of events. A connection that breaks is resumed by `GET …/run` with
 * `Last-Event-ID` (D19), with bounded backoff; events that come again are recognised by their id. Before the first
 * event, and when the router turns out to have lost the turn in a crash, the request itself is repeated under the same
 * idempotency key, which gives the turn that it started or starts it again (D20).
 */
export const streamTurn = (options: TurnStreamOptions): AsyncGenerator<StreamEvent, void, undefined> =>
  new TurnReader(options).run()

/** How one connection ended. */
type Ending =
  | { kind: 'turn_ended' }
  | { kind: 'failed'; failure: ClientFailure }
  /** Try again after a while, or at once. */
  | { kind: 'lost'; reason: ClientFailure }
  | { kind: 'again' }

/** What the next connection asks for. */
type Mode =
  /** The request that starts the turn. */
  | 'open'
  /** The turn that was begun, after the last event. */
  | 'resume'
  /** Whatever the run is at: another request has taken it over. */
  | 'attach'

class TurnReader {
  readonly #options: TurnStreamOptions
  readonly #seen = new Set<string>()
  #mode: Mode
  #lastEventId: string | undefined
  /** The turn that is followed, as its event ids name it. */
  #turn: string | undefined
  #answered = false
  #wasLost = false
  #repetitions = 0
  #lostTurns = 0
  /** The router failed at the request itself, once. */
  #failedInside = false
  /** Events without an id cannot be recognised when they come again. */
  #unidentified = false
  #restarting = false

  constructor(options: TurnStreamOptions) {
    this.#options = options
    this.#mode = options.open === undefined ? 'attach' : 'open'
    this.#lastEventId = options.lastEventId
  }

  async *run(): AsyncGenerator<StreamEvent, void, undefined> {
    const { backoff, signal, onReconnect } = this.#options
    for (;;) {
      const ending = yield* this.#connect()
      if (ending.kind === 'turn_ended') return
      if (ending.kind === 'again') continue
      if (ending.kind === 'failed') return yield failed(ending.failure)
      if (signal?.aborted) return yield ABORTED
      this.#options.onPlace?.(null)
      this.#wasLost = true
      this.#repetitions++
      const most = this.#answered ? backoff.attempts : backoff.openAttempts
      if (this.#repetitions > most) return yield failed(ending.reason)
      const waitMs = backoffMs(backoff, this.#repetitions)
      onReconnect?.({ number: this.#repetitions, waitMs, reason: ending.reason.message })
      await wait(waitMs, signal)
      if (signal?.aborted) return yield ABORTED
    }
  }

  async *#connect(): AsyncGenerator<StreamEvent, Ending, undefined> {
    const answer = await this.#options.transport.send(this.#request())
    if (!answer.ok) {
      const failure = answer.error
      if (this.#mode === 'open' && this.#wasLost && isConflict(failure)) {
        // The first copy did arrive, and is served or was overtaken: the run goes on from there.
        this.#mode = 'attach'
        this.#lastEventId = undefined
        return { kind: 'again' }
      }
      if (this.#mode === 'open' && isInternal(failure) && !this.#failedInside) {
        // So is answered what was under way while a new version was deployed. One that fails by itself fails again.
        this.#failedInside = true
        return { kind: 'lost', reason: failure }
      }
      return isPassing(failure, this.#mode) ? { kind: 'lost', reason: failure } : { kind: 'failed', failure }
    }
    this.#answered = true
    if (isEventStream(answer.value)) return yield* this.#readStream(answer.value)
    return yield* this.#readEnvelope(answer.value)
  }

  async *#readEnvelope(response: Response): AsyncGenerator<StreamEvent, Ending, undefined> {
    const run = await readJson(RunResponse, response)
    if (!run.ok) return { kind: 'failed', failure: run.error }
    const envelope = run.value
    if (envelope.status === 'running') return lost('the turn is still being served')
    if ('lost' in envelope && envelope.lost && envelope.lost.length > 0 && this.#options.open) {
      // Nobody has seen the end of this turn: the same request gives it again, as it is only kept in memory.
      if (++this.#lostTurns <= MAX_LOST_TURNS) return this.#sendAgain()
      const message = 'the router keeps losing what it has to say'
      return { kind: 'failed', failure: { kind: 'network', message } }
    }
    if (this.#restarting && envelope.status === 'completed') yield { type: 'turn_restarted' }
    yield { type: 'turn_end', ...envelope }
    return { kind: 'turn_ended' }
  }

  /** What an attached stream cannot tell: whether the texts of the turn are still there. */
  async *#readState(): AsyncGenerator<StreamEvent, Ending, undefined> {
    const { attach, transport, signal } = this.#options
    const answer = await transport.send({ ...attach, ...(signal ? { signal } : {}) })
    if (answer.ok) return yield* this.#readEnvelope(answer.value)
    const failure = answer.error
    return isPassing(failure, this.#mode) ? { kind: 'lost', reason: failure } : { kind: 'failed', failure }
  }

  async *#readStream(response: Response): AsyncGenerator<StreamEvent, Ending, undefined> {
    const events = readEvents(response.body ?? emptyBody(), this.#options.silenceMs)
    const attached = this.#mode !== 'open'
    // Resumed, the first event shows whether it is still the same turn.
    if (this.#mode !== 'resume' || this.#turn === undefined) this.#tellPlace()
    try {
      for (;;) {
        const next = await events.next()
        if (next.done) {
          if (next.value?.kind !== 'malformed') return lost(next.value?.message ?? 'the connection broke')
          const { message } = next.value
          return { kind: 'failed', failure: { kind: 'unexpected_body', status: 200, message } }
        }
        const { id, event } = next.value
        if (this.#isAnotherTurn(id)) return this.#sendAgain()
        // An end is never skipped: a turn that is over may number its few remaining events anew.
        if (event.type === 'turn_end') {
          if (attached && this.#options.sealed && saysSomething(event)) return yield* this.#readState()
          if (this.#restarting && event.status === 'completed') yield { type: 'turn_restarted' }
          yield event
          return { kind: 'turn_ended' }
        }
        if (id !== undefined) {
          if (this.#seen.has(id)) continue
          this.#seen.add(id)
          this.#lastEventId = id
          this.#turn = turnOf(id)
          this.#tellPlace()
        } else this.#unidentified = true
        if (this.#mode === 'open') this.#mode = 'resume'
        if (this.#restarting) {
          this.#restarting = false
          yield { type: 'turn_restarted' }
        }
        this.#repetitions = 0
        yield event
      }
    } finally {
      await events.return(undefined)
    }
  }

  /** Resumed, the router speaks of another turn: it has lost ours, and what it tells is not our answer. */
  #isAnotherTurn(id: string | undefined): boolean {
    if (this.#mode !== 'resume' || this.#turn === undefined || id === undefined) return false
    const turn = turnOf(id)
    return turn !== undefined && turn !== this.#turn
  }

  #tellPlace(): void {
    const lastEventId = this.#lastEventId
    this.#options.onPlace?.(lastEventId === undefined ? {} : { lastEventId })
  }

  #sendAgain(): Ending {
    this.#options.onPlace?.(null)
    this.#mode = 'open'
    this.#restarting = this.#seen.size > 0
    // A turn that is served anew may number its events like the lost one.
    this.#seen.clear()
    this.#turn = undefined
    this.#lastEventId = undefined
    return { kind: 'again' }
  }

  #request(): HttpRequest {
    const { open, attach, signal } = this.#options
    const request = this.#mode === 'open' && open ? open : attach
    // Without ids a replay would repeat what was already shown: then only the outcome is asked for.
    const asStream = this.#mode === 'open' || !this.#unidentified
    const headers: Record<string, string> = {
      ...request.headers,
      Accept: asStream ? EVENT_STREAM : 'application/json',
    }
    if (this.#mode !== 'open' && asStream && this.#lastEventId !== undefined)
      headers['Last-Event-ID'] = this.#lastEventId
    return { ...request, headers, ...(signal ? { signal } : {}) }
  }
}

/** The part of an event id that names its turn (D19); undefined for ids of another form. */
function turnOf(id: string): string | undefined {
  const dot = id.lastIndexOf('.')
  return dot > 0 ? id.slice(0, dot) : undefined
}

const failed = (failure: ClientFailure): StreamEvent => ({ type: 'failed', failure })
const lost = (message: string): Ending => ({ kind: 'lost', reason: { kind: 'network', message } })
const ABORTED = failed({ kind: 'aborted', message: 'stopped by the caller' })

const saysSomething = ({ status }: TurnEnd): boolean => status !== 'idle' && status !== 'error'

const isConflict = (failure: ClientFailure): boolean =>
  failure.kind === 'http' && failure.code === 'run_in_flight'

const isInternal = (failure: ClientFailure): boolean =>
  failure.kind === 'http' && failure.code === 'internal_error'

/**
 * Whether trying again can help: no answer, or an answer of something between us and the router. While attached also
 * the router's own 5xx, since the turn goes on without us; before that, an error envelope is the turn's outcome.
 */
function isPassing(failure: ClientFailure, mode: Mode): boolean {
  switch (failure.kind) {
    case 'network':
      return true
    case 'not_json':
      return mode !== 'open' || failure.status >= 500
    case 'http':
      return mode !== 'open' && (failure.status >= 500 || failure.status === 429)
    default:
      return false
  }
}

const isEventStream = (response: Response): boolean =>
  (response.headers.get('Content-Type') ?? '').toLowerCase().startsWith(EVENT_STREAM)

const emptyBody = (): ReadableStream<Uint8Array> =>
  new ReadableStream({ start: (controller) => controller.close() })
