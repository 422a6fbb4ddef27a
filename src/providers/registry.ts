import type { Provider } from '../protocol/execution/ids.ts'
import type { ProviderConfig } from './config.ts'
import { MisconfiguredProvider } from './misconfigured.ts'
import { OLLAMA_FIRST_BYTE_MS, OllamaProvider } from './ollama.ts'
import { OpenAiCompatibleProvider } from './openai-compatible.ts'
import type { ModelProvider, ProviderMap } from './provider.ts'
import { DEFAULT_DEADLINES, type Deadlines } from './upstream-call.ts'

/**
 * The providers of a configuration. A provider that has problems and nothing that works is registered, too, and answers
 * every call with the first of them, so that a route to it fails with the reason and not as an unknown name.
 * @param options.deadlines replaces the default deadlines of every completion
 */
export function makeProviders(
  config: ProviderConfig,
  options: { deadlines?: Partial<Deadlines> } = {},
): ProviderMap {
  const deadlines = { ...DEFAULT_DEADLINES, ...options.deadlines }
  const providers = new Map<Provider, ModelProvider>()
  if (config.ollama !== undefined) {
    const firstByteMs = options.deadlines?.firstByteMs ?? OLLAMA_FIRST_BYTE_MS
    providers.set('ollama', new OllamaProvider(config.ollama, { ...deadlines, firstByteMs }))
  }
  for (const instance of config.instances) {
    providers.set(instance.id, new OpenAiCompatibleProvider(instance, deadlines))
  }
  for (const { provider, failure } of config.problems) {
    if (provider !== undefined && !providers.has(provider)) {
      providers.set(provider, new MisconfiguredProvider(provider, failure.message))
    }
  }
  return providers
}
