import type { ModelRequest } from '../../core/prompt.ts'
import { assert } from '../../protocol/assert.ts'
import type { ModelDescriptor, ProviderDescriptor } from '../../protocol/execution/models.ts'
import { err, ok, type Result } from '../../protocol/result.ts'
import { missingCredentials } from '../missing-credentials.ts'
import { CLOUD_REGISTRATION } from '../ollama-catalogue.ts'
import type { CallContext, ModelEvent, ModelProvider, ProviderFailure } from '../provider.ts'
import { type Listing, toListing } from './listing.ts'

/**
 * The two that go by the name `ollama`: a daemon and Ollama's cloud (EC 21). Their catalogues are one, in which the
 * daemon wins for equal names; a call goes to the one that the chosen descriptor came from, and to no other. The key
 * belongs to the cloud: the daemon never sees it.
 */
export class OllamaRegistrations implements ModelProvider {
  readonly descriptor: ProviderDescriptor
  readonly #daemon: ModelProvider | undefined
  readonly #cloud: ModelProvider | undefined

  constructor({ daemon, cloud }: { daemon?: ModelProvider; cloud?: ModelProvider }) {
    const first = daemon ?? cloud
    assert(first !== undefined, 'Ollama without a daemon and without the cloud')
    this.descriptor = { id: 'ollama', display_name: 'Ollama', local: first.descriptor.local }
    this.#daemon = daemon
    this.#cloud = cloud
  }

  /** What is left for a caller whom the deployment's local endpoints do not serve (D14). */
  get withoutDaemon(): OllamaRegistrations | undefined {
    return this.#cloud && new OllamaRegistrations({ cloud: this.#cloud })
  }

  /** The daemon alone; this itself when there is only one of the two. */
  get withoutCloud(): OllamaRegistrations {
    return this.#daemon && this.#cloud ? new OllamaRegistrations({ daemon: this.#daemon }) : this
  }

  /** Fails only when neither of the two told anything. */
  async listModels(
    context: CallContext,
    names?: readonly string[],
  ): Promise<Result<ModelDescriptor[], ProviderFailure>> {
    const { models, failure } = await this.listWithGaps(context, names)
    return failure !== undefined && models.length === 0 ? err(failure) : ok(models)
  }

  /**
   * What the two told; `failure` when one of them might have told more. In a list of everything the failure of one hides
   * nothing of the other. By name the cloud is asked only for what a daemon that answered does not have: a daemon that is
   * late or fails must not send a turn to the cloud, away from this machine and at a price (D13).
   */
  async listWithGaps(context: CallContext, names?: readonly string[]): Promise<Listing> {
    if (names === undefined) {
      const [daemon, cloud] = await Promise.all([this.#askDaemon(context), this.#askCloud(context)])
      return merge(daemon, cloud)
    }
    let daemon = await this.#askDaemon(context, names)
    const missing = () => names.filter((name) => !daemon.models.some(({ model }) => model === name))
    // Beside models that it can show, a daemon leaves out one that it cannot: asked about alone, that one fails.
    if (
      daemon.models.length > 0 &&
      missing().length > 0 &&
      daemon.failure === undefined &&
      this.#hasCloud(context)
    )
      daemon = merge(daemon, await this.#askDaemon(context, missing()))
    if (daemon.failure !== undefined || missing().length === 0) return daemon
    return merge(daemon, await this.#askCloud(context, missing()))
  }

  async *invoke(request: ModelRequest, context: CallContext): AsyncGenerator<ModelEvent, void> {
    if (request.model.provider_options?.registration !== CLOUD_REGISTRATION) {
      assert(this.#daemon !== undefined, 'a model of an Ollama daemon was chosen and there is none')
      yield* this.#daemon.invoke(request, keyless(context))
      return
    }
    assert(this.#cloud !== undefined, 'a model of Ollama’s cloud was chosen and it is not registered')
    if (context.credential) yield* this.#cloud.invoke(request, context)
    else yield { type: 'failed', failure: missingCredentials() }
  }

  async #askDaemon(context: CallContext, names?: readonly string[]): Promise<Listing> {
    if (this.#daemon === undefined) return { models: [] }
    return toListing(await this.#daemon.listModels(keyless(context), names))
  }

  #hasCloud({ credential }: CallContext): boolean {
    return this.#cloud !== undefined && Boolean(credential)
  }

  async #askCloud(context: CallContext, names?: readonly string[]): Promise<Listing> {
    if (this.#cloud === undefined) return { models: [] }
    if (context.credential) return toListing(await this.#cloud.listModels(context, names))
    // Beside a daemon the cloud is a second choice: without a key it is simply not there.
    return this.#daemon === undefined ? { models: [], failure: missingCredentials() } : { models: [] }
  }
}

function merge(daemon: Listing, cloud: Listing): Listing {
  const own = new Set(daemon.models.map(({ model }) => model))
  const failure = daemon.failure ?? cloud.failure
  return {
    models: [...daemon.models, ...cloud.models.filter(({ model }) => !own.has(model))],
    ...(failure === undefined ? {} : { failure }),
  }
}

const keyless = ({ egress, signal }: CallContext): CallContext => ({ egress, signal })
