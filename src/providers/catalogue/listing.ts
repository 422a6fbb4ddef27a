import type { ModelDescriptor } from '../../protocol/execution/models.ts'
import type { Result } from '../../protocol/result.ts'
import type { ProviderFailure } from '../provider.ts'

/** What a provider told of its models, and why it may not have told all. */
export type Listing = { models: ModelDescriptor[]; failure?: ProviderFailure }

export const toListing = (listed: Result<ModelDescriptor[], ProviderFailure>): Listing =>
  listed.ok ? { models: listed.value } : { models: [], failure: listed.error }
