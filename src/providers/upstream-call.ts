import type { ProviderErrorCategory } from '../protocol/execution/models.ts'
import { firstCharacter, readStart } from './body-start.ts'
import {
  CALL_TOTAL_MS,
  FIRST_BYTE_MS,
  MAX_BUFFERED_BYTES,
  MAX_STREAMED_BYTES,
  PATIENT_FIRST_BYTE_MS,
  SILENCE_MS,
} from './bounds.ts'
import { EgressViolation, type Fetch, RedirectRefused } from './egress.ts'
import { EventMeter, type Framing } from './event-meter.ts'
import { categorize, retryAfterMs } from './failures.ts'
import type { ProviderFailure } from './provider.ts'
import { describeFailure, type ProviderSaid, type Redaction, readErrorBody } from './provider-message.ts'

export type Deadlines = {
  /** Until the first byte of a streamed answer. */
  firstByteMs: number
  /** Between two bytes of a streamed answer; absent where silence means nothing. */
  silenceMs?: number
  /** For the whole call, from the request to the last byte. */
  totalMs: number
}

export const DEFAULT_DEADLINES: Deadlines = {
  firstByteMs: FIRST_BYTE_MS,
  silenceMs: SILENCE_MS,
  totalMs: CALL_TOTAL_MS,
}

/** For a machine of the user's own. */
export const OWN_MACHINE_DEADLINES: Deadlines = { firstByteMs: PATIENT_FIRST_BYTE_MS, totalMs: CALL_TOTAL_MS }

/** The provider's answer breaks its own dialect. The message never quotes it. */
export class MalformedAnswer extends Error {
  override readonly name = 'MalformedAnswer'
}

/** An error that the provider reported where its answer should have begun. */
export class ReportedFailure extends Error {
  override readonly name = 'ReportedFailure'
  readonly said: ProviderSaid

  constructor(said: ProviderSaid) {
    super('the provider reported an error')
    this.said = said
  }
}

export type UpstreamCallOptions = {
  /** The way out: what the egress made for this endpoint. */
  fetch: Fetch
  /** Ends the call from outside. */
  signal: AbortSignal
  totalMs: number
  /** Only for answers that stream: a buffered one has its first byte at the end. */
  stream?: Omit<Deadlines, 'totalMs'> & { framing: Framing }
  redaction: Redaction
}

/**
 * One call to a provider, with everything that can end it: the caller's signal, the deadlines, an HTTP error, a broken
 * connection. The first of them is remembered, so `failureOf` tells the truth whatever a library made of it.
 * Whoever opens a call ends it with `end()`, which also closes the upstream connection and leaves no timer.
 */
export class UpstreamCall {
  readonly #options: UpstreamCallOptions
  readonly #controller = new AbortController()
  readonly #onAbort = () => this.#cut(abortFailure(this.#options.signal.reason))
  #stopSilence = () => {}
  #stopTotal = () => {}
  #failure: ProviderFailure | undefined
  #violation: EgressViolation | undefined

  constructor(options: UpstreamCallOptions) {
    this.#options = options
    const { signal, totalMs, stream } = options
    if (signal.aborted) this.#onAbort()
    else {
      signal.addEventListener('abort', this.#onAbort, { once: true })
      this.#stopTotal = startTimer(totalMs, () => this.#expire('did not finish', totalMs))
      if (stream !== undefined) {
        const { firstByteMs } = stream
        this.#stopSilence = startTimer(firstByteMs, () => this.#expire('sent nothing', firstByteMs))
      }
    }
  }

  /** Sends a request of this call. Rejects on a status other than 2xx, and on anything that ends the call. */
  readonly fetch: Fetch = async (input, init) => {
    this.#controller.signal.throwIfAborted()
    let response: Response
    try {
      response = await this.#untilCut(
        this.#options.fetch(input, { ...init, signal: this.#controller.signal }),
      )
    } catch (error) {
      if (error instanceof EgressViolation) this.#violation = error
      else if (error instanceof RedirectRefused)
        this.#fail('unknown', { text: `a redirect, ${error.message}` })
      else this.#fail('provider_unavailable', { text: 'it cannot be reached' })
      throw error
    }
    if (!response.ok) {
      await this.#refuse(response)
      throw new Error(`HTTP ${response.status}`)
    }
    const type = response.headers.get('content-type')
    return new Response(response.body === null ? null : this.#watch(response.body, true), {
      headers: type === null ? {} : { 'content-type': type },
    })
  }

  /**
   * Why the call failed.
   * @throws what it was given, when that is a broken invariant and not the provider's doing
   */
  failureOf(error: unknown): ProviderFailure {
    if (this.#violation !== undefined) throw this.#violation
    if (this.#failure !== undefined) return this.#failure
    if (error instanceof ReportedFailure) return this.reported(error.said)
    if (error instanceof MalformedAnswer) {
      return this.describe('unknown', { text: error.message })
    }
    throw error
  }

  /** A failure that the provider reported inside its answer. */
  reported(said: ProviderSaid): ProviderFailure {
    const { retryAfterMs: wait } = said
    return {
      ...this.describe(categorize(said.status, said.hints), said),
      ...(wait === undefined ? {} : { retryAfterMs: wait }),
    }
  }

  describe(category: ProviderErrorCategory, said: { status?: number; text?: string }): ProviderFailure {
    return { category, message: describeFailure(category, said, this.#options.redaction) }
  }

  /** Releases everything. Closes the upstream connection if the answer was not read to its end. */
  end(): void {
    this.#clearTimers()
    this.#options.signal.removeEventListener('abort', this.#onAbort)
    this.#controller.abort()
  }

  #clearTimers(): void {
    this.#stopSilence()
    this.#stopTotal()
  }

  async #readRefusal(body: ReadableStream<Uint8Array>): Promise<string> {
    const reader = this.#watch(body, false).getReader()
    const text = await readStart(new Uint8Array(), () => reader.read()).catch(() => '')
    // What was not read of it is of no interest, and neither is how that ends.
    reader.cancel().catch(() => {})
    return text
  }

  /** From the first byte on: expires when nothing more comes for as long as a stream may be silent. */
  #listen(): (() => void) | undefined {
    const silenceMs = this.#options.stream?.silenceMs
    this.#stopSilence()
    if (silenceMs === undefined) return undefined
    // One timer for many pieces: it looks back at the last one instead of being set anew with each.
    let lastMs = Date.now()
    const watch = (ms: number) => {
      this.#stopSilence = startTimer(ms, () => {
        const leftMs = lastMs + silenceMs - Date.now()
        if (leftMs > 0) watch(leftMs)
        else this.#expire('fell silent, and said nothing more', silenceMs)
      })
    }
    watch(silenceMs)
    return () => {
      lastMs = Date.now()
    }
  }

  #expire(what: string, ms: number): void {
    this.#cut({ category: 'timeout', message: `the provider ${what} within ${Math.round(ms / 1000)} s` })
  }

  #cut(failure: ProviderFailure): void {
    this.#failure ??= failure
    this.#clearTimers()
    this.#controller.abort()
  }

  #fail(category: ProviderErrorCategory, said: { status?: number; text?: string }): void {
    this.#failure ??= this.describe(category, said)
  }

  /** An abort must be felt at once, even where the runtime's fetch is slow to notice it. */
  #untilCut<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#controller
    return new Promise((resolve, reject) => {
      const onAbort = () => reject(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
    })
  }

  async #refuse(response: Response): Promise<void> {
    const body = response.body === null ? '' : await this.#readRefusal(response.body)
    const said = readErrorBody(body)
    const { status } = response
    const wait = retryAfterMs(response.headers, Date.now()) ?? said.retryAfterMs
    this.#failure ??= {
      ...this.describe(categorize(status, said.hints), { ...said, status }),
      status,
      ...(wait === undefined ? {} : { retryAfterMs: wait }),
    }
  }

  /**
   * Passes the body on; notes its first byte, its size, its breaking, and ends it when the call is cut.
   * @param isAnswer whether it shall be an answer, and not the body of a refusal
   */
  #watch(body: ReadableStream<Uint8Array>, isAnswer: boolean): ReadableStream<Uint8Array> {
    const reader = body.getReader()
    const { signal } = this.#controller
    const { stream } = this.#options
    const meter = stream === undefined ? undefined : new EventMeter(stream.framing)
    const maxBytes = stream === undefined ? MAX_BUFFERED_BYTES : MAX_STREAMED_BYTES
    let receivedBytes = 0
    let heard: (() => void) | undefined
    let isBegun = !isAnswer || stream === undefined
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          const onAbort = () => {
            controller.error(signal.reason)
            // The connection is going away; how it goes is of no interest.
            reader.cancel(signal.reason).catch(() => {})
          }
          if (signal.aborted) onAbort()
          else signal.addEventListener('abort', onAbort, { once: true })
        },
        pull: async (controller) => {
          try {
            const { done, value } = await reader.read()
            if (signal.aborted) return
            if (done) {
              this.#stopSilence()
              return controller.close()
            }
            if (receivedBytes === 0) heard = this.#listen()
            heard?.()
            receivedBytes += value.byteLength
            if (!isBegun) {
              const first = firstCharacter(value)
              isBegun = first !== undefined
              if (first === '<') return this.#cutShort('a web page came instead of its answer')
              if (stream?.framing === 'events' && (first === '{' || first === '[')) {
                return this.#cut(await this.#readUnstreamed(value, reader))
              }
            }
            if (receivedBytes > maxBytes) this.#cutShort('the answer is too large')
            else if (meter?.feed(value) === false) this.#cutShort('a piece of its answer has no end')
            else controller.enqueue(value)
          } catch (error) {
            this.#fail('provider_unavailable', { text: 'the connection broke' })
            controller.error(error)
          }
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    )
  }

  /** JSON where events were asked for: an error of a gateway that answers 200, or of an endpoint that cannot stream. */
  async #readUnstreamed(
    first: Uint8Array,
    reader: ReadableStreamDefaultReader<Uint8Array>,
  ): Promise<ProviderFailure> {
    const said = readErrorBody(await readStart(first, () => reader.read()))
    return said.text === undefined
      ? this.describe('unknown', { text: 'it answered in one piece where a stream was asked for' })
      : this.reported(said)
  }

  #cutShort(why: string): void {
    this.#cut(this.describe('unknown', { text: why }))
  }
}

function startTimer(ms: number, onTime: () => void): () => void {
  const id = setTimeout(onTime, ms)
  return () => clearTimeout(id)
}

/** A caller that gave its signal a time limit ran out of time; any other abort is a cancellation. */
function abortFailure(reason: unknown): ProviderFailure {
  // By name: what a runtime's DOMException inherits from differs.
  const name = typeof reason === 'object' && reason !== null && 'name' in reason ? reason.name : undefined
  return name === 'TimeoutError'
    ? { category: 'timeout', message: 'the provider took too long' }
    : { category: 'unknown', message: 'the call was cancelled', aborted: true }
}
