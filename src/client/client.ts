import type { z } from 'zod'
import {
  BootstrapResponse,
  MeResponse,
  SignInResponse,
  SignOutResponse,
  StatusResponse,
} from '../protocol/execution/auth.ts'
import type { ContinueRequest } from '../protocol/execution/continue.ts'
import type { ExecuteRequest } from '../protocol/execution/execute.ts'
import {
  type CreateSessionRequest,
  CreateSessionResponse,
  DeleteSessionResponse,
  GetSessionResponse,
  ListSessionsResponse,
  type SessionDetail,
  type SessionSummary,
  type UpdateSessionRequest,
  UpdateSessionResponse,
} from '../protocol/execution/session.ts'
import { RunResponse, TurnResponse } from '../protocol/execution/turn.ts'
import { SessionUsageResponse } from '../protocol/execution/usage.ts'
import { ok, type Result } from '../protocol/result.ts'
import { type Backoff, DEFAULT_BACKOFF } from './backoff.ts'
import type { ClientFailure } from './failure.ts'
import { type HttpRequest, type Reauthenticate, Transport } from './http.ts'
import { type ProviderKeys, providerHeaders } from './provider-header.ts'
import { type OnReconnect, type StreamEvent, streamTurn } from './turn-stream.ts'

export type ClientOptions = {
  /** The router's origin, such as `http://127.0.0.1:8787`. */
  baseUrl: string
  /** A session token, when there is one already. */
  token?: string
  /** Sent with every execute and continue (EC 29.1). */
  providerKeys?: ProviderKeys
  fetch?: typeof fetch
  /** Asked once per request when the token has expired; the request is then repeated (EC 29.11). */
  reauthenticate?: Reauthenticate
  backoff?: Backoff
}

export type CallOptions = {
  signal?: AbortSignal
  /** The same key with the same body gives the stored outcome instead of a second action (D20). */
  idempotencyKey?: string
}

export type StreamOptions = CallOptions & { onReconnect?: OnReconnect }

type Answer<T> = Promise<Result<T, ClientFailure>>

/**
 * A typed client of the execution API for browsers and Node. Every answer is parsed; every expected failure is data.
 * It holds no session key, so it cannot serve encrypted sessions.
 */
export class SwitchyardClient {
  readonly baseUrl: string
  readonly #transport: Transport
  #providerKeys: ProviderKeys
  readonly #backoff: Backoff

  constructor(options: ClientOptions) {
    this.baseUrl = options.baseUrl.replace(/\/+$/, '')
    this.#transport = new Transport(options)
    this.#providerKeys = options.providerKeys ?? {}
    this.#backoff = options.backoff ?? DEFAULT_BACKOFF
  }

  /** Adds provider keys, for instance when another model is chosen in the middle of a conversation. */
  useProviderKeys(keys: ProviderKeys): void {
    this.#providerKeys = { ...this.#providerKeys, ...keys }
  }

  /** `GET /status` (EC 2.1); needs no token. */
  status(options: CallOptions = {}): Answer<StatusResponse> {
    return this.#json(StatusResponse, { method: 'GET', path: '/status', anonymous: true }, options)
  }

  /** Mints an account (EC 2.2). The API key is shown this once. */
  bootstrap(bootstrapToken?: string): Answer<BootstrapResponse> {
    return this.#transport.json(BootstrapResponse, {
      method: 'POST',
      path: '/api/v1/auth/bootstrap',
      anonymous: true,
      headers: bootstrapToken === undefined ? {} : { 'X-Smista-Bootstrap-Token': bootstrapToken },
    })
  }

  /** Exchanges the API key for a session token (EC 2.3), which this client uses from then on. */
  async signIn(apiKey: string): Answer<SignInResponse> {
    const answer = await this.#transport.json(SignInResponse, {
      method: 'POST',
      path: '/api/v1/auth/sign-in',
      anonymous: true,
      headers: { 'X-Smista-Api-Key': apiKey },
    })
    if (answer.ok) this.#transport.setToken(answer.value.token)
    return answer
  }

  /** Revokes the session token (EC 2.4) and forgets it. */
  async signOut(): Answer<SignOutResponse> {
    const answer = await this.#transport.json(SignOutResponse, {
      method: 'POST',
      path: '/api/v1/auth/sign-out',
    })
    if (answer.ok) this.#transport.setToken(undefined)
    return answer
  }

  /** `GET /auth/me` (EC 2.5). */
  me(options: CallOptions = {}): Answer<MeResponse> {
    return this.#json(MeResponse, { method: 'GET', path: '/api/v1/auth/me' }, options)
  }

  readonly sessions = {
    /** EC 2.6 */
    create: async (body: CreateSessionRequest, options: CallOptions = {}): Answer<SessionSummary> =>
      session(
        await this.#json(CreateSessionResponse, { method: 'POST', path: '/api/v1/sessions', body }, options),
      ),
    /** Archived ones included, most recently updated first (EC 2.7). */
    list: async (
      filter: { scope?: string; title?: string } = {},
      options: CallOptions = {},
    ): Answer<SessionSummary[]> => {
      const query = new URLSearchParams(filter).toString()
      const path = `/api/v1/sessions${query === '' ? '' : `?${query}`}`
      const answer = await this.#json(ListSessionsResponse, { method: 'GET', path }, options)
      return answer.ok ? ok(answer.value.sessions) : answer
    },
    /** With its messages, oldest first (EC 2.8). */
    get: async (id: string, options: CallOptions = {}): Answer<SessionDetail> =>
      session(await this.#json(GetSessionResponse, { method: 'GET', path: sessionPath(id) }, options)),
    /** Partial; `archived: false` restores (EC 2.9). */
    update: async (
      id: string,
      body: UpdateSessionRequest,
      options: CallOptions = {},
    ): Answer<SessionSummary> =>
      session(
        await this.#json(UpdateSessionResponse, { method: 'PUT', path: sessionPath(id), body }, options),
      ),
    /** With everything that belongs to it (EC 2.10). */
    delete: async (id: string, options: CallOptions = {}): Answer<{ deleted: boolean }> =>
      this.#json(DeleteSessionResponse, { method: 'DELETE', path: sessionPath(id) }, options),
  }

  /** `GET …/usage` (EC 2.15). */
  usage(sessionId: string, options: CallOptions = {}): Answer<SessionUsageResponse> {
    const request: HttpRequest = { method: 'GET', path: `${sessionPath(sessionId)}/usage` }
    return this.#json(SessionUsageResponse, request, options)
  }

  /** Starts a run and waits for its first turn in one piece. A failed turn is an `http` failure (EC 2.11). */
  execute(sessionId: string, body: ExecuteRequest, options: CallOptions = {}): Answer<TurnResponse> {
    return this.#json(TurnResponse, this.#turnRequest(sessionId, 'execute', body), options)
  }

  /** Answers the current pause, or `inject`s or `break`s (EC 2.12). */
  continueRun(sessionId: string, body: ContinueRequest, options: CallOptions = {}): Answer<TurnResponse> {
    return this.#json(TurnResponse, this.#turnRequest(sessionId, 'continue', body), options)
  }

  /** As `execute`, event by event; it survives lost connections. */
  executeStream(
    sessionId: string,
    body: ExecuteRequest,
    options: StreamOptions = {},
  ): AsyncGenerator<StreamEvent> {
    return this.#stream(sessionId, this.#turnRequest(sessionId, 'execute', body), options)
  }

  /** As `continueRun`, event by event; it survives lost connections. */
  continueStream(
    sessionId: string,
    body: ContinueRequest,
    options: StreamOptions = {},
  ): AsyncGenerator<StreamEvent> {
    return this.#stream(sessionId, this.#turnRequest(sessionId, 'continue', body), options)
  }

  /** The run's current envelope, or that a turn is being served (D19). */
  currentRun(sessionId: string, options: CallOptions = {}): Answer<RunResponse> {
    return this.#json(RunResponse, runRequest(sessionId), options)
  }

  /** Attaches to the turn being served, after `lastEventId` when given (D19). */
  currentRunStream(
    sessionId: string,
    options: Omit<StreamOptions, 'idempotencyKey'> & { lastEventId?: string } = {},
  ): AsyncGenerator<StreamEvent> {
    return streamTurn({
      ...options,
      transport: this.#transport,
      attach: runRequest(sessionId),
      backoff: this.#backoff,
    })
  }

  #turnRequest(sessionId: string, verb: 'execute' | 'continue', body: unknown): HttpRequest {
    const headers = providerHeaders(this.#providerKeys)
    return { method: 'POST', path: `${sessionPath(sessionId)}/${verb}`, body, headers }
  }

  #stream(sessionId: string, request: HttpRequest, options: StreamOptions): AsyncGenerator<StreamEvent> {
    const { idempotencyKey = crypto.randomUUID(), ...rest } = options
    return streamTurn({
      ...rest,
      transport: this.#transport,
      open: { ...request, headers: { ...request.headers, 'Idempotency-Key': idempotencyKey } },
      attach: runRequest(sessionId),
      backoff: this.#backoff,
    })
  }

  #json<S extends z.ZodType>(schema: S, request: HttpRequest, options: CallOptions): Answer<z.infer<S>> {
    const key = options.idempotencyKey
    return this.#transport.json(schema, {
      ...request,
      ...(options.signal ? { signal: options.signal } : {}),
      headers: { ...request.headers, ...(key === undefined ? {} : { 'Idempotency-Key': key }) },
    })
  }
}

const sessionPath = (id: string): string => `/api/v1/sessions/${encodeURIComponent(id)}`
const runRequest = (id: string): HttpRequest => ({ method: 'GET', path: `${sessionPath(id)}/run` })

const session = <T>(answer: Result<{ session: T }, ClientFailure>): Result<T, ClientFailure> =>
  answer.ok ? ok(answer.value.session) : answer
