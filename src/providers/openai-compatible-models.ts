import { z } from 'zod'
import type { ModelDescriptor } from '../protocol/execution/models.ts'
import { ok, type Result } from '../protocol/result.ts'
import { BASE_CAPABILITIES } from './capabilities.ts'
import { applyFacts, combined } from './catalogue/model-facts.ts'
import { catalogueRequest } from './catalogue-request.ts'
import type { InstanceConfig } from './config.ts'
import type { CallContext, ProviderFailure } from './provider.ts'

/** For a model whose window the endpoint does not tell: what small local servers are started with as a rule. */
export const UNKNOWN_CONTEXT_TOKENS = 8192

const Window = z.int().positive().nullish().catch(undefined)
const ListedModel = z.object({
  id: z.string().min(1),
  // One fact, a name for it in each house: OpenRouter and Together, vLLM, Groq, Mistral and LM Studio.
  context_length: Window,
  max_model_len: Window,
  context_window: Window,
  max_context_length: Window,
})
const Listing = z
  .union([z.object({ data: z.array(z.unknown()) }), z.array(z.unknown())])
  .transform((body) => (Array.isArray(body) ? body : body.data))

/**
 * Asks the endpoint which models it serves. Nothing is known of them but a name and, with luck, a window: they get the
 * default capabilities (EC 21) and no price, unless the owner's facts say more. Entries that cannot be read are left out.
 */
export async function discoverModels(
  instance: InstanceConfig,
  context: CallContext,
): Promise<Result<ModelDescriptor[], ProviderFailure>> {
  const endpoint = { baseUrl: instance.baseUrl, local: instance.local }
  const listing = await catalogueRequest(endpoint, context, '/models', Listing)
  if (!listing.ok) return listing
  const models = listing.value.flatMap((entry) => {
    const parsed = ListedModel.safeParse(entry)
    if (!parsed.success) return []
    return [applyFacts(describe(parsed.data, instance), combined(instance.facts ?? [], parsed.data.id))]
  })
  return ok(models)
}

function describe(listed: z.infer<typeof ListedModel>, instance: InstanceConfig): ModelDescriptor {
  const window =
    listed.context_length ?? listed.max_model_len ?? listed.context_window ?? listed.max_context_length
  return {
    provider: instance.id,
    model: listed.id,
    display_name: null,
    local: instance.local,
    auth: instance.auth,
    capabilities: BASE_CAPABILITIES,
    max_context_tokens: window ?? UNKNOWN_CONTEXT_TOKENS,
    max_output_tokens: null,
    default_parameters: {},
  }
}
