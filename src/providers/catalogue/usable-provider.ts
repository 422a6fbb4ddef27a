import type { ModelDescriptor } from '../../protocol/execution/models.ts'
import type { Access } from '../access.ts'
import type { CallContext, ModelProvider } from '../provider.ts'
import { CataloguedProvider } from './catalogued-provider.ts'
import { type Listing, toListing } from './listing.ts'
import { OllamaRegistrations } from './ollama-registrations.ts'

/**
 * What of a provider serves this caller: all of it, its remote half, or nothing (D14). A provider that is local in part
 * shows itself as local only to those whom that part serves.
 */
export function usableBy(access: Access, provider: ModelProvider): ModelProvider | undefined {
  if (access.mayUse(provider.descriptor)) return provider
  return provider instanceof OllamaRegistrations ? provider.withoutDaemon : undefined
}

/** What of a provider a turn that is bound to local models may ask: of the two Ollamas the daemon alone (U37). */
export const localPartOf = (provider: ModelProvider): ModelProvider =>
  provider instanceof OllamaRegistrations ? provider.withoutCloud : provider

/** The descriptor of a model of which everything is known: no listing is needed to route to it (D12). */
export const knownModel = (provider: ModelProvider, name: string): ModelDescriptor | undefined =>
  provider instanceof CataloguedProvider ? provider.known(name) : undefined

/** Asks for the models named, or for all, and keeps what was told when a part of the provider failed. */
export async function listWithGaps(
  provider: ModelProvider,
  context: CallContext,
  names?: readonly string[],
): Promise<Listing> {
  if (provider instanceof OllamaRegistrations) return provider.listWithGaps(context, names)
  return toListing(await provider.listModels(context, names))
}
