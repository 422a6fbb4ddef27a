import type { Catalogue, Lookup } from '../core/select.ts'
import { failure } from '../protocol/execution/errors.ts'
import type { Provider } from '../protocol/execution/ids.ts'
import type { Access } from '../providers/access.ts'
import { makeEgress } from '../providers/egress.ts'
import { categoryToCode } from '../providers/failures.ts'
import type { ProviderMap } from '../providers/provider.ts'

/** How long a listing holds: a model that was just pulled shows up within this. */
const LISTING_TTL_MS = 60_000
/** A provider that could not be asked is asked again after this: it may just have been started. */
const UNAVAILABLE_TTL_MS = 2_000
/** A listing that takes longer counts as a provider that cannot be asked. */
const LISTING_DEADLINE_MS = 10_000

type Known = { atMs: number; lookup: Lookup }

/**
 * What this object knows of the models it may route to, by model and credential (D12). A provider is asked only for the
 * models that a route names, when the route first reaches one of them.
 */
export class ModelCatalogue {
  readonly #providers: ProviderMap
  #known = new Map<string, Known>()

  constructor(providers: ProviderMap) {
    this.#providers = providers
  }

  /** The view of one request: what it may use, with what it brought. */
  view(access: Access, nowMs: number): Catalogue {
    return {
      hasCredential: (provider) => access.credentialFor(provider) !== undefined,
      find: (provider, model) => {
        const registered = this.#providers.get(provider)
        if (!registered || !access.mayUse(registered.descriptor)) return { k: 'absent' }
        const known = this.#known.get(keyOf(access, provider, model))
        if (!known) return { k: 'unlisted' }
        const ttlMs = known.lookup.k === 'unavailable' ? UNAVAILABLE_TTL_MS : LISTING_TTL_MS
        return nowMs - known.atMs < ttlMs ? known.lookup : { k: 'unlisted' }
      },
    }
  }

  /** Asks a provider for the models named. What it fails with is remembered like an answer; only `signal` leaves no mark. */
  async list(
    provider: Provider,
    models: readonly string[],
    access: Access,
    signal: AbortSignal,
  ): Promise<void> {
    const registered = this.#providers.get(provider)
    if (!registered) return
    const credential = access.credentialFor(provider)
    const controller = new AbortController()
    const cut = () => controller.abort(new DOMException('the listing took too long', 'TimeoutError'))
    const timer = setTimeout(cut, LISTING_DEADLINE_MS)
    signal.addEventListener('abort', cut, { once: true })
    const listed = await registered.listModels(
      {
        ...(credential === undefined ? {} : { credential }),
        egress: makeEgress({
          record: () => {},
          purpose: 'catalogue',
          provider,
          chosenBy: 'catalogue',
          // A listing holds nothing of the user's: it may ask a remote provider what it offers.
          remoteAllowed: true,
        }),
        signal: controller.signal,
      },
      models,
    )
    clearTimeout(timer)
    signal.removeEventListener('abort', cut)
    // A turn that was cut says nothing about the provider.
    if (signal.aborted) return
    const atMs = Date.now()
    for (const name of models) {
      const model = listed.ok ? listed.value.find((descriptor) => descriptor.model === name) : undefined
      const lookup: Lookup = listed.ok
        ? model
          ? { k: 'found', model }
          : { k: 'absent' }
        : {
            k: 'unavailable',
            failure: failure(categoryToCode(listed.error.category), listed.error.message, { provider }),
          }
      this.#known.set(keyOf(access, provider, name), { atMs, lookup })
    }
  }
}

const keyOf = (access: Access, provider: Provider, model: string): string =>
  `${access.cacheKey(provider)}\n${model}`
