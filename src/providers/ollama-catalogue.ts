import { z } from 'zod'
import type { ModelDescriptor } from '../protocol/execution/models.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import { applyFacts, combined } from './catalogue/model-facts.ts'
import { catalogueRequest } from './catalogue-request.ts'
import type { OllamaConfig } from './config.ts'
import { mapBounded } from './map-bounded.ts'
import { THINKS_IN_LEVELS } from './ollama-request.ts'
import type { CallContext, ProviderFailure } from './provider.ts'

/** A Worker has six connections at a time; some stay free for others. */
const PARALLEL_SHOWS = 4

/** `provider_options.registration` of a model of Ollama's cloud, which goes by the daemon's name (EC 21). */
export const CLOUD_REGISTRATION = 'cloud'

/** A forwarded model whose window nobody tells. */
const UNKNOWN_CONTEXT_TOKENS = 4096

const Listed = z.object({ name: z.string().min(1), remote_host: z.string().optional() })
const Tags = z.object({ models: z.array(Listed).nullable() })
const Shown = z.object({
  capabilities: z.array(z.string()).optional(),
  model_info: z.record(z.string(), z.unknown()).nullish(),
  /** The `PARAMETER` lines of the Modelfile, as text. */
  parameters: z.string().optional(),
  template: z.string().optional(),
  details: z.object({ family: z.string().optional() }).optional(),
  remote_host: z.string().optional(),
})

/**
 * The models of a daemon, under the names that it lists (`name:tag`; EC 4: no name is completed, so `llama3` is not
 * `llama3:latest`). Models that cannot chat are left out, as is one that the daemon lists but cannot show. What speaks
 * Ollama's format without `/api/show` is taken at its word: its models may call tools, in the window that is configured.
 * Ollama's cloud answers in the same way.
 */
export async function listOllamaModels(
  config: OllamaConfig,
  context: CallContext,
  names: readonly string[] | undefined,
): Promise<Result<ModelDescriptor[], ProviderFailure>> {
  const isAllowed = (name: string) => config.allowedModels?.includes(name) ?? true
  if (names !== undefined && !names.some(isAllowed)) return ok([])
  const endpoint = { baseUrl: config.baseUrl, local: config.local }
  const tags = await catalogueRequest(endpoint, context, '/api/tags', Tags)
  if (!tags.ok) return tags
  const wanted = (tags.value.models ?? []).filter(
    ({ name }) => isAllowed(name) && (names?.includes(name) ?? true),
  )
  const shows = await mapBounded(wanted, PARALLEL_SHOWS, async (listed) => ({
    listed,
    shown: await show(endpoint, context, listed.name),
  }))
  const failures = shows.flatMap(({ shown }) => (shown.ok ? [] : [shown.error]))
  // One broken model hides only itself; running out of time, or nothing but failures, speaks of the daemon.
  const failure =
    failures.length === shows.length
      ? failures[0]
      : failures.find(({ category, aborted }) => aborted || category === 'timeout')
  if (failure !== undefined) return err(failure)
  return ok(
    shows.flatMap(({ listed, shown }) =>
      shown.ok && canChat(shown.value) ? [describe(listed, shown.value, config)] : [],
    ),
  )
}

async function show(
  endpoint: { baseUrl: string; local: boolean },
  context: CallContext,
  model: string,
): Promise<Result<z.infer<typeof Shown>, ProviderFailure>> {
  const shown = await catalogueRequest(endpoint, context, '/api/show', Shown, { body: { model } })
  return !shown.ok && shown.error.status === 404 ? ok({}) : shown
}

/** Daemons from before `capabilities` tell by the template; without either the model is asked, and may refuse. */
const callsTools = ({ capabilities, template }: z.infer<typeof Shown>): boolean =>
  capabilities?.includes('tools') ?? (template === undefined || /\.Tools\b/.test(template))

/** Embedding models are listed, too. Daemons from before capabilities say nothing. */
const canChat = ({ capabilities }: z.infer<typeof Shown>): boolean =>
  capabilities?.includes('completion') ?? true

/**
 * EC 21. A daemon also lists models that it forwards to Ollama's cloud: those are remote, whatever the daemon is, and
 * have no known price and no window of this machine.
 */
function describe(
  listed: z.infer<typeof Listed>,
  shown: z.infer<typeof Shown>,
  config: OllamaConfig,
): ModelDescriptor {
  const can = new Set(shown.capabilities ?? [])
  const local = config.local && !isForwarded(listed.name, listed.remote_host, shown.remote_host)
  const thinksInLevels = /^gpt-?oss$/.test(shown.details?.family ?? '')
  const described: ModelDescriptor = {
    provider: 'ollama',
    model: listed.name,
    display_name: null,
    local,
    auth: config.cloud ? 'api_key' : 'none',
    capabilities: {
      streaming: true,
      tools: callsTools(shown),
      json_output: true,
      system_prompt: true,
      images: can.has('vision'),
      reasoning: can.has('thinking'),
      memory: callsTools(shown),
    },
    max_context_tokens: contextTokens(shown, local ? config.maxContextTokens : Number.POSITIVE_INFINITY),
    max_output_tokens: null,
    ...(local ? { input_cost_per_million_tokens: '0', output_cost_per_million_tokens: '0' } : {}),
    default_parameters: {},
    ...(thinksInLevels ? { provider_options: THINKS_IN_LEVELS } : {}),
  }
  const model = applyFacts(described, combined(config.facts ?? [], listed.name))
  if (!config.cloud) return model
  return { ...model, provider_options: { ...model.provider_options, registration: CLOUD_REGISTRATION } }
}

/** The daemon names the host that it forwards to; the cloud's tags end so, and a doubt counts as remote. */
const isForwarded = (name: string, ...hosts: (string | undefined)[]): boolean =>
  hosts.some((host) => host !== undefined && host !== '') || /[:-]cloud$/.test(name)

/** The smallest of what the model was trained for, what its Modelfile sets and what the configuration allows. */
function contextTokens({ model_info, parameters }: z.infer<typeof Shown>, capTokens: number): number {
  const trained = Object.entries(model_info ?? {}).find(
    ([key, value]) => key.endsWith('.context_length') && typeof value === 'number' && value > 0,
  )?.[1]
  const set = /^\s*num_ctx\s+(\d+)/m.exec(parameters ?? '')?.[1]
  const known = Math.min(
    typeof trained === 'number' ? trained : Number.POSITIVE_INFINITY,
    set === undefined ? Number.POSITIVE_INFINITY : Number(set),
    capTokens,
  )
  return Number.isFinite(known) ? known : UNKNOWN_CONTEXT_TOKENS
}
