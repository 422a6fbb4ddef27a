import { assert } from '../protocol/assert.ts'
import type { Provider } from '../protocol/execution/ids.ts'
import { AnthropicProvider } from './anthropic.ts'
import { anthropicModels } from './catalogue/anthropic-models.ts'
import { CataloguedProvider } from './catalogue/catalogued-provider.ts'
import { CloudCatalogue, type ModelSource } from './catalogue/cloud-catalogue.ts'
import { geminiModels } from './catalogue/gemini-models.ts'
import { applyFacts, combined } from './catalogue/model-facts.ts'
import { OllamaRegistrations } from './catalogue/ollama-registrations.ts'
import { openAiModels } from './catalogue/openai-models.ts'
import type { CloudConfig } from './cloud-config.ts'
import { CLOUDS, type InstanceConfig, type ProviderConfig } from './config.ts'
import { GeminiProvider } from './gemini.ts'
import { MisconfiguredProvider } from './misconfigured.ts'
import { OllamaProvider } from './ollama.ts'
import { OpenAiProvider } from './openai.ts'
import { OpenAiCompatibleProvider } from './openai-compatible.ts'
import type { ModelProvider, ProviderMap } from './provider.ts'
import { DEFAULT_DEADLINES, type Deadlines, OWN_MACHINE_DEADLINES } from './upstream-call.ts'

type Adapter = new (
  config: CloudConfig,
  listModels: ModelProvider['listModels'],
  deadlines: Deadlines,
) => ModelProvider

const CLOUD_PARTS: Record<string, { Adapter: Adapter; source: (baseUrl: string) => ModelSource }> = {
  anthropic: { Adapter: AnthropicProvider, source: anthropicModels },
  gemini: { Adapter: GeminiProvider, source: geminiModels },
  openai: { Adapter: OpenAiProvider, source: openAiModels },
}

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
  const ownMachine = { ...OWN_MACHINE_DEADLINES, ...options.deadlines }
  const providers = new Map<Provider, ModelProvider>()
  for (const cloud of config.clouds) providers.set(cloud.id, makeCloud(cloud, config, deadlines))
  const ollama = makeOllama(config, deadlines, ownMachine)
  if (ollama !== undefined) providers.set('ollama', ollama)
  for (const instance of config.instances) {
    providers.set(
      instance.id,
      new OpenAiCompatibleProvider(withFacts(instance, config), deadlines, ownMachine),
    )
  }
  for (const { provider, failure } of config.problems) {
    if (provider !== undefined && !providers.has(provider)) {
      const name = CLOUDS.find(({ id }) => id === provider)?.displayName
      providers.set(provider, new MisconfiguredProvider(provider, failure.message, name))
    }
  }
  return providers
}

function makeCloud(cloud: CloudConfig, config: ProviderConfig, deadlines: Deadlines): ModelProvider {
  const parts = CLOUD_PARTS[cloud.id]
  assert(parts !== undefined, `${cloud.id} has no adapter`)
  const catalogue = new CloudCatalogue(
    cloud.id,
    config.facts.get(cloud.id) ?? [],
    parts.source(cloud.baseUrl),
  )
  return new CataloguedProvider(new parts.Adapter(cloud, catalogue.listModels, deadlines), catalogue)
}

/** A daemon, which may have to load a model first, and Ollama's cloud, whose models are warm. */
function makeOllama(
  config: ProviderConfig,
  deadlines: Deadlines,
  daemonDeadlines: Deadlines,
): ModelProvider | undefined {
  const facts = config.facts.get('ollama') ?? []
  const parts: { daemon?: ModelProvider; cloud?: ModelProvider } = {}
  if (config.ollama !== undefined) {
    parts.daemon = new OllamaProvider({ ...config.ollama, facts }, daemonDeadlines)
  }
  if (config.ollamaCloud !== undefined) {
    const { baseUrl } = config.ollamaCloud
    const maxContextTokens = Number.POSITIVE_INFINITY
    parts.cloud = new OllamaProvider(
      { baseUrl, local: false, maxContextTokens, cloud: true, facts },
      deadlines,
    )
  }
  return Object.keys(parts).length === 0 ? undefined : new OllamaRegistrations(parts)
}

function withFacts({ models, ...instance }: InstanceConfig, config: ProviderConfig): InstanceConfig {
  const facts = config.facts.get(instance.id) ?? []
  return {
    ...instance,
    facts,
    ...(models === undefined
      ? {}
      : { models: models.map((model) => applyFacts(model, combined(facts, model.model))) }),
  }
}
