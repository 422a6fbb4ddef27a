import type { TurnEvent } from '../protocol/execution/stream.ts'
import { RunResponse } from '../protocol/execution/turn.ts'
import { type Backoff, backoffMs, wait } from './backoff.ts'
import { readEvents } from './event-stream.ts'
import type { ClientFailure } from './failure.ts'
import { type HttpRequest, readJson, type Transport } from './http.ts'

/**
 * What a streamed turn yields: the wire's events, each once, and at its end exactly one `turn_end` or one `failed`.
 * `turn_restarted` says that the router lost the turn in a crash and serves it anew: what came since the last
 * `turn_end` is void.
 */
export type StreamEvent = TurnEvent | { type: 'turn_restarted' } | { type: 'failed'; failure: ClientFailure }

/** Told before each wait for the next attempt. */
export type OnReconnect = (attempt: { number: number; waitMs: number; reason: string }) => void

export type TurnStreamOptions = {
  transport: Transport
  /** The request that starts the turn, with its idempotency key; absent when only attaching. */
  open?: HttpRequest
  /** `GET …/run`, which attaches to the turn being served (D19). */
  attach: HttpRequest
  /**
   * Whether an `idle` found after a lost connection may mean that the router crashed before its first checkpoint, so
   * that the same request with the same key is sent once more (D20).
   */
  repeatWhenIdle?: boolean
  /** Resume an earlier stream after this event. */
  lastEventId?: string
  backoff: Backoff
  silenceMs?: number
  onReconnect?: OnReconnect
  signal?: AbortSignal
}

const EVENT_STREAM = 'text/event-stream'

/**
 * One turn as one uninterrupted sequence of events. A connection that breaks is resumed by `GET …/run` with
 * `Last-Event-ID` (D19), with bounded backoff; events that come again are recognised by their id. Before the router
 * has answered, the request itself is repeated under the same idempotency key (D20).
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

class TurnReader {
  readonly #options: TurnStreamOptions
  readonly #seen = new Set<string>()
  #lastEventId: string | undefined
  /** The next request is the one that starts the turn; later ones attach to it. */
  #opening: boolean
  #answered = false
  #wasLost = false
  #repetitions = 0
  /** Events without an id cannot be recognised when they come again. */
  #unidentified = false
  #repeatedForIdle = false
  #restarting = false

  constructor(options: TurnStreamOptions) {
    this.#options = options
    this.#opening = options.open !== undefined
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
    const opening = this.#opening
    const answer = await this.#options.transport.send(this.#request())
    if (!answer.ok) {
      const failure = answer.error
      if (opening && this.#wasLost && failure.kind === 'http' && failure.code === 'run_in_flight') {
        // The first copy did arrive: the turn that holds the lock is ours.
        this.#opening = false
        return { kind: 'again' }
      }
      return isPassing(failure, opening) ? { kind: 'lost', reason: failure } : { kind: 'failed', failure }
    }
    this.#answered = true
    this.#opening = false
    if (isEventStream(answer.value)) return yield* this.#readStream(answer.value, opening)
    const run = await readJson(RunResponse, answer.value)
    if (!run.ok) return { kind: 'failed', failure: run.error }
    if (run.value.status === 'running') return lost('the turn is still being served')
    return yield* this.#end({ type: 'turn_end', ...run.value }, opening)
  }

  async *#readStream(response: Response, opening: boolean): AsyncGenerator<StreamEvent, Ending, undefined> {
    const events = readEvents(response.body ?? emptyBody(), this.#options.silenceMs)
    try {
      for (;;) {
        const next = await events.next()
        if (next.done) {
          if (next.value?.kind !== 'malformed') return lost(next.value?.message ?? 'the connection broke')
          return {
            kind: 'failed',
            failure: { kind: 'unexpected_body', status: 200, message: next.value.message },
          }
        }
        const { id, event } = next.value
        // An end is never skipped: it may be the stored outcome of a repeated request.
        if (event.type === 'turn_end') return yield* this.#end(event, opening)
        if (id !== undefined) {
          if (this.#seen.has(id)) continue
          this.#seen.add(id)
          this.#lastEventId = id
        }
        if (this.#restarting) {
          this.#restarting = false
          yield { type: 'turn_restarted' }
        }
        if (id === undefined) this.#unidentified = true
        this.#repetitions = 0
        yield event
      }
    } finally {
      await events.return(undefined)
    }
  }

  async *#end(
    event: Extract<TurnEvent, { type: 'turn_end' }>,
    opening: boolean,
  ): AsyncGenerator<StreamEvent, Ending, undefined> {
    const { repeatWhenIdle, signal } = this.#options
    const repeat = event.status === 'idle' && repeatWhenIdle === true && this.#wasLost && !opening
    if (!repeat || this.#repeatedForIdle || signal?.aborted) {
      yield event
      return { kind: 'turn_ended' }
    }
    this.#repeatedForIdle = true
    this.#restarting = this.#seen.size > 0 || this.#unidentified
    this.#opening = true
    this.#lastEventId = undefined
    return { kind: 'again' }
  }

  #request(): HttpRequest {
    const { open, attach, signal } = this.#options
    const request = this.#opening && open ? open : attach
    // Without ids a replay would repeat what was already shown: then only the outcome is asked for.
    const asStream = this.#opening || !this.#unidentified
    const headers: Record<string, string> = {
      ...request.headers,
      Accept: asStream ? EVENT_STREAM : 'application/json',
    }
    if (!this.#opening && asStream && this.#lastEventId !== undefined)
      headers['Last-Event-ID'] = this.#lastEventId
    return { ...request, headers, ...(signal ? { signal } : {}) }
  }
}

const failed = (failure: ClientFailure): StreamEvent => ({ type: 'failed', failure })
const lost = (message: string): Ending => ({ kind: 'lost', reason: { kind: 'network', message } })
const ABORTED = failed({ kind: 'aborted', message: 'stopped by the caller' })

/**
 * Whether trying again can help: no answer, or an answer of something between us and the router. While attached also
 * the router's own 5xx, since the turn goes on without us; before that, an error envelope is the turn's outcome.
 */
function isPassing(failure: ClientFailure, opening: boolean): boolean {
  switch (failure.kind) {
    case 'network':
      return true
    case 'not_json':
      return !opening || failure.status >= 500
    case 'http':
      return !opening && (failure.status >= 500 || failure.status === 429)
    default:
      return false
  }
}

const isEventStream = (response: Response): boolean =>
  (response.headers.get('Content-Type') ?? '').toLowerCase().startsWith(EVENT_STREAM)

const emptyBody = (): ReadableStream<Uint8Array> =>
  new ReadableStream({ start: (controller) => controller.close() })
