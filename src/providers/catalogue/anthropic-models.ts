import { z } from 'zod'
import { ok, type Result } from '../../protocol/result.ts'
import { catalogueRequest } from '../catalogue-request.ts'
import type { CallContext, ProviderFailure } from '../provider.ts'
import type { ModelSource, ToldModel } from './cloud-catalogue.ts'
import type { ModelFacts } from './model-facts.ts'

const API_VERSION = '2023-06-01'
/** The largest page that the API gives. */
const PAGE_SIZE = 1000
/** No catalogue is that long: a listing that never ends is cut here. */
const MAX_PAGES = 10

const Tokens = z.int().positive().nullish().catch(undefined)
const Supported = z.object({ supported: z.boolean() }).nullish().catch(undefined)
const Model = z.object({
  id: z.string().min(1),
  display_name: z.string().min(1).nullish().catch(undefined),
  max_input_tokens: Tokens,
  max_tokens: Tokens,
  capabilities: z
    .object({
      image_input: Supported,
      structured_outputs: Supported,
      thinking: z
        .object({
          supported: z.boolean(),
          types: z.object({ adaptive: Supported, enabled: Supported }).nullish().catch(undefined),
        })
        .nullish()
        .catch(undefined),
    })
    .nullish()
    .catch(undefined),
})
const Page = z.object({
  data: z.array(z.unknown()),
  has_more: z.boolean().nullish(),
  last_id: z.string().nullish(),
})

/** Anthropic's models, as `GET /v1/models` tells them. `baseUrl` is an origin. */
export function anthropicModels(baseUrl: string): ModelSource {
  const ask = <T extends z.ZodType>(context: CallContext, path: string, shape: T) =>
    catalogueRequest({ baseUrl, local: false }, context, path, shape, {
      auth: (key) => ({ 'x-api-key': key, 'anthropic-version': API_VERSION }),
    })
  return {
    async all(context): Promise<Result<ToldModel[], ProviderFailure>> {
      const told: ToldModel[] = []
      let after = ''
      for (let page = 0; page < MAX_PAGES; page++) {
        const answer = await ask(context, `/v1/models?limit=${PAGE_SIZE}${after}`, Page)
        if (!answer.ok) return answer
        const { data, has_more: more, last_id: last } = answer.value
        for (const entry of data) {
          const model = Model.safeParse(entry)
          if (model.success) told.push(tell(model.data))
        }
        if (!more || !last) break
        after = `&after_id=${encodeURIComponent(last)}`
      }
      return ok(told)
    },
    async one(context, name) {
      const answer = await ask(context, `/v1/models/${encodeURIComponent(name)}`, Model)
      if (answer.ok) return ok(tell(answer.value))
      return answer.error.status === 404 ? ok(undefined) : answer
    },
  }
}

function tell(model: z.infer<typeof Model>): ToldModel {
  const { capabilities } = model
  const thinking = capabilities?.thinking
  const images = capabilities?.image_input
  const json = capabilities?.structured_outputs
  const facts: ModelFacts = {
    ...(model.display_name ? { display_name: model.display_name } : {}),
    ...(model.max_input_tokens ? { max_context_tokens: model.max_input_tokens } : {}),
    ...(model.max_tokens ? { max_output_tokens: model.max_tokens } : {}),
    capabilities: {
      ...(images ? { images: images.supported } : {}),
      ...(json ? { json_output: json.supported } : {}),
      ...(thinking ? { reasoning: thinking.supported } : {}),
    },
    ...(thinking?.types?.adaptive?.supported
      ? { provider_options: { thinking: 'adaptive' } }
      : thinking?.types?.enabled?.supported
        ? { provider_options: { thinking: 'budget' } }
        : {}),
  }
  return { name: model.id, facts }
}
