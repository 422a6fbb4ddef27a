import type { Provider } from '../../protocol/execution/ids.ts'
import type { ModelCapabilities, ModelDescriptor } from '../../protocol/execution/models.ts'
import { err, ok, type Result } from '../../protocol/result.ts'
import { mapBounded } from '../map-bounded.ts'
import { missingCredentials } from '../missing-credentials.ts'
import type { CallContext, ModelProvider, ProviderFailure } from '../provider.ts'
import { builtInFacts, combined, type FactEntry, type ModelFacts, mostExact, overlay } from './model-facts.ts'

/** A model as its provider's API tells it. */
export type ToldModel = { name: string; facts: ModelFacts }

/** How one provider's API tells its models. */
export type ModelSource = {
  all(context: CallContext): Promise<Result<ToldModel[], ProviderFailure>>
  /**
   * One model; undefined when it is not offered. Absent where the API tells nothing but names: then a model without
   * facts has no window, and cannot be offered whatever the API says.
   */
  one?(context: CallContext, name: string): Promise<Result<ToldModel | undefined, ProviderFailure>>
}

/** A Worker has six connections at a time; some stay free for others. */
const PARALLEL_LOOKUPS = 4

/** What a cloud model can do unless its facts or its provider say otherwise (EC 21). */
const CLOUD_CAPABILITIES: ModelCapabilities = {
  streaming: true,
  tools: true,
  json_output: true,
  system_prompt: true,
  images: true,
  reasoning: true,
  memory: true,
}

/**
 * The models of one built-in cloud provider: facts that are known, and for the rest what its API tells (EC 21). Facts
 * beat the API, so a model looks the same whether or not the API was asked; the owner's facts beat those of the program.
 */
export class CloudCatalogue {
  readonly #provider: Provider
  readonly #owners: readonly FactEntry[]
  readonly #source: ModelSource

  constructor(provider: Provider, owners: readonly FactEntry[], source: ModelSource) {
    this.#provider = provider
    this.#owners = owners
    this.#source = source
  }

  /** The descriptor of a model whose window is a known fact: nobody has to be asked (D12). */
  known(name: string): ModelDescriptor | undefined {
    return this.#describe({ name, facts: {} })
  }

  /**
   * Lists the models named, or all. Nothing is sent for names whose facts are complete; for anything else a credential
   * is needed. A model whose window nobody tells is left out.
   */
  readonly listModels: ModelProvider['listModels'] = async (context, names) => {
    const known = (names ?? []).flatMap((name) => this.known(name) ?? [])
    const unknown = (names ?? []).filter((name) => !known.some(({ model }) => model === name))
    if (names !== undefined && (unknown.length === 0 || this.#source.one === undefined)) return ok(known)
    if (!context.credential) return err(missingCredentials())
    const told = names === undefined ? await this.#source.all(context) : await this.#lookUp(context, unknown)
    if (!told.ok) return told
    return ok([...known, ...told.value.flatMap((model) => this.#describe(model) ?? [])])
  }

  async #lookUp(
    context: CallContext,
    names: readonly string[],
  ): Promise<Result<ToldModel[], ProviderFailure>> {
    const { one } = this.#source
    if (one === undefined) return ok([])
    const answers = await mapBounded(names, PARALLEL_LOOKUPS, (name) => one(context, name))
    const told: ToldModel[] = []
    for (const [index, answer] of answers.entries()) {
      if (!answer.ok) return answer
      // An API may answer an alias with the model behind it; names are exact here (EC 4).
      if (answer.value !== undefined && answer.value.name === names[index]) told.push(answer.value)
    }
    return ok(told)
  }

  #describe({ name, facts: told }: ToldModel): ModelDescriptor | undefined {
    const facts = [mostExact(builtInFacts(this.#provider), name) ?? {}, combined(this.#owners, name)].reduce(
      overlay,
      told,
    )
    const {
      max_context_tokens: window,
      display_name: displayName,
      max_output_tokens: output,
      ...rest
    } = facts
    if (window === undefined) return undefined
    return {
      ...rest,
      provider: this.#provider,
      model: name,
      display_name: displayName ?? null,
      local: false,
      auth: 'api_key',
      capabilities: { ...CLOUD_CAPABILITIES, ...facts.capabilities },
      max_context_tokens: window,
      max_output_tokens: output ?? null,
      default_parameters: {},
    }
  }
}
