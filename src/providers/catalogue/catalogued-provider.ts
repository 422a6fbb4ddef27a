import type { ModelRequest } from '../../core/prompt.ts'
import type { ModelDescriptor, ProviderDescriptor } from '../../protocol/execution/models.ts'
import type { CallContext, ModelEvent, ModelProvider } from '../provider.ts'
import type { CloudCatalogue } from './cloud-catalogue.ts'

/** A cloud provider that knows some of its models by heart: a turn to one of those waits for no listing (D12). */
export class CataloguedProvider implements ModelProvider {
  readonly descriptor: ProviderDescriptor
  readonly listModels: ModelProvider['listModels']
  readonly #adapter: ModelProvider
  readonly #catalogue: CloudCatalogue

  constructor(adapter: ModelProvider, catalogue: CloudCatalogue) {
    this.descriptor = adapter.descriptor
    this.listModels = catalogue.listModels
    this.#adapter = adapter
    this.#catalogue = catalogue
  }

  known(name: string): ModelDescriptor | undefined {
    return this.#catalogue.known(name)
  }

  invoke(request: ModelRequest, context: CallContext): AsyncIterable<ModelEvent> {
    return this.#adapter.invoke(request, context)
  }
}
