import type { Catalogue, Lookup } from '../core/select.ts'
import { failure } from '../protocol/execution/errors.ts'
import type { Provider } from '../protocol/execution/ids.ts'
import type { ModelDescriptor } from '../protocol/execution/models.ts'
import type { Access } from '../providers/access.ts'
import { knownModel, listWithGaps, localPartOf, usableBy } from '../providers/catalogue/usable-provider.ts'
import { makeEgress } from '../providers/egress.ts'
import { categoryToCode } from '../providers/failures.ts'
import type { ModelProvider, ProviderFailure, ProviderMap } from '../providers/provider.ts'

/** How long a listing holds: a model that was just pulled shows up within this. */
const LISTING_TTL_MS = 60_000
/** A provider that could not be asked is asked again after this: it may just have been started. */
const UNAVAILABLE_TTL_MS = 2_000
/** A listing that takes longer counts as a provider that cannot be asked. */
const LISTING_DEADLINE_MS = 10_000
/** Models that are remembered, the longest known go first: far more than the routes of a session name. */
const MAX_KNOWN = 500

type Known = { atMs: number; lookup: Lookup }

/**
 * What this object knows of the models it may route to, by model and credential (D12). A provider is asked only for the
 * models that a route names, when the route first reaches one of them, and never for one whose facts are known anyway.
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
        const usable = this.#usable(provider, access)
        if (!usable) return { k: 'absent' }
        const fact = knownModel(usable, model)
        if (fact) return { k: 'found', model: fact }
        const remote = usable.descriptor.local ? {} : { remote: true as const }
        const unlisted: Lookup = { k: 'unlisted', ...remote }
        const known = this.#known.get(keyOf(access, usable, model))
        if (!known) return unlisted
        const ttlMs = known.lookup.k === 'unavailable' ? UNAVAILABLE_TTL_MS : LISTING_TTL_MS
        if (nowMs - known.atMs >= ttlMs) return unlisted
        return known.lookup.k === 'found' ? known.lookup : { ...known.lookup, ...remote }
      },
    }
  }

  /**
   * Asks a provider for the models named. What it fails with is remembered like an answer; only `signal` leaves no mark.
   * @param localOnly for a turn that is bound to local models: nothing remote is asked, not even what it offers (U37)
   */
  async list(
    provider: Provider,
    models: readonly string[],
    access: Access,
    signal: AbortSignal,
    localOnly = false,
  ): Promise<void> {
    const usable = this.#usable(provider, access)
    if (!usable) return
    const part = localOnly ? localPartOf(usable) : usable
    const asked = models.filter((name) => !knownModel(usable, name))
    const credential = access.credentialFor(provider)
    const controller = new AbortController()
    const cut = () => controller.abort(new DOMException('the listing took too long', 'TimeoutError'))
    const timer = setTimeout(cut, LISTING_DEADLINE_MS)
    signal.addEventListener('abort', cut, { once: true })
    const listed = await listWithGaps(
      part,
      {
        ...(credential === undefined ? {} : { credential }),
        egress: makeEgress({
          record: () => {},
          purpose: 'catalogue',
          provider,
          chosenBy: 'catalogue',
          // A listing holds nothing of the user's; a turn bound to local models never asks for a remote one (U37).
          remoteAllowed: !localOnly,
        }),
        signal: controller.signal,
      },
      asked,
    ).finally(() => {
      clearTimeout(timer)
      signal.removeEventListener('abort', cut)
    })
    // A turn that was cut says nothing about the provider.
    if (signal.aborted) return
    const atMs = Date.now()
    for (const name of asked) {
      const model = listed.models.find((descriptor) => descriptor.model === name)
      const key = keyOf(access, usable, name)
      this.#known.delete(key)
      const lookup = lookupOf(provider, model, listed.failure)
      // What only the local part was asked for may still be offered by the remote one.
      const open = lookup.k === 'absent' && part !== usable
      this.#known.set(key, { atMs, lookup: open ? { k: 'unlisted', remote: true } : lookup })
    }
    for (const key of this.#known.keys()) {
      if (this.#known.size <= MAX_KNOWN) break
      this.#known.delete(key)
    }
  }

  #usable(provider: Provider, access: Access): ModelProvider | undefined {
    const registered = this.#providers.get(provider)
    return registered && usableBy(access, registered)
  }
}

function lookupOf(
  provider: Provider,
  model: ModelDescriptor | undefined,
  why: ProviderFailure | undefined,
): Lookup {
  if (model) return { k: 'found', model }
  if (!why) return { k: 'absent' }
  return { k: 'unavailable', failure: failure(categoryToCode(why.category), why.message, { provider }) }
}

/** By credential, and by whether the deployment's local endpoints serve the caller: both change what is listed (D14). */
const keyOf = (access: Access, { descriptor: { id, local } }: ModelProvider, model: string): string =>
  `${access.cacheKey(id)}\n${local}\n${model}`
