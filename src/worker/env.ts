import type { GatewayRpc } from '../gateway/rpc.ts'
import type { SessionRpc } from '../session/rpc.ts'

/** What a deployment is configured with (README, configuration). */
export type Env = {
  DB: D1Database
  SESSION: DurableObjectNamespace
  GATEWAY: DurableObjectNamespace
  /** Set by the local commands only, never in a configuration file (D43). */
  LOCAL_DEV?: string
  BOOTSTRAP_TOKEN?: string
  ALLOWED_ORIGINS?: string
  RATE_LIMIT_PERIOD_MS?: string
  RATE_LIMIT_BURST?: string
  TOKEN_TTL_SECONDS?: string
  SHARED_PROVIDERS?: string
  /** JSON array of the routes that devices on the local network may use; set by `npm start -- --lan` (D42). */
  LAN_ROUTES?: string
  /** What devices show this router as. */
  HOST_NAME?: string
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

/** The object that holds a user's devices and their sockets. */
export const gatewayObject = (env: Env, userId: string): DurableObjectStub => env.GATEWAY.getByName(userId)

/** The same, by what it is asked. */
export const gatewayStub = (env: Env, userId: string): GatewayRpc =>
  gatewayObject(env, userId) as unknown as GatewayRpc
