import { type Context, Hono } from 'hono'
import type { ListModelsResponse, ListProvidersResponse } from '../../protocol/execution/models.ts'
import { makeAccess } from '../../providers/access.ts'
import { parseProviderConfig, textVars } from '../../providers/config.ts'
import { makeEgress } from '../../providers/egress.ts'
import { makeProviders } from '../../providers/registry.ts'
import { callerOf } from '../caller.ts'
import type { AppEnv } from '../context.ts'
import { identify } from '../middleware/identify.ts'

/** How long a provider may take to list its models, unless the client says otherwise, and at most (EC 2.17). */
const DEFAULT_LISTING_MS = 10_000
const MAX_LISTING_MS = 60_000

export const llm = new Hono<AppEnv>()

llm.use(identify)

llm.get('/providers', async (c) => {
  const { providers } = await providersFor(c)
  return c.json({ providers: providers.map(({ descriptor }) => descriptor) } satisfies ListProvidersResponse)
})

llm.get('/models', async (c) => {
  const { providers, access } = await providersFor(c)
  const controller = new AbortController()
  const timer = setTimeout(
    () => controller.abort(new DOMException('the listing took too long', 'TimeoutError')),
    listingMs(c.req.header('X-Smista-Timeout-Ms')),
  )
  const listed = await Promise.all(
    providers.map(async (provider) => {
      const { id } = provider.descriptor
      const credential = access.credentialFor(id)
      const result = await provider.listModels({
        ...(credential === undefined ? {} : { credential }),
        egress: makeEgress({
          record: () => {},
          purpose: 'catalogue',
          provider: id,
          chosenBy: 'catalogue',
          remoteAllowed: true,
        }),
        signal: controller.signal,
      })
      return { id, result }
    }),
  )
  clearTimeout(timer)
  const models = listed.flatMap(({ result }) => (result.ok ? result.value : []))
  const unavailable = listed.flatMap(({ id, result }) => {
    if (result.ok) return []
    return [{ provider: id, reason: result.error.category, message: result.error.message }]
  })
  return c.json({
    models,
    ...(unavailable.length === 0 ? {} : { unavailable }),
  } satisfies ListModelsResponse)
})

async function providersFor(c: Context<AppEnv>) {
  const config = parseProviderConfig(textVars(c.env))
  const access = await makeAccess(callerOf(c), config.secrets)
  const providers = [...makeProviders(config).values()].filter(({ descriptor }) => access.mayUse(descriptor))
  return { providers, access }
}

/** Missing, zero or no number: the default (EC 2.17). */
function listingMs(header: string | undefined): number {
  const asked = Number(header)
  return Number.isInteger(asked) && asked > 0 ? Math.min(asked, MAX_LISTING_MS) : DEFAULT_LISTING_MS
}
