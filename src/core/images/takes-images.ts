import { splitModelReference } from '../../protocol/execution/ids.ts'
import type { RoutingPolicy } from '../../protocol/execution/policy.ts'
import type { Catalogue } from '../select.ts'

/**
 * Whether a prompt with a picture could be served: by the model that the session is set to, or by any that its policy names
 * (remote protocol, "Image attachments"). A model that has not been listed yet may take them: what serves a turn is
 * decided when it is served.
 * @param explicitModel the model that the session is set to; null: the policy decides
 */
export function takesImages(
  routing: RoutingPolicy,
  explicitModel: string | null,
  catalogue: Catalogue,
): boolean {
  const routes = [...routing.rules, ...(routing.default ? [routing.default] : [])]
  const references =
    explicitModel === null ? routes.flatMap(({ model, fallbacks }) => [model, ...fallbacks]) : [explicitModel]
  return references.some((reference) => {
    const { provider, model } = splitModelReference(reference)
    const found = catalogue.find(provider, model)
    return found.k === 'unlisted' || (found.k === 'found' && found.model.capabilities.images === true)
  })
}
