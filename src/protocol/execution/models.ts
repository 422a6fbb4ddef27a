import { z } from 'zod'
import { Count, Decimal, Provider } from './ids.ts'

export const ModelCapabilities = z
  .object({
    streaming: z.boolean().optional(),
    tools: z.boolean().optional(),
    json_output: z.boolean().optional(),
    system_prompt: z.boolean().optional(),
    images: z.boolean().optional(),
    reasoning: z.boolean().optional(),
    memory: z.boolean().optional(),
  })
  .meta({ id: 'ModelCapabilities' })
export type ModelCapabilities = z.infer<typeof ModelCapabilities>

export const ModelAuthRequirement = z
  .union([
    z.literal('none'),
    z.literal('api_key'),
    z.literal('optional_api_key'),
    z.object({ custom: z.string() }),
  ])
  .meta({ id: 'ModelAuthRequirement' })
export type ModelAuthRequirement = z.infer<typeof ModelAuthRequirement>

/** Generation parameters; providers may know more than the three named ones. */
export const ModelParameters = z
  .looseObject({
    temperature: z.number().nullable().optional(),
    top_p: z.number().nullable().optional(),
    max_tokens: Count.nullable().optional(),
  })
  .meta({ id: 'ModelParameters' })
export type ModelParameters = z.infer<typeof ModelParameters>

/** One model of the catalogue. Locality is a fact of this descriptor, never of the name (EC 9, 21). */
export const ModelDescriptor = z
  .object({
    provider: Provider,
    model: z.string(),
    display_name: z.string().nullable(),
    local: z.boolean(),
    auth: ModelAuthRequirement,
    capabilities: ModelCapabilities,
    max_context_tokens: Count,
    max_output_tokens: Count.nullable(),
    input_cost_per_million_tokens: Decimal.optional(),
    output_cost_per_million_tokens: Decimal.optional(),
    cached_input_cost_per_million_tokens: Decimal.optional().describe('Of input that the cache gave.'),
    cache_write_cost_per_million_tokens: Decimal.optional().describe('Of input that the cache took.'),
    prices_up_to_input_tokens: Count.optional().describe(
      'Above this many input tokens other prices hold, which are not known here.',
    ),
    prices_as_of: z.iso.date().optional().describe('When the prices were read.'),
    default_parameters: ModelParameters,
    provider_options: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: 'ModelDescriptor' })
export type ModelDescriptor = z.infer<typeof ModelDescriptor>

export const ProviderErrorCategory = z
  .enum([
    'authentication',
    'context_length',
    'invalid_configuration',
    'invalid_credentials',
    'invalid_request',
    'missing_credentials',
    'model_not_found',
    'provider_unavailable',
    'rate_limit',
    'storage',
    'timeout',
    'unknown',
    'unsupported_capability',
  ])
  .meta({ id: 'ProviderErrorCategory' })
export type ProviderErrorCategory = z.infer<typeof ProviderErrorCategory>

export const ProviderDescriptor = z
  .object({ id: Provider, display_name: z.string(), local: z.boolean() })
  .meta({ id: 'ProviderDescriptor' })
export type ProviderDescriptor = z.infer<typeof ProviderDescriptor>

/** `GET /llm/providers` (EC 2.16). */
export const ListProvidersResponse = z
  .object({ providers: z.array(ProviderDescriptor) })
  .meta({ id: 'ListProvidersResponse' })
export type ListProvidersResponse = z.infer<typeof ListProvidersResponse>

export const UnavailableProvider = z
  .object({ provider: Provider, reason: ProviderErrorCategory, message: z.string().nullable().optional() })
  .meta({ id: 'UnavailableProvider' })
export type UnavailableProvider = z.infer<typeof UnavailableProvider>

/** `GET /llm/models` (EC 2.17). */
export const ListModelsResponse = z
  .object({ models: z.array(ModelDescriptor), unavailable: z.array(UnavailableProvider).optional() })
  .meta({ id: 'ListModelsResponse' })
export type ListModelsResponse = z.infer<typeof ListModelsResponse>
