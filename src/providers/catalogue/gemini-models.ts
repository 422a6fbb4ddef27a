import { z } from 'zod'
import { ok, type Result } from '../../protocol/result.ts'
import { catalogueRequest } from '../catalogue-request.ts'
import type { CallContext, ProviderFailure } from '../provider.ts'
import type { ModelSource, ToldModel } from './cloud-catalogue.ts'

/** The largest page that the API gives. */
const PAGE_SIZE = 1000
/** No catalogue is that long: a listing that never ends is cut here. */
const MAX_PAGES = 10
const PREFIX = 'models/'

const Tokens = z.int().positive().nullish().catch(undefined)
const Model = z.object({
  name: z.string().startsWith(PREFIX),
  displayName: z.string().min(1).nullish().catch(undefined),
  inputTokenLimit: Tokens,
  outputTokenLimit: Tokens,
  supportedGenerationMethods: z.array(z.string()).nullish(),
  thinking: z.boolean().nullish().catch(undefined),
})
const Page = z.object({ models: z.array(z.unknown()).nullish(), nextPageToken: z.string().nullish() })

/** Gemini's models that generate content, as `GET /v1beta/models` tells them. `baseUrl` is an origin. */
export function geminiModels(baseUrl: string): ModelSource {
  const ask = <T extends z.ZodType>(context: CallContext, path: string, shape: T) =>
    catalogueRequest({ baseUrl, local: false }, context, path, shape, {
      auth: (key) => ({ 'x-goog-api-key': key }),
    })
  return {
    async all(context): Promise<Result<ToldModel[], ProviderFailure>> {
      const told: ToldModel[] = []
      let after = ''
      for (let page = 0; page < MAX_PAGES; page++) {
        const answer = await ask(context, `/v1beta/models?pageSize=${PAGE_SIZE}${after}`, Page)
        if (!answer.ok) return answer
        for (const entry of answer.value.models ?? []) {
          const model = Model.safeParse(entry)
          if (model.success) told.push(...tell(model.data))
        }
        const { nextPageToken: token } = answer.value
        if (!token) break
        after = `&pageToken=${encodeURIComponent(token)}`
      }
      return ok(told)
    },
    async one(context, name) {
      const answer = await ask(context, `/v1beta/models/${encodeURIComponent(name)}`, Model)
      if (answer.ok) return ok(tell(answer.value)[0])
      return answer.error.status === 404 ? ok(undefined) : answer
    },
  }
}

/** The model, or nothing when it generates no content. */
function tell(model: z.infer<typeof Model>): ToldModel[] {
  if (!model.supportedGenerationMethods?.includes('generateContent')) return []
  const { inputTokenLimit: window, outputTokenLimit: output, thinking, displayName } = model
  return [
    {
      name: model.name.slice(PREFIX.length),
      facts: {
        ...(displayName ? { display_name: displayName } : {}),
        ...(window ? { max_context_tokens: window } : {}),
        // A limit as large as the window is shared with the prompt: keeping it free would leave the prompt nothing.
        ...(output && window && output < window ? { max_output_tokens: output } : {}),
        ...(typeof thinking === 'boolean' ? { capabilities: { reasoning: thinking } } : {}),
      },
    },
  ]
}
