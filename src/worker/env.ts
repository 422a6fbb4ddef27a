import type { SessionRpc } from '../session/rpc.ts'

/** What a deployment is configured with (README, configuration). */
export type Env = {
  DB: D1Database
  SESSION: DurableObjectNamespace
  /** Set by the local commands only, never in a configuration file (D43). */
  LOCAL_DEV?: string
  BOOTSTRAP_TOKEN?: string
  ALLOWED_ORIGINS?: string
  RATE_LIMIT_PERIOD_MS?: string
  RATE_LIMIT_BURST?: string
  TOKEN_TTL_SECONDS?: string
  SHARED_PROVIDERS?: string
}

/** Every text variable: providers are configured by names that are not known beforehand (D15). */
export function textVars(env: object): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

export const isLocalDev = (env: Env): boolean => env.LOCAL_DEV === '1'

/** The object that owns a session. */
export function sessionStub(env: Env, sessionId: string): SessionRpc {
  // The stub's generated type wraps every result once more and is too deep to spell out; the interface is what it serves.
  return env.SESSION.getByName(sessionId) as unknown as SessionRpc
}
