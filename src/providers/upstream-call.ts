import type { ModelRequest } from '../core/prompt.ts'
import type { ProviderErrorCategory } from '../protocol/execution/models.ts'
import { EgressViolation, type Fetch, RedirectRefused } from './egress.ts'
import { categorize, retryAfterMs } from './failures.ts'
import type { ProviderFailure } from './provider.ts'
import { describeFailure, type ProviderSaid, type Redaction, readErrorBody } from './provider-message.ts'

export type Deadlines = {
  /** Until the first byte of a streamed answer. */
  firstByteMs: number
  /** For the whole call, from the request to the last byte. */
  totalMs: number
}

/** 14 min is the ruling for a model call (D21). Two minutes is more than any hosted model thinks before it speaks. */
export const DEFAULT_DEADLINES: Deadlines = { firstByteMs: 120_000, totalMs: 14 * 60_000 }

/** The longest that a client may wait for a catalogue (EC 2.17). */
export const CATALOGUE_TOTAL_MS = 60_000

/** Far above any answer of a model, far below the memory of an object. */
const MAX_RESPONSE_BYTES = 32 * 1024 * 1024
/** An error body beyond this is a page, and its end is of no interest. */
const MAX_ERROR_BODY_BYTES = 64 * 1024

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
  firstByteMs?: number
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
  #stopFirstByte = () => {}
  #stopTotal = () => {}
  #failure: ProviderFailure | undefined
  #violation: EgressViolation | undefined

  constructor(options: UpstreamCallOptions) {
    this.#options = options
    const { signal, totalMs, firstByteMs } = options
    if (signal.aborted) this.#onAbort()
    else {
      signal.addEventListener('abort', this.#onAbort, { once: true })
      this.#stopTotal = startTimer(totalMs, () => this.#expire('did not finish', totalMs))
      if (firstByteMs !== undefined) {
        this.#stopFirstByte = startTimer(firstByteMs, () => this.#expire('sent nothing', firstByteMs))
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
    return new Response(response.body === null ? null : this.#watch(response.body), {
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
    this.#stopFirstByte()
    this.#stopTotal()
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
    const body = response.body === null ? '' : await readStart(this.#watch(response.body)).catch(() => '')
    const said = readErrorBody(body)
    const { status } = response
    const wait = retryAfterMs(response.headers, Date.now()) ?? said.retryAfterMs
    this.#failure ??= {
      ...this.describe(categorize(status, said.hints), { ...said, status }),
      status,
      ...(wait === undefined ? {} : { retryAfterMs: wait }),
    }
  }

  /** Passes the body on; notes its first byte, its size, its breaking, and ends it when the call is cut. */
  #watch(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = body.getReader()
    const { signal } = this.#controller
    let receivedBytes = 0
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
            this.#stopFirstByte()
            if (done) return controller.close()
            receivedBytes += value.byteLength
            if (receivedBytes > MAX_RESPONSE_BYTES) {
              this.#cut(this.describe('unknown', { text: 'the answer is too large' }))
            } else controller.enqueue(value)
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
}

function startTimer(ms: number, onTime: () => void): () => void {
  const id = setTimeout(onTime, ms)
  return () => clearTimeout(id)
}

async function readStart(body: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true })
    bytes += chunk.byteLength
    if (bytes >= MAX_ERROR_BODY_BYTES) break
  }
  return text
}

/** A caller that gave its signal a time limit ran out of time; any other abort is a cancellation. */
function abortFailure(reason: unknown): ProviderFailure {
  // By name: what a runtime's DOMException inherits from differs.
  const name = typeof reason === 'object' && reason !== null && 'name' in reason ? reason.name : undefined
  return name === 'TimeoutError'
    ? { category: 'timeout', message: 'the provider took too long' }
    : { category: 'unknown', message: 'the call was cancelled', aborted: true }
}

/** Everything of a request that must not come back in an error message. */
export function redactionFor(request: ModelRequest, credential: string | undefined): Redaction {
  const texts = request.messages.flatMap((message) => {
    if (message.role === 'tool') return message.results.map(({ content }) => content)
    if (message.role !== 'assistant') return [message.text]
    return [message.text, ...message.toolCalls.map((call) => JSON.stringify(call.arguments))]
  })
  const names = [request.model.model, ...request.tools.map(({ name }) => name)]
  return { ...(credential === undefined ? {} : { credential }), texts, names }
}
