import type { z } from 'zod'
import {
  type ApiKeySummary,
  CreateApiKeyResponse,
  DeleteAccountResponse,
  ListApiKeysResponse,
  RevokeApiKeyResponse,
} from '../protocol/execution/account.ts'
import {
  BootstrapResponse,
  MeResponse,
  SignInResponse,
  SignOutResponse,
  StatusResponse,
} from '../protocol/execution/auth.ts'
import type { ContinueRequest } from '../protocol/execution/continue.ts'
import {
  AcceptConnectRequestResponse,
  type ConnectRequestSummary,
  DenyConnectRequestResponse,
  type DeviceSummary,
  ListConnectRequestsResponse,
  ListDevicesResponse,
  ListenResponse,
  OpenPairingResponse,
  RenameDeviceResponse,
  RevokeDeviceResponse,
} from '../protocol/execution/devices.ts'
import type { ExecuteRequest } from '../protocol/execution/execute.ts'
import {
  DeleteMemoryResponse,
  ListMemoryResponse,
  type MemoryRecord,
  type MemoryScope,
  type PutMemoryRequest,
  PutMemoryResponse,
} from '../protocol/execution/memory.ts'
import {
  ListModelsResponse,
  ListProvidersResponse,
  type ProviderDescriptor,
} from '../protocol/execution/models.ts'
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
import { PolicySettingResponse, type PutPolicyRequest } from '../protocol/execution/settings.ts'
import { type Trace, TraceResponse } from '../protocol/execution/trace.ts'
import { RevokeGrantResponse, RunResponse, TurnResponse } from '../protocol/execution/turn.ts'
import { SessionUsageResponse } from '../protocol/execution/usage.ts'
import { ok, type Result } from '../protocol/result.ts'
import { type Backoff, DEFAULT_BACKOFF } from './backoff.ts'
import { readExport } from './export-stream.ts'
import type { ClientFailure } from './failure.ts'
import { type GatewaySocket, openGatewaySocket } from './gateway-socket.ts'
import { type HttpRequest, type Reauthenticate, Transport } from './http.ts'
import { type ProviderKeys, providerHeaders } from './provider-header.ts'
import { type OnReconnect, type StreamEvent, streamTurn, type TurnPlace } from './turn-stream.ts'

export type ClientOptions = {
  /** The router's origin, such as `http://127.0.0.1:8787`. */
  baseUrl: string
  /** A session token, when there is one already. */
  token?: string
  /** Sent with every execute and continue (EC 29.1), and when models are listed. */
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

export type StreamOptions = CallOptions & {
  onReconnect?: OnReconnect
  /** The session is encrypted: a turn whose texts the router has lost is asked for again (D20). */
  sealed?: boolean
  /** Told how far the turn was followed; null while the router is not known to serve it. */
  onPlace?: (place: TurnPlace | null) => void
}

type Answer<T> = Promise<Result<T, ClientFailure>>

/**
 * A typed client of the execution API for browsers and Node. Every answer is parsed; every expected failure is data.
 * It holds no session key: what is sealed passes through it as it is, and `driveRun` seals and opens.
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

  /** The API keys of the account (EC 23). */
  readonly keys = {
    /** The working ones, oldest first. */
    list: async (options: CallOptions = {}): Answer<ApiKeySummary[]> => {
      const answer = await this.#json(ListApiKeysResponse, { method: 'GET', path: KEYS_PATH }, options)
      return answer.ok ? ok(answer.value.keys) : answer
    },
    /** Another key; it is shown this once. */
    create: (options: CallOptions = {}): Answer<CreateApiKeyResponse> =>
      this.#json(CreateApiKeyResponse, { method: 'POST', path: KEYS_PATH }, options),
    /** Ends a key and the tokens that it was traded for. */
    revoke: (id: string, options: CallOptions = {}): Answer<RevokeApiKeyResponse> => {
      const path = `${KEYS_PATH}/${encodeURIComponent(id)}`
      return this.#json(RevokeApiKeyResponse, { method: 'DELETE', path }, options)
    },
  }

  readonly pairing = {
    /** Lets one device pair, in place of what was opened before. Code and credential are shown this once (U31). */
    open: (options: CallOptions = {}): Answer<OpenPairingResponse> =>
      this.#json(OpenPairingResponse, { method: 'POST', path: '/api/v1/pairing' }, options),
  }

  /** The paired devices of the account (U32). */
  readonly devices = {
    /** The newest first, with those whose pairing ended without their owner. */
    list: async (options: CallOptions = {}): Answer<DeviceSummary[]> => {
      const answer = await this.#json(ListDevicesResponse, { method: 'GET', path: DEVICES_PATH }, options)
      return answer.ok ? ok(answer.value.devices) : answer
    },
    /** The answer has the name as it was stored. */
    rename: async (id: string, name: string, options: CallOptions = {}): Answer<DeviceSummary> => {
      const request: HttpRequest = { method: 'PUT', path: devicePath(id), body: { name } }
      const answer = await this.#json(RenameDeviceResponse, request, options)
      return answer.ok ? ok(answer.value.device) : answer
    },
    /** Ends the pairing and the connections of a device at once. */
    revoke: (id: string, options: CallOptions = {}): Answer<RevokeDeviceResponse> =>
      this.#json(RevokeDeviceResponse, { method: 'DELETE', path: devicePath(id) }, options),
  }

  /** Devices that ask to be paired (D41). */
  readonly connectRequests = {
    /** Those that wait, the oldest first. */
    list: async (options: CallOptions = {}): Answer<ConnectRequestSummary[]> => {
      const request: HttpRequest = { method: 'GET', path: REQUESTS_PATH }
      const answer = await this.#json(ListConnectRequestsResponse, request, options)
      return answer.ok ? ok(answer.value.requests) : answer
    },
    /** Devices can ask from now on, until the time in the answer. */
    listen: (options: CallOptions = {}): Answer<ListenResponse> =>
      this.#json(ListenResponse, { method: 'POST', path: `${REQUESTS_PATH}/listen` }, options),
    /** The code in the answer is to be typed on that device. */
    accept: (id: string, options: CallOptions = {}): Answer<AcceptConnectRequestResponse> => {
      const path = `${REQUESTS_PATH}/${encodeURIComponent(id)}/accept`
      return this.#json(AcceptConnectRequestResponse, { method: 'POST', path }, options)
    },
    deny: (id: string, options: CallOptions = {}): Answer<DenyConnectRequestResponse> => {
      const path = `${REQUESTS_PATH}/${encodeURIComponent(id)}/deny`
      return this.#json(DenyConnectRequestResponse, { method: 'POST', path }, options)
    },
  }

  /** Deletes the account and everything that is kept of it; needs one of its keys beside the token. */
  async deleteAccount(apiKey: string): Answer<DeleteAccountResponse> {
    const headers = { 'X-Smista-Api-Key': apiKey }
    const request: HttpRequest = { method: 'DELETE', path: '/api/v1/auth/me', headers }
    const answer = await this.#transport.json(DeleteAccountResponse, request)
    if (answer.ok) this.#transport.setToken(undefined)
    return answer
  }

  /** One session whole, or everything of the account: record by record, page after page. */
  export(sessionId?: string, { signal }: Pick<CallOptions, 'signal'> = {}): ReturnType<typeof readExport> {
    return readExport({
      transport: this.#transport,
      request: (after) => ({
        method: 'GET',
        path:
          sessionId === undefined
            ? `/api/v1/export${after === undefined ? '' : `?after=${encodeURIComponent(after)}`}`
            : `${sessionPath(sessionId)}/export`,
        headers: { Accept: 'application/x-ndjson' },
        ...(signal ? { signal } : {}),
      }),
    })
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

  /** What is remembered of the user and in sessions (D50). */
  readonly memory = {
    /** The newest first. */
    list: async (
      filter: { scope?: MemoryScope; session_id?: string } = {},
      options: CallOptions = {},
    ): Answer<MemoryRecord[]> => {
      const query = new URLSearchParams(filter).toString()
      const path = `${MEMORY_PATH}${query === '' ? '' : `?${query}`}`
      const answer = await this.#json(ListMemoryResponse, { method: 'GET', path }, options)
      return answer.ok ? ok(answer.value.memories) : answer
    },
    /** Makes the fact of this id, a UUID of the caller's choice, or replaces it. */
    put: async (
      id: string,
      body: z.input<typeof PutMemoryRequest>,
      options: CallOptions = {},
    ): Answer<MemoryRecord> => {
      const answer = await this.#json(
        PutMemoryResponse,
        { method: 'PUT', path: memoryPath(id), body },
        options,
      )
      return answer.ok ? ok(answer.value.memory) : answer
    },
    delete: async (id: string, options: CallOptions = {}): Answer<{ deleted: boolean }> =>
      this.#json(DeleteMemoryResponse, { method: 'DELETE', path: memoryPath(id) }, options),
  }

  /** What prompts from a device use in sessions that never ran (D07). */
  readonly defaultPolicy = {
    /** Empty when none was published. */
    get: (options: CallOptions = {}): Answer<PolicySettingResponse> =>
      this.#json(PolicySettingResponse, { method: 'GET', path: POLICY_PATH }, options),
    /** Takes the place of the one before. */
    put: (body: z.input<typeof PutPolicyRequest>, options: CallOptions = {}): Answer<PolicySettingResponse> =>
      this.#json(PolicySettingResponse, { method: 'PUT', path: POLICY_PATH, body }, options),
  }

  /** `GET …/usage` (EC 2.15). */
  usage(sessionId: string, options: CallOptions = {}): Answer<SessionUsageResponse> {
    const request: HttpRequest = { method: 'GET', path: `${sessionPath(sessionId)}/usage` }
    return this.#json(SessionUsageResponse, request, options)
  }

  /**
   * A window of the trace, oldest first, with the policies that its events name; one without events lies behind the end
   * (EC 2.14). The router may give fewer events than it is asked for.
   */
  async trace(
    sessionId: string,
    window: { limit: number; offset: number },
    options: CallOptions = {},
  ): Answer<Trace> {
    const path = `${sessionPath(sessionId)}/traces?limit=${window.limit}&offset=${window.offset}`
    const answer = await this.#json(TraceResponse, { method: 'GET', path }, options)
    return answer.ok ? ok(answer.value.trace) : answer
  }

  /** The providers that the router has, whether or not there is a key for them (EC 2.16). */
  async providers(options: CallOptions = {}): Answer<ProviderDescriptor[]> {
    const request: HttpRequest = { method: 'GET', path: '/api/v1/llm/providers' }
    const answer = await this.#json(ListProvidersResponse, request, options)
    return answer.ok ? ok(answer.value.providers) : answer
  }

  /** The models that the provider keys of this client reach, and which providers gave none (EC 2.17). */
  models(options: CallOptions = {}): Answer<ListModelsResponse> {
    const headers = providerHeaders(this.#providerKeys)
    return this.#json(ListModelsResponse, { method: 'GET', path: '/api/v1/llm/models', headers }, options)
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

  /** Takes back what was allowed for the rest of the run; `currentRun` lists it (U23). */
  revokeGrant(sessionId: string, grantId: string, options: CallOptions = {}): Answer<RevokeGrantResponse> {
    const path = `${sessionPath(sessionId)}/grants/${encodeURIComponent(grantId)}`
    return this.#json(RevokeGrantResponse, { method: 'DELETE', path }, options)
  }

  /** The run's current envelope, or that a turn is being served, with what is allowed for its rest (D19, U23). */
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

  /**
   * Opens a socket to the user's own gateway, on which the remote protocol is spoken without a handshake (D38). Null when
   * that cannot be done now, or not on this platform. `again`: none was opened by the attempt before; the token may have run out.
   */
  async gatewaySocket({
    again,
    signal,
  }: {
    again: boolean
    signal: AbortSignal
  }): Promise<GatewaySocket | null> {
    // The platform does not tell why a socket is refused: an ordinary request does, and signs in again where that helps.
    if (again && !(await this.me({ signal })).ok) return null
    const { token } = this.#transport
    return token === undefined ? null : openGatewaySocket({ baseUrl: this.baseUrl, token }, signal)
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
const KEYS_PATH = '/api/v1/auth/keys'
const DEVICES_PATH = '/api/v1/devices'
const devicePath = (id: string): string => `${DEVICES_PATH}/${encodeURIComponent(id)}`
const REQUESTS_PATH = '/api/v1/connect-requests'
const MEMORY_PATH = '/api/v1/memory'
const POLICY_PATH = '/api/v1/settings/policy'
const memoryPath = (id: string): string => `${MEMORY_PATH}/${encodeURIComponent(id)}`
const runRequest = (id: string): HttpRequest => ({ method: 'GET', path: `${sessionPath(id)}/run` })

const session = <T>(answer: Result<{ session: T }, ClientFailure>): Result<T, ClientFailure> =>
  answer.ok ? ok(answer.value.session) : answer
