import { createExecutionContext } from 'cloudflare:test'
import { env, exports } from 'cloudflare:workers'
import { type ZodType, z } from 'zod'
import { BootstrapResponse, SignInResponse } from '../../../src/protocol/execution/auth.ts'
import type { ContinueRequest } from '../../../src/protocol/execution/continue.ts'
import { ApiError } from '../../../src/protocol/execution/errors.ts'
import type { ExecuteRequest } from '../../../src/protocol/execution/execute.ts'
import { CreateSessionResponse } from '../../../src/protocol/execution/session.ts'
import { TurnResponse } from '../../../src/protocol/execution/turn.ts'
import { app } from '../../../src/worker/app.ts'
import type { Env } from '../../../src/worker/env.ts'

/** The address of a local router: with any other name it refuses (D43). */
export const ORIGIN = 'http://localhost'

export type Headers = Record<string, string>

/** Sends a request through the Worker’s own door. A body that is no text is sent as JSON. */
export function send(method: string, path: string, body?: unknown, headers: Headers = {}): Promise<Response> {
  return exports.default.fetch(makeRequest(method, path, body, headers))
}

/** The same, to a Worker with other variables. `undefined` takes one away. */
export async function sendWith(
  vars: Partial<Record<keyof Env, string | undefined>>,
  method: string,
  path: string,
  body?: unknown,
  headers: Headers = {},
): Promise<Response> {
  const changed = { ...env, ...vars } as unknown as Env
  return app.fetch(makeRequest(method, path, body, headers), changed, createExecutionContext())
}

export function makeRequest(method: string, path: string, body?: unknown, headers: Headers = {}): Request {
  const withBody =
    body === undefined
      ? {}
      : { body: typeof body === 'string' || body instanceof ReadableStream ? body : JSON.stringify(body) }
  return new Request(new URL(path, ORIGIN), {
    method,
    headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
    ...withBody,
  })
}

export type Client = {
  userId: string
  key: string
  token: string
  send(method: string, path: string, body?: unknown, headers?: Headers): Promise<Response>
  newSession(title?: string): Promise<string>
  execute(sessionId: string, body: z.input<typeof ExecuteRequest>, headers?: Headers): Promise<Response>
  proceed(sessionId: string, message: z.input<typeof ContinueRequest>, headers?: Headers): Promise<Response>
  run(sessionId: string, headers?: Headers): Promise<Response>
}

/** A new account with a session token. */
export async function makeClient(): Promise<Client> {
  const account = await parsed(await send('POST', '/api/v1/auth/bootstrap'), BootstrapResponse, 201)
  const key = account.api_key
  const signedIn = await send('POST', '/api/v1/auth/sign-in', undefined, { 'X-Smista-Api-Key': key })
  return clientWith(account.user_id, key, (await parsed(signedIn, SignInResponse)).token)
}

export function clientWith(userId: string, key: string, token: string): Client {
  const authorized = (method: string, path: string, body?: unknown, headers: Headers = {}) =>
    send(method, path, body, { Authorization: `Bearer ${token}`, ...headers })
  const inSession = (sessionId: string, rest: string) => `/api/v1/sessions/${sessionId}/${rest}`
  return {
    userId,
    key,
    token,
    send: authorized,
    newSession: async (title = 'a session') => {
      const response = await authorized('POST', '/api/v1/sessions', { title })
      return (await parsed(response, CreateSessionResponse, 201)).session.id
    },
    execute: (sessionId, body, headers) => authorized('POST', inSession(sessionId, 'execute'), body, headers),
    proceed: (sessionId, message, headers) =>
      authorized('POST', inSession(sessionId, 'continue'), message, headers),
    run: (sessionId, headers) => authorized('GET', inSession(sessionId, 'run'), undefined, headers),
  }
}

/** The body of an answer that must have this status and this shape. */
export async function parsed<Shape extends ZodType>(
  response: Response,
  shape: Shape,
  status = 200,
): Promise<z.infer<Shape>> {
  const text = await response.text()
  if (response.status !== status) throw new Error(`expected ${status}, got ${response.status}: ${text}`)
  return shape.parse(JSON.parse(text))
}

/** What a buffered turn came to. */
export const turnOf = (response: Response): Promise<TurnResponse> => parsed(response, TurnResponse)

/** The turn, which must have this status. */
export async function turnAs<Status extends TurnResponse['status']>(
  response: Response,
  status: Status,
): Promise<Extract<TurnResponse, { status: Status }>> {
  const turn = await turnOf(response)
  if (turn.status !== status) throw new Error(`expected ${status}, got ${JSON.stringify(turn)}`)
  return turn as Extract<TurnResponse, { status: Status }>
}

export type Refused = { status: number; code: string; message: string; details?: unknown }

/** A refusal, which must be in the one error shape (EC 3). */
export async function refused(response: Response): Promise<Refused> {
  const strict = z.strictObject({ error: z.strictObject(ApiError.shape.error.shape) })
  const { error } = strict.parse(await response.json())
  return { status: response.status, ...error }
}
