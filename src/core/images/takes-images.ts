import { splitModelReference } from '../../protocol/execution/ids.ts'
import type { RoutingPolicy } from '../../protocol/execution/policy.ts'
import type { Catalogue } from '../select.ts'

/**
 * Whether a prompt with a picture could be served: by the model that the session is set to, or by any that its policy names
 * (remote protocol, "Image attachments"). Null: none of those that are known can, but not all of them are known.
 * @param explicitModel the model that the session is set to; null: the policy decides
 */
export function takesImages(
  routing: RoutingPolicy,
  explicitModel: string | null,
  catalogue: Catalogue,
): boolean | null {
  const routes = [...routing.rules, ...(routing.default ? [routing.default] : [])]
  const references =
    explicitModel === null ? routes.flatMap(({ model, fallbacks }) => [model, ...fallbacks]) : [explicitModel]
  const found = references.map((reference) => {
    const { provider, model } = splitModelReference(reference)
    return catalogue.find(provider, model)
  })
  if (found.some((lookup) => lookup.k === 'found' && lookup.model.capabilities.images === true)) return true
  return found.some(({ k }) => k === 'unlisted') ? null : false
}
