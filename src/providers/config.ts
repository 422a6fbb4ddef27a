import type { Failure } from '../protocol/execution/errors.ts'
import { failure } from '../protocol/execution/errors.ts'
import { INSTANCE_NAME, isBuiltInProvider, type Provider } from '../protocol/execution/ids.ts'
import type { ModelAuthRequirement, ModelDescriptor } from '../protocol/execution/models.ts'
import { isPrivateAddress, parseBaseUrl } from './base-url.ts'
import { parseInstance } from './instance-config.ts'

/** The Ollama daemon of the deployment (D13). */
export type OllamaConfig = {
  /** An origin, without a slash at its end. */
  baseUrl: string
  local: boolean
  /** Upper bound of every local model's window: it becomes `num_ctx`, and with it memory of the daemon. */
  maxContextTokens: number
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
}

/** A part of the configuration that is not used. `provider` is absent where not even its name can be read. */
export type ConfigProblem = { provider?: Provider; failure: Failure }

/**
 * What the Worker's variables say about providers. Entries that cannot be used stand in `problems` and take nothing
 * else down: the rest of a deployment goes on working, and the broken provider answers with its problem.
 */
export type ProviderConfig = {
  ollama?: OllamaConfig
  instances: InstanceConfig[]
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

/** Fits the memory of a machine that runs such models, and the files of a coding session. */
const DEFAULT_MAX_CONTEXT_TOKENS = 32_768

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
 * - `OLLAMA_BASE_URL`: the origin of a daemon; absent, there is none.
 * - `OLLAMA_LOCAL`: `true` or `false`. Without it a daemon counts as local when its address is private (loopback, LAN, a
 *   name without a public domain). A daemon behind a public name must be declared to be inside the owner's trust
 *   boundary (EC 9), and Ollama's own cloud can never be.
 * - `OLLAMA_MAX_CONTEXT_TOKENS`: see `OllamaConfig`; 32768 by default.
 * - `PROVIDERS`: a JSON list of OpenAI-compatible instances, see `parseInstance`.
 * - `PROVIDER_<NAME>_API_KEY`: the key of an instance, its name in upper case and `-` as `_`.
 *
 * Messages of problems name variables and entries, never a value of a secret or a URL.
 */
export function parseProviderConfig(vars: Record<string, string | undefined>): ProviderConfig {
  const problems: ConfigProblem[] = []
  const ollama = parseOllama(vars, problems)
  const instances = parseInstances(vars.PROVIDERS, problems)
  const secrets = parseSecrets(vars, instances, problems)
  return { ...(ollama === undefined ? {} : { ollama }), instances, secrets, problems }
}

function parseOllama(
  vars: Record<string, string | undefined>,
  problems: ConfigProblem[],
): OllamaConfig | undefined {
  const text = vars.OLLAMA_BASE_URL?.trim()
  if (!text) return undefined
  const baseUrl = parseBaseUrl(text, 'none')
  if (!baseUrl.ok) {
    problems.push(problem(`OLLAMA_BASE_URL ${baseUrl.error}`, 'ollama'))
    return undefined
  }
  const isCloud = /(^|\.)ollama\.com$/.test(new URL(baseUrl.value).hostname)
  const declared = vars.OLLAMA_LOCAL?.trim() || undefined
  // Locality decides what may be sent there, so a doubtful value is not guessed at.
  if (declared !== undefined && declared !== 'true' && declared !== 'false') {
    problems.push(problem('OLLAMA_LOCAL must be true or false', 'ollama'))
    return undefined
  }
  if (declared === 'true' && isCloud) {
    problems.push(problem('OLLAMA_LOCAL cannot be true for a cloud service', 'ollama'))
    return undefined
  }
  return {
    baseUrl: baseUrl.value,
    local: declared === undefined ? isPrivateAddress(baseUrl.value) : declared === 'true',
    maxContextTokens: parseMaxContextTokens(vars.OLLAMA_MAX_CONTEXT_TOKENS, problems),
  }
}

/** A wrong number only costs the wish: the default is safe, and the daemon goes on serving. */
function parseMaxContextTokens(text: string | undefined, problems: ConfigProblem[]): number {
  const given = text?.trim()
  if (!given) return DEFAULT_MAX_CONTEXT_TOKENS
  const tokens = /^\d{1,9}$/.test(given) ? Number(given) : 0
  if (tokens > 0) return tokens
  problems.push(
    problem(
      `OLLAMA_MAX_CONTEXT_TOKENS must be a whole number above 0; ${DEFAULT_MAX_CONTEXT_TOKENS} is used`,
    ),
  )
  return DEFAULT_MAX_CONTEXT_TOKENS
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
      const id: Provider = `openai-compat:${name}`
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

const secretName = (name: string): string => `PROVIDER_${name.toUpperCase().replaceAll('-', '_')}_API_KEY`

function parseSecrets(
  vars: Record<string, string | undefined>,
  instances: readonly InstanceConfig[],
  problems: ConfigProblem[],
): Map<Provider, string> {
  const secrets = new Map<Provider, string>()
  const owners = new Map(instances.map(({ id }) => [secretName(id.slice('openai-compat:'.length)), id]))
  for (const [name, value] of Object.entries(vars)) {
    if (!/^PROVIDER_[A-Z0-9_]+_API_KEY$/.test(name) || typeof value !== 'string') continue
    const key = value.trim()
    const owner = owners.get(name)
    if (key === '') continue
    if (owner === undefined) problems.push(problem(`${name} belongs to no instance in PROVIDERS`))
    else if (!/^[\x21-\x7e]+$/.test(key))
      problems.push(problem(`${name} is not a key: it cannot stand in a header`, owner))
    else secrets.set(owner, key)
  }
  return secrets
}
