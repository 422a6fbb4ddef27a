import type { Provider } from '../protocol/execution/ids.ts'
import type { ProviderDescriptor } from '../protocol/execution/models.ts'
import { err, type Result } from '../protocol/result.ts'
import type { ModelEvent, ModelProvider, ProviderFailure } from './provider.ts'

/** Stands for a provider whose configuration cannot be used: whoever routes to it hears why, and nothing leaves. */
export class MisconfiguredProvider implements ModelProvider {
  readonly descriptor: ProviderDescriptor
  readonly #failure: ProviderFailure

  constructor(id: Provider, message: string, displayName: string = id) {
    this.descriptor = { id, display_name: displayName, local: false }
    this.#failure = { category: 'invalid_configuration', message }
  }

  async listModels(): Promise<Result<never, ProviderFailure>> {
    return err(this.#failure)
  }

  async *invoke(): AsyncGenerator<ModelEvent, void> {
    yield { type: 'failed', failure: this.#failure }
  }
}
