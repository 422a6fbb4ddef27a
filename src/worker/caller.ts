import type { Context } from 'hono'
import type { Caller } from '../providers/access.ts'
import type { AppEnv } from './context.ts'
import { type Env, isLocalDev } from './env.ts'
import { providerCredentials } from './provider-headers.ts'

/** Who asks, for the objects and providers behind: with the keys of this request, what is remembered of the user, and what of the deployment it may use (D14). */
export function callerOf(c: Context<AppEnv>): Caller {
  const { userId, firstAccount, facts } = c.var.identity
  return {
    userId,
    credentials: providerCredentials(c.req.raw.headers),
    deploymentProviders: mayUseDeployment(c.env, firstAccount),
    facts,
  }
}

/** Whether the deployment's own keys and endpoints serve this user (D14). */
export const mayUseDeployment = (env: Env, firstAccount: boolean): boolean =>
  firstAccount || isLocalDev(env) || env.SHARED_PROVIDERS === 'true'
