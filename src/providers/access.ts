import type { MemoryFact } from '../core/memory.ts'
import type { Provider } from '../protocol/execution/ids.ts'
import type { ProviderDescriptor } from '../protocol/execution/models.ts'
import { digestOf } from '../storage/digest.ts'

/** Who asks, and which provider keys came with the request: for this turn only, in memory only (D06). */
export type Caller = {
  userId: string
  credentials: Record<string, string>
  /** Whether the deployment's own keys and endpoints serve this user (D14). */
  deploymentProviders: boolean
  /** What is remembered of the user: read with the token, for this turn only, in memory only (D25). */
  facts?: MemoryFact[]
}

/** What one request may use of the deployment, and with which keys. Lives for the turn, in memory (D06). */
export type Access = {
  credentialFor(provider: Provider): string | undefined
  mayUse(provider: ProviderDescriptor): boolean
  /** Tells listings made with different keys apart, without being the key. */
  cacheKey(provider: Provider): string
}

/** What is left of a request once its turn is over. */
export const NO_ACCESS: Access = {
  credentialFor: () => undefined,
  mayUse: () => false,
  cacheKey: (provider) => `${provider}\nnone`,
}

/** What may be used without any key of a request: for runs that devices start (D06, D14). */
export const keylessAccess = (
  deploymentProviders: boolean,
  secrets: ReadonlyMap<Provider, string>,
): Access => ({
  credentialFor: (provider) => (deploymentProviders ? secrets.get(provider) : undefined),
  mayUse: ({ local }) => deploymentProviders || !local,
  cacheKey: (provider) => `${provider}\n${deploymentProviders ? 'deployment' : 'none'}`,
})

/**
 * A key of the request beats the deployment's. The deployment's keys, and endpoints that it calls local, serve the
 * first account only unless they are shared (D14).
 */
export async function makeAccess(
  { credentials, deploymentProviders }: Caller,
  secrets: ReadonlyMap<Provider, string>,
): Promise<Access> {
  const digests = new Map<Provider, string>()
  for (const [provider, key] of Object.entries(credentials)) digests.set(provider, await digestOf(key))
  return {
    credentialFor: (provider) =>
      credentials[provider] ?? (deploymentProviders ? secrets.get(provider) : undefined),
    mayUse: ({ local }) => deploymentProviders || !local,
    cacheKey: (provider) =>
      `${provider}\n${digests.get(provider) ?? (deploymentProviders ? 'deployment' : 'none')}`,
  }
}
