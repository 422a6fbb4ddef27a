import type { Env } from './env.ts'

/** Who asks, as the token proved it. */
export type Identity = {
  userId: string
  tokenId: string
  /** The deployment's first account (D14). */
  firstAccount: boolean
  /** The session of the path is this user's. */
  ownsSession: boolean
}

export type AppEnv = { Bindings: Env; Variables: { identity: Identity; sessionId: string } }
