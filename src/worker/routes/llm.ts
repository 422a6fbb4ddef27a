import { type Context, Hono } from 'hono'
import type {
  ListModelsResponse,
  ListProvidersResponse,
  ModelDescriptor,
  UnavailableProvider,
} from '../../protocol/execution/models.ts'
import { type Access, makeAccess } from '../../providers/access.ts'
import { listWithGaps, usableBy } from '../../providers/catalogue/usable-provider.ts'
import { type ProviderConfig, parseProviderConfig, textVars } from '../../providers/config.ts'
import { makeEgress } from '../../providers/egress.ts'
import type { ModelProvider, ProviderFailure } from '../../providers/provider.ts'
import { makeProviders } from '../../providers/registry.ts'
import { digestOf } from '../../storage/digest.ts'
import { callerOf } from '../caller.ts'
import type { AppEnv } from '../context.ts'
import { ListingCache, type ListingKey } from '../listing-cache.ts'
import { identify } from '../middleware/identify.ts'

/** How long a provider may take to list its models, unless the client says otherwise, and at most (EC 2.17). */
const DEFAULT_LISTING_MS = 10_000
const MAX_LISTING_MS = 60_000

const listings = new ListingCache()

export const llm = new Hono<AppEnv>()

llm.use(identify)

llm.get('/providers', async (c) => {
  const { providers } = await providersFor(c)
  return c.json({ providers: providers.map(({ descriptor }) => descriptor) } satisfies ListProvidersResponse)
})

llm.get('/models', async (c) => {
  const { config, providers, access } = await providersFor(c)
  const cache = listings.under(fingerprint(config))
  const controller = new AbortController()
  const timer = setTimeout(
    () => controller.abort(new DOMException('the listing took too long', 'TimeoutError')),
    listingMs(c.req.header('X-Smista-Timeout-Ms')),
  )
  const listed = await Promise.all(
    providers.map((provider) => listOne(provider, access, cache, controller.signal)),
  ).finally(() => clearTimeout(timer))
  const models = listed.flatMap((listing) => listing.models).sort(byName)
  const unavailable = listed.flatMap(({ unavailable }) => unavailable ?? [])
  return c.json({
    models,
    ...(unavailable.length === 0 ? {} : { unavailable }),
  } satisfies ListModelsResponse)
})

type Listed = { models: readonly ModelDescriptor[]; unavailable?: UnavailableProvider }

/** A provider of two parts may list the models of one and tell why the other is unavailable (EC 21). */
async function listOne(
  provider: ModelProvider,
  access: Access,
  cache: ListingCache,
  signal: AbortSignal,
): Promise<Listed> {
  const { id, local } = provider.descriptor
  const credential = access.credentialFor(id)
  const credentialDigest = credential === undefined ? undefined : await digestOf(credential)
  const key: ListingKey = { provider: id, local, credentialDigest }
  const cached = cache.get(key, Date.now())
  if (cached !== undefined) return { models: cached }
  const { models, failure } = await listWithGaps(provider, {
    ...(credential === undefined ? {} : { credential }),
    egress: makeEgress({
      record: () => {},
      purpose: 'catalogue',
      provider: id,
      chosenBy: 'catalogue',
      // A listing holds nothing of the user's: it may ask a remote provider what it offers.
      remoteAllowed: true,
    }),
    signal,
  })
  if (failure !== undefined) return { models, unavailable: toUnavailable(id, failure) }
  cache.set(key, models, Date.now())
  return { models }
}

const toUnavailable = (
  provider: UnavailableProvider['provider'],
  { category, message }: ProviderFailure,
): UnavailableProvider => ({ provider, reason: category, message })

async function providersFor(c: Context<AppEnv>) {
  const config = parseProviderConfig(textVars(c.env))
  const access = await makeAccess(callerOf(c), config.secrets)
  const providers = [...makeProviders(config).values()]
    .flatMap((provider) => usableBy(access, provider) ?? [])
    .sort((a, b) => compare(a.descriptor.id, b.descriptor.id))
  return { config, providers, access }
}

/** Everything of the configuration that changes what is listed, but the keys: they are part of each listing's own key. */
const fingerprint = ({ secrets: _, facts, ...config }: ProviderConfig): string =>
  JSON.stringify([config, [...facts]])

const byName = (a: ModelDescriptor, b: ModelDescriptor): number =>
  compare(a.provider, b.provider) || compare(a.model, b.model)

/** By code units: the same everywhere. */
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Missing, zero or no number: the default (EC 2.17). */
function listingMs(header: string | undefined): number {
  const asked = Number(header)
  return Number.isInteger(asked) && asked > 0 ? Math.min(asked, MAX_LISTING_MS) : DEFAULT_LISTING_MS
}
