/** Keys of model providers by provider id (`anthropic`, `openai-compat:<name>`); sent with a request, never stored. */
export type ProviderKeys = Readonly<Record<string, string>>

const INSTANCE_PREFIX = 'openai-compat:'
const BUILT_IN: ReadonlySet<string> = new Set(['anthropic', 'gemini', 'openai', 'ollama'])

/**
 * The request headers that carry provider keys (EC 1.1). An OpenAI-compatible instance named like a built-in
 * provider has no header of its own: the built-in one always wins, so its key is left out rather than sent to the
 * wrong place.
 */
export function providerHeaders(keys: ProviderKeys): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [provider, key] of Object.entries(keys)) {
    const instance = provider.startsWith(INSTANCE_PREFIX)
    const segment = instance ? provider.slice(INSTANCE_PREFIX.length) : provider
    if (instance ? BUILT_IN.has(segment) : !BUILT_IN.has(segment)) continue
    headers[`X-Smista-Provider-${segment}-Api-Key`] = key
  }
  return headers
}
