import type { z } from 'zod'
import { ApiError } from '../protocol/execution/errors.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { parseRetryAfter, wait } from './backoff.ts'
import type { ClientFailure } from './failure.ts'

/** Signs in again and returns the new token. */
export type Reauthenticate = () => Promise<Result<string, ClientFailure>>

export type TransportOptions = {
  baseUrl: string
  token?: string
  fetch?: typeof fetch
  reauthenticate?: Reauthenticate
}

export type HttpRequest = {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  path: string
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
  /** Sign-in and bootstrap carry no bearer token. */
  anonymous?: boolean
}

/** A router that asks for a longer wait than this is reported as busy instead (the caller may know better). */
const MAX_RETRY_AFTER_MS = 30_000
/** A limit that is still hit after so many honoured waits is not a burst. */
const MAX_BUSY_RETRIES = 3
/** Of a body that is not JSON, so much is read to describe it. */
const MAX_FOREIGN_BODY_CHARS = 200

/** Owns the address and the session token, and turns every way to fail into data. */
export class Transport {
  readonly #baseUrl: string
  readonly #fetch: typeof fetch
  readonly #reauthenticate: Reauthenticate | undefined
  #token: string | undefined
  #renewal: Promise<Result<string, ClientFailure>> | undefined

  constructor(options: TransportOptions) {
    this.#baseUrl = options.baseUrl.replace(/\/+$/, '')
    // A bare reference to fetch loses its receiver in browsers.
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init))
    this.#reauthenticate = options.reauthenticate
    this.#token = options.token
  }

  get token(): string | undefined {
    return this.#token
  }

  setToken(token: string | undefined): void {
    this.#token = token
  }

  /**
   * One request, repeated when that is certain to be safe: after a `429` with `Retry-After` (nothing was done yet)
   * and once after `401 token_expired` with a new token (EC 29.11). Any other non-2xx answer is a failure.
   */
  async send(request: HttpRequest): Promise<Result<Response, ClientFailure>> {
    let renewed = false
    for (let busy = 0; ; ) {
      const answer = await this.#once(request)
      if (!answer.ok) return answer
      if (answer.value.ok) return answer
      const failure = await readFailure(answer.value)
      if (isExpired(failure) && !renewed && this.#reauthenticate && !request.anonymous) {
        renewed = true
        const token = await this.#renew(this.#reauthenticate)
        if (!token.ok) return token
        continue
      }
      const waitMs = busyWaitMs(failure)
      if (waitMs !== undefined && busy < MAX_BUSY_RETRIES) {
        busy++
        await wait(waitMs, request.signal)
        continue
      }
      return err(failure)
    }
  }

  /** A request whose answer is parsed with `schema`. */
  async json<S extends z.ZodType>(
    schema: S,
    request: HttpRequest,
  ): Promise<Result<z.infer<S>, ClientFailure>> {
    const answer = await this.send(request)
    return answer.ok ? readJson(schema, answer.value) : answer
  }

  async #once(request: HttpRequest): Promise<Result<Response, ClientFailure>> {
    const headers: Record<string, string> = { Accept: 'application/json', ...request.headers }
    if (this.#token !== undefined && !request.anonymous) headers.Authorization = `Bearer ${this.#token}`
    if (request.body !== undefined) headers['Content-Type'] = 'application/json'
    try {
      const response = await this.#fetch(this.#baseUrl + request.path, {
        method: request.method,
        headers,
        // Following a redirect would hand the provider keys to whoever answers there.
        redirect: 'manual',
        ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
        ...(request.signal ? { signal: request.signal } : {}),
      })
      // Browsers hide what a redirect says; not every runtime knows the word.
      const kind: string = response.type
      if (kind === 'opaqueredirect') {
        return err({ kind: 'not_json', status: 0, message: `${this.#baseUrl} answered with a redirect` })
      }
      return ok(response)
    } catch (error) {
      return err(connectionFailure(error, request.signal, this.#baseUrl))
    }
  }

  /** Requests that expire together share one sign-in. */
  async #renew(reauthenticate: Reauthenticate): Promise<Result<string, ClientFailure>> {
    this.#renewal ??= reauthenticate().finally(() => {
      this.#renewal = undefined
    })
    const token = await this.#renewal
    if (token.ok) this.#token = token.value
    return token
  }
}

/** What a thrown fetch or a broken body means. */
export function connectionFailure(
  error: unknown,
  signal: AbortSignal | undefined,
  where: string,
): ClientFailure {
  if (signal?.aborted) return { kind: 'aborted', message: 'stopped by the caller' }
  return { kind: 'network', message: `no answer from ${where}: ${reasonOf(error)}` }
}

/** Node wraps the useful part (`ECONNREFUSED …`) in `cause`. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown reason'
  const { cause } = error
  if (cause instanceof Error) {
    const code = (cause as Error & { code?: unknown }).code
    return cause.message || (typeof code === 'string' ? code : error.message)
  }
  return error.message
}

/** Reads a JSON body and parses it; anything else is a failure that says what came instead. */
export async function readJson<S extends z.ZodType>(
  schema: S,
  response: Response,
): Promise<Result<z.infer<S>, ClientFailure>> {
  let text: string
  try {
    text = await response.text()
  } catch (error) {
    return err(connectionFailure(error, undefined, 'the router'))
  }
  const body = parseJson(text)
  if (body === undefined) return err(foreignBody(response, text))
  const parsed = schema.safeParse(body)
  if (parsed.success) return ok(parsed.data)
  const issue = parsed.error.issues[0]
  const at = issue && issue.path.length > 0 ? ` at ${issue.path.join('.')}` : ''
  return err({
    kind: 'unexpected_body',
    status: response.status,
    message: `the answer does not have the promised shape${at}: ${issue?.message ?? 'unknown'}`,
  })
}

async function readFailure(response: Response): Promise<ClientFailure> {
  const text = await response.text().catch(() => '')
  const parsed = ApiError.safeParse(parseJson(text))
  if (!parsed.success) return foreignBody(response, text)
  const { code, message, details } = parsed.data.error
  const retryAfterMs = parseRetryAfter(response.headers.get('Retry-After'), Date.now())
  return {
    kind: 'http',
    status: response.status,
    code,
    message,
    ...(details ? { details } : {}),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  }
}

function foreignBody(response: Response, text: string): ClientFailure {
  const start = text.slice(0, MAX_FOREIGN_BODY_CHARS).replace(/\s+/g, ' ').trim()
  const what = start === '' ? 'an empty body' : `something else than JSON (${JSON.stringify(start)})`
  return { kind: 'not_json', status: response.status, message: `HTTP ${response.status} with ${what}` }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isExpired = (failure: ClientFailure): boolean =>
  failure.kind === 'http' && failure.status === 401 && failure.code === 'token_expired'

/**
 * The wait that the router's own limiter asks for. A provider's limit comes with `details.provider` and has ended the
 * run: repeating that request would start another one.
 */
function busyWaitMs(failure: ClientFailure): number | undefined {
  if (failure.kind !== 'http' || failure.status !== 429 || failure.details?.provider !== undefined)
    return undefined
  const asked = failure.retryAfterMs
  return asked !== undefined && asked <= MAX_RETRY_AFTER_MS ? asked : undefined
}
