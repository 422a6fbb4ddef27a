import type { ModelRequest } from '../core/prompt.ts'
import type { ProviderDescriptor } from '../protocol/execution/models.ts'
import { invokeThroughSdk, type SdkEndpoint } from './ai-sdk-provider.ts'
import type { CloudConfig } from './cloud-config.ts'
import type { CallContext, ModelEvent, ModelProvider } from './provider.ts'
import type { Deadlines } from './upstream-call.ts'

/**
 * A provider in the cloud that is spoken to through the AI SDK; what is said in its own dialect comes from its subclass.
 * It is remote whatever its address: a loopback address does not make it local (D14).
 */
export abstract class CloudProvider implements ModelProvider {
  readonly descriptor: ProviderDescriptor
  readonly listModels: ModelProvider['listModels']
  protected readonly baseUrl: string
  readonly #deadlines: Deadlines

  constructor(config: CloudConfig, listModels: ModelProvider['listModels'], deadlines: Deadlines) {
    this.descriptor = { id: config.id, display_name: config.displayName, local: false }
    this.listModels = listModels
    this.baseUrl = config.baseUrl
    this.#deadlines = deadlines
  }

  invoke(request: ModelRequest, context: CallContext): AsyncGenerator<ModelEvent, void> {
    const endpoint = { baseUrl: this.baseUrl, local: false, deadlines: this.#deadlines, open: this.open }
    return invokeThroughSdk(endpoint, request, context)
  }

  protected abstract readonly open: SdkEndpoint['open']
}
