import type { Provider } from '../protocol/execution/ids.ts'
import type { ModelDescriptor } from '../protocol/execution/models.ts'

const HOUR_MS = 60 * 60_000
const MINUTE_MS = 60_000
/** The catalogues of the clouds change a few times a month (EC 21); anything else may have pulled a model just now. */
const TTL_MS: Record<Provider, number> = { anthropic: HOUR_MS, gemini: HOUR_MS, openai: HOUR_MS }
/** A listing holds some hundred models at most, about 100 KB: this many fit an isolate with room to spare. */
const MAX_LISTINGS = 64

/** Whose listing it is. Two that differ in anything never see each other's. */
export type ListingKey = {
  provider: Provider
  /** Whether the deployment's local endpoints are part of it (D14). */
  local: boolean
  /** Digest of the credential that is used; undefined without one. */
  credentialDigest: string | undefined
}

/**
 * Listings of whole catalogues, in the memory of this isolate. Only complete ones are kept: a failure is asked about
 * again at once. What one credential may see is never shown to another.
 */
export class ListingCache {
  #configuration = ''
  readonly #listings = new Map<string, { atMs: number; models: readonly ModelDescriptor[] }>()

  /** Forgets everything that was listed under another configuration. */
  under(configuration: string): this {
    if (configuration !== this.#configuration) this.#listings.clear()
    this.#configuration = configuration
    return this
  }

  get(key: ListingKey, nowMs: number): readonly ModelDescriptor[] | undefined {
    const listing = this.#listings.get(textOf(key))
    if (listing === undefined) return undefined
    return nowMs - listing.atMs < (TTL_MS[key.provider] ?? MINUTE_MS) ? listing.models : undefined
  }

  set(key: ListingKey, models: readonly ModelDescriptor[], nowMs: number): void {
    const text = textOf(key)
    this.#listings.delete(text)
    this.#listings.set(text, { atMs: nowMs, models })
    const oldest = this.#listings.keys().next().value
    if (this.#listings.size > MAX_LISTINGS && oldest !== undefined) this.#listings.delete(oldest)
  }
}

const textOf = ({ provider, local, credentialDigest }: ListingKey): string =>
  JSON.stringify([provider, local, credentialDigest])
