import type { Failure } from '../protocol/execution/errors.ts'
import { failure } from '../protocol/execution/errors.ts'
import { INSTANCE_NAME, isBuiltInProvider, type Provider } from '../protocol/execution/ids.ts'
import type { ModelAuthRequirement, ModelDescriptor } from '../protocol/execution/models.ts'
import { parseBaseUrl } from './base-url.ts'
import { parseModelFacts } from './catalogue/facts-config.ts'
import type { FactEntry } from './catalogue/model-facts.ts'
import type { CloudConfig } from './cloud-config.ts'
import { parseInstance } from './instance-config.ts'
import { parseOllamaCloud, parseOllamaDaemon } from './ollama-config.ts'

/** An endpoint that speaks Ollama: the daemon of the deployment (D13), or Ollama's cloud. */
export type OllamaConfig = {
  /** An origin, without a slash at its end. */
  baseUrl: string
  local: boolean
  /** Upper bound of every local model's window: it becomes `num_ctx`, and with it memory of the daemon. */
  maxContextTokens: number
  /** The only models that are offered, by exact name; absent, all are (EC 21). */
  allowedModels?: readonly string[]
  /** It is Ollama's cloud: its models need a key. */
  cloud?: true
  /** What the owner knows better. */
  facts?: readonly FactEntry[]
}

/** One OpenAI-compatible endpoint (EC 21). */
export type InstanceConfig = {
  id: Provider
  displayName: string
  /** Ends in its version path, without a slash. */
  baseUrl: string
  local: boolean
  /** Holds for models that are discovered; a declared model carries its own. */
  auth: ModelAuthRequirement
  /** Absent: the models are discovered by asking the endpoint. */
  models?: ModelDescriptor[]
  /** What the owner knows of models that are discovered. */
  facts?: readonly FactEntry[]
}

/** A part of the configuration that is not used. `provider` is absent where not even its name can be read. */
export type ConfigProblem = { provider?: Provider; failure: Failure }

/**
 * What the Worker's variables say about providers. Entries that cannot be used stand in `problems` and take nothing
 * else down: the rest of a deployment goes on working, and the broken provider answers with its problem.
 */
export type ProviderConfig = {
  /** The built-in cloud providers whose addresses can be used. */
  clouds: CloudConfig[]
  ollama?: OllamaConfig
  /** Ollama's cloud, when it is used. */
  ollamaCloud?: { baseUrl: string }
  instances: InstanceConfig[]
  /** What the owner says about models, by provider. */
  facts: ReadonlyMap<Provider, FactEntry[]>
  /** Keys of the deployment by provider. Whom they may serve is the caller's business (D14). */
  secrets: ReadonlyMap<Provider, string>
  problems: ConfigProblem[]
}

/** Every text variable: providers are configured by names that are not known beforehand (D15). */
export function textVars(env: object): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

/** The built-in cloud providers: always there, and of use to whoever has a key (EC 21). */
export const CLOUDS = [
  {
    id: 'anthropic',
    displayName: 'Anthropic',
    baseUrl: 'https://api.anthropic.com',
    variable: 'ANTHROPIC_BASE_URL',
    path: 'none',
  },
  {
    id: 'gemini',
    displayName: 'Gemini',
    baseUrl: 'https://generativelanguage.googleapis.com',
    variable: 'GEMINI_BASE_URL',
    path: 'none',
  },
  {
    id: 'openai',
    displayName: 'OpenAI',
    baseUrl: 'https://api.openai.com/v1',
    variable: 'OPENAI_BASE_URL',
    path: 'version',
  },
] as const

const problem = (message: string, provider?: Provider): ConfigProblem => ({
  ...(provider === undefined ? {} : { provider }),
  failure: failure(
    'invalid_provider_configuration',
    message,
    provider === undefined ? undefined : { provider },
  ),
})

/**
 * Reads the providers of the deployment from variables and secrets (D13, D15, EC 21):
 *
 * - `ANTHROPIC_BASE_URL`, `GEMINI_BASE_URL` (origins), `OPENAI_BASE_URL` (with its version path): other addresses of the
 *   built-in cloud providers. They are remote whatever their address (D14).
 * - `OLLAMA_BASE_URL`: the origin of a daemon; absent, there is none.
 * - `OLLAMA_LOCAL`: `true` or `false`. Without it a daemon counts as local when its address is private (loopback, LAN, a
 *   name without a public domain). A daemon behind a public name must be declared to be inside the owner's trust
 *   boundary (EC 9), and Ollama's own cloud can never be.
 * - `OLLAMA_MAX_CONTEXT_TOKENS`, `OLLAMA_ALLOWED_MODELS` (comma-separated): see `OllamaConfig`; 32768 and all by default.
 * - `OLLAMA_CLOUD_BASE_URL`: the origin of Ollama's cloud; absent, it is not used.
 * - `PROVIDERS`: a JSON list of OpenAI-compatible instances, see `parseInstance`.
 * - `ANTHROPIC_API_KEY`, `GEMINI_API_KEY`, `OPENAI_API_KEY`, `OLLAMA_API_KEY` (of its cloud), and
 *   `PROVIDER_<NAME>_API_KEY`: the key of an instance, its name in upper case and `-` as `_`.
 * - `MODEL_FACTS`: see `parseModelFacts`.
 *
 * Messages of problems name variables and entries, never a value of a secret or a URL.
 */
export function parseProviderConfig(vars: Record<string, string | undefined>): ProviderConfig {
  const problems: ConfigProblem[] = []
  const reportOllama = (message: string, ofProvider: boolean) => {
    problems.push(problem(message, ofProvider ? 'ollama' : undefined))
  }
  const clouds = parseClouds(vars, problems)
  const ollama = parseOllamaDaemon(vars, reportOllama)
  const ollamaCloud = parseOllamaCloud(vars, reportOllama)
  const instances = parseInstances(vars.PROVIDERS, problems)
  const facts = parseFacts(vars.MODEL_FACTS, instances, problems)
  const secrets = new Map([...builtInSecrets(vars, problems), ...instanceSecrets(vars, instances, problems)])
  return {
    clouds,
    ...(ollama === undefined ? {} : { ollama }),
    ...(ollamaCloud === undefined ? {} : { ollamaCloud }),
    instances,
    facts,
    secrets,
    problems,
  }
}

function parseClouds(vars: Record<string, string | undefined>, problems: ConfigProblem[]): CloudConfig[] {
  return CLOUDS.flatMap(({ id, displayName, baseUrl: standard, variable, path }) => {
    const baseUrl = parseBaseUrl(vars[variable]?.trim() || standard, path)
    if (baseUrl.ok) return [{ id, displayName, baseUrl: baseUrl.value }]
    problems.push(problem(`${variable} ${baseUrl.error}`, id))
    return []
  })
}

function parseFacts(
  text: string | undefined,
  instances: readonly InstanceConfig[],
  problems: ConfigProblem[],
): ReadonlyMap<Provider, FactEntry[]> {
  const { facts, faults } = parseModelFacts(text)
  problems.push(...faults.map((fault) => problem(fault)))
  for (const provider of facts.keys()) {
    const name = provider.slice(INSTANCE_PREFIX.length)
    if (!isBuiltInProvider(provider) && !instances.some(({ id }) => id === provider))
      problems.push(problem(`MODEL_FACTS speaks of ${name}, which is no instance in PROVIDERS`))
  }
  return facts
}

function parseInstances(text: string | undefined, problems: ConfigProblem[]): InstanceConfig[] {
  if (!text?.trim()) return []
  const entries = parseList(text)
  if (entries === undefined) {
    problems.push(problem('PROVIDERS must be a JSON list of OpenAI-compatible instances'))
    return []
  }
  const instances: InstanceConfig[] = []
  const taken = new Set<string>()
  for (const [index, entry] of entries.entries()) {
    const at = `PROVIDERS[${index}]`
    const name = nameOf(entry)
    if (name === undefined || !INSTANCE_NAME.test(name)) {
      problems.push(problem(`${at}.name must be made of a-z, 0-9, _ and -`))
    } else if (isBuiltInProvider(name)) {
      problems.push(problem(`${at}.name: ${name} is a built-in provider`))
    } else if (taken.has(secretName(name))) {
      // Two names that differ only in - and _ would share one secret: a key would reach the wrong provider.
      problems.push(problem(`${at}.name: ${name} is already taken, - and _ count as the same`))
    } else {
      taken.add(secretName(name))
      const id: Provider = `${INSTANCE_PREFIX}${name}`
      const parsed = parseInstance(entry, id, name)
      problems.push(...parsed.faults.map((fault) => problem(`${at} (${name})${fault}`, id)))
      if (parsed.instance !== undefined) instances.push(parsed.instance)
    }
  }
  return instances
}

function parseList(text: string): unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

const nameOf = (entry: unknown): string | undefined =>
  typeof entry === 'object' && entry !== null && 'name' in entry && typeof entry.name === 'string'
    ? entry.name
    : undefined

const INSTANCE_PREFIX = 'openai-compat:'

const secretName = (name: string): string => `PROVIDER_${name.toUpperCase().replaceAll('-', '_')}_API_KEY`

function instanceSecrets(
  vars: Record<string, string | undefined>,
  instances: readonly InstanceConfig[],
  problems: ConfigProblem[],
): Map<Provider, string> {
  const secrets = new Map<Provider, string>()
  const owners = new Map(instances.map(({ id }) => [secretName(id.slice(INSTANCE_PREFIX.length)), id]))
  for (const [name, value] of Object.entries(vars)) {
    if (!/^PROVIDER_[A-Z0-9_]+_API_KEY$/.test(name) || !value?.trim()) continue
    const owner = owners.get(name)
    if (owner === undefined) problems.push(problem(`${name} belongs to no instance in PROVIDERS`))
    else takeSecret(secrets, owner, { name, value }, problems)
  }
  return secrets
}

/** The key `OLLAMA_API_KEY` is that of Ollama's cloud: without the cloud it is of no use, and a daemon never gets it. */
function builtInSecrets(
  vars: Record<string, string | undefined>,
  problems: ConfigProblem[],
): Map<Provider, string> {
  const secrets = new Map<Provider, string>()
  for (const provider of [...CLOUDS.map(({ id }) => id), 'ollama']) {
    const name = `${provider.toUpperCase()}_API_KEY`
    const value = vars[name]
    if (!value?.trim()) continue
    if (provider === 'ollama' && !vars.OLLAMA_CLOUD_BASE_URL?.trim()) {
      problems.push(problem(`${name} is the key of Ollama’s cloud, and OLLAMA_CLOUD_BASE_URL is not set`))
    } else takeSecret(secrets, provider, { name, value }, problems)
  }
  return secrets
}

function takeSecret(
  secrets: Map<Provider, string>,
  owner: Provider,
  { name, value }: { name: string; value: string },
  problems: ConfigProblem[],
): void {
  const key = value.trim()
  if (/^[\x21-\x7e]+$/.test(key)) secrets.set(owner, key)
  else problems.push(problem(`${name} is not a key: it cannot stand in a header`, owner))
}
