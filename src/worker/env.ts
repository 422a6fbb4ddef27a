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
  /** In days; 0 keeps for ever (D31). */
  RETENTION_TRACES_DAYS?: string
  RETENTION_ARCHIVED_DAYS?: string
  RETENTION_SESSIONS_DAYS?: string
}

export const isLocalDev = (env: Env): boolean => env.LOCAL_DEV === '1'

/** A whole number of the configuration; anything else counts as not set. */
export const numberVar = (value: string | undefined, absent: number): number =>
  value !== undefined && /^\d{1,12}$/.test(value) ? Number(value) : absent

/** The object that owns a session. */
export function sessionStub(env: Env, sessionId: string): SessionRpc {
  // The stub's generated type wraps every result once more and is too deep to spell out; the interface is what it serves.
  return env.SESSION.getByName(sessionId) as unknown as SessionRpc
}
