import type { MemoryFact } from '../core/memory.ts'
import type { Env } from './env.ts'

/** Who asks, as the token proved it. */
export type Identity = {
  userId: string
  tokenId: string
  /** When the token runs out, in epoch milliseconds. */
  tokenExpiresAtMs: number
  /** The deployment's first account (D14). */
  firstAccount: boolean
  /** The session of the path is this user's. */
  ownsSession: boolean
  /** What is remembered of the user, where the request is decided with it (EC 16). */
  facts: MemoryFact[]
}

export type AppEnv = { Bindings: Env; Variables: { identity: Identity; sessionId: string } }
