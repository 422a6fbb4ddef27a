import { z } from 'zod'
import { Decimal, type Provider } from '../protocol/execution/ids.ts'
import { ModelCapabilities, type ModelDescriptor, ModelParameters } from '../protocol/execution/models.ts'
import { parseBaseUrl } from './base-url.ts'
import { BASE_CAPABILITIES } from './capabilities.ts'
import type { InstanceConfig } from './config.ts'

const Auth = z.enum(['none', 'optional_api_key', 'api_key'])

/** Fields of a request that a default parameter must not take over. */
const RESERVED_PARAMETERS = ['model', 'messages', 'tools', 'tool_choice', 'stream', 'stream_options', 'n']

/** Unknown keys are refused: a misspelt one would silently change what leaves or what it costs. */
const DeclaredModel = z
  .strictObject({
    model: z.string().min(1).optional(),
    name: z.string().min(1).optional(),
    display_name: z.string().nullish(),
    local: z.boolean().optional(),
    auth: Auth.optional(),
    capabilities: z.strictObject(ModelCapabilities.shape).default({}),
    max_context_tokens: z.int().positive(),
    max_output_tokens: z.int().positive().nullish(),
    input_cost_per_million_tokens: Decimal.optional(),
    output_cost_per_million_tokens: Decimal.optional(),
    cached_input_cost_per_million_tokens: Decimal.optional(),
    cache_write_cost_per_million_tokens: Decimal.optional(),
    prices_as_of: z.iso.date().optional(),
    default_parameters: ModelParameters.default({}),
  })
  .refine(({ model, name }) => (model ?? name) !== undefined, {
    path: ['model'],
    error: 'a model needs a name',
  })
  .refine(({ model, name }) => model === undefined || name === undefined || model === name, {
    path: ['model'],
    error: 'model and name must not differ',
  })
  .refine(({ default_parameters }) => !RESERVED_PARAMETERS.some((key) => key in default_parameters), {
    path: ['default_parameters'],
    error: `must not set ${RESERVED_PARAMETERS.join(', ')}`,
  })

const Instance = z.strictObject({
  name: z.string(),
  display_name: z.string().min(1).optional(),
  base_url: z.string(),
  local: z.boolean().default(false),
  auth: Auth.default('none'),
  models: z.array(z.unknown()).optional(),
})

/**
 * Reads one entry of `PROVIDERS` (D15, EC 21):
 * `{name, base_url, local?, display_name?, auth?, models?: [{model | name, max_context_tokens, …}]}`.
 *
 * `local` is false unless declared. A model that cannot be read is left out and the others stay. An instance is left out
 * whole when it cannot be read itself, when none of its declared models can be used (asking the endpoint instead would
 * offer what was not declared), and when a model contradicts its locality: then it is unknown which of the two holds.
 * @returns what can be used of it, and each fault as the end of a sentence that starts with the entry's name
 */
export function parseInstance(
  entry: unknown,
  id: Provider,
  name: string,
): { instance?: InstanceConfig; faults: string[] } {
  const parsed = Instance.safeParse(entry)
  if (!parsed.success) return { faults: sentences(parsed.error, '') }
  const { display_name: displayName = name, base_url, local, auth } = parsed.data
  const baseUrl = parseBaseUrl(base_url, 'version')
  if (!baseUrl.ok) return { faults: [`.base_url ${baseUrl.error}`] }
  const instance = { id, displayName, baseUrl: baseUrl.value, local, auth }
  if (parsed.data.models === undefined) return { instance, faults: [] }

  const faults: string[] = []
  const models = new Map<string, ModelDescriptor>()
  let contradictory = false
  for (const [index, declared] of parsed.data.models.entries()) {
    const at = `.models[${index}]`
    const model = DeclaredModel.safeParse(declared)
    if (!model.success) {
      faults.push(...sentences(model.error, at))
      continue
    }
    const described = describe(model.data, instance)
    if (model.data.local !== undefined && model.data.local !== local) {
      contradictory = true
      faults.push(`${at}.local contradicts the instance; the instance is not used`)
    } else if (models.has(described.model)) faults.push(`${at}: ${described.model} is declared twice`)
    else models.set(described.model, described)
  }
  if (models.size === 0 && faults.length === 0)
    faults.push('.models is empty; leave it out to ask the endpoint')
  if (contradictory || models.size === 0) return { faults }
  return { instance: { ...instance, models: [...models.values()] }, faults }
}

function describe(
  declared: z.infer<typeof DeclaredModel>,
  instance: Omit<InstanceConfig, 'models'>,
): ModelDescriptor {
  const { model, name, display_name, local: _, auth, capabilities, max_output_tokens, ...rest } = declared
  return {
    ...rest,
    provider: instance.id,
    model: model ?? name ?? '',
    display_name: display_name ?? null,
    local: instance.local,
    auth: auth ?? instance.auth,
    capabilities: { ...BASE_CAPABILITIES, ...capabilities },
    max_output_tokens: max_output_tokens ?? null,
  }
}

/** Zod's messages tell what was expected and never what was found, so a key in the wrong place is not repeated. */
const sentences = (error: z.ZodError, at: string): string[] =>
  error.issues.map(({ path, message }) => {
    const where = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('')
    return `${at}${where}: ${message}`
  })
