import { z } from 'zod'
import { ok } from '../../protocol/result.ts'
import { catalogueRequest } from '../catalogue-request.ts'
import type { ModelSource } from './cloud-catalogue.ts'

const Listing = z.object({ data: z.array(z.unknown()) })
const Listed = z.object({ id: z.string().min(1) })

/**
 * The names that this account may use, as `GET /models` tells them; `baseUrl` ends in its version path. They are models of
 * every kind: which of them chat, and in which window, only the facts say.
 */
export const openAiModels = (baseUrl: string): ModelSource => ({
  async all(context) {
    const listing = await catalogueRequest({ baseUrl, local: false }, context, '/models', Listing)
    if (!listing.ok) return listing
    return ok(
      listing.value.data.flatMap((entry) => {
        const listed = Listed.safeParse(entry)
        return listed.success ? [{ name: listed.data.id, facts: {} }] : []
      }),
    )
  },
})
