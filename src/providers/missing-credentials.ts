import type { ProviderFailure } from './provider.ts'
import { describeFailure } from './provider-message.ts'

/** A model that needs a key is not asked without one: nothing leaves. */
export const missingCredentials = (): ProviderFailure => ({
  category: 'missing_credentials',
  message: describeFailure('missing_credentials', {}, { texts: [], names: [] }),
})
