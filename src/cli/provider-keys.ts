import type { ProviderKeys } from '../client/provider-header.ts'
import { type Provider, splitModelReference } from '../protocol/execution/ids.ts'
import type { ExecutePolicy } from '../protocol/execution/policy.ts'

/** The names under which other programs know these keys. Ollama's has none that they agree on. */
const COMMON_NAMES: Readonly<Record<string, string>> = {
  anthropic: 'ANTHROPIC_API_KEY',
  openai: 'OPENAI_API_KEY',
  gemini: 'GEMINI_API_KEY',
}

/**
 * Provider keys of the environment, only for providers that the policy or the explicit model names: a key that a run
 * cannot need does not leave the machine. SWITCHYARD_PROVIDER_<NAME>_API_KEY beats the common name.
 */
export function providerKeysFor(
  policy: ExecutePolicy,
  explicitModel?: string,
  env: NodeJS.ProcessEnv = process.env,
): ProviderKeys {
  const { rules, default: route } = policy.routing
  const references = [
    ...rules.flatMap((rule) => [rule.model, ...rule.fallbacks]),
    ...(route ? [route.model, ...route.fallbacks] : []),
    ...(explicitModel === undefined ? [] : [explicitModel]),
  ]
  const keys: Record<string, string> = {}
  for (const reference of references) {
    const { provider } = splitModelReference(reference)
    const key = providerKey(provider, env)
    if (key !== undefined) keys[provider] = key
  }
  return keys
}

/** The variables that may hold the key of a provider; the first that is set counts. */
export function keyVariables(provider: Provider): string[] {
  const name = provider
    .replace(/^openai-compat:/, '')
    .toUpperCase()
    .replaceAll('-', '_')
  const common = COMMON_NAMES[provider]
  return [`SWITCHYARD_PROVIDER_${name}_API_KEY`, ...(common === undefined ? [] : [common])]
}

/** The key of a provider in the environment. */
export function providerKey(provider: Provider, env: NodeJS.ProcessEnv = process.env): string | undefined {
  return keyVariables(provider)
    .map((name) => env[name])
    .find((key) => key !== undefined && key !== '')
}
