import type { ExecutePolicy } from '../../protocol/execution/policy.ts'
import { MAX_SETTINGS_BYTES } from '../../protocol/remote/limits.ts'
import type { RemoteSessionSettings } from '../../protocol/remote/session-settings.ts'
import { utf8Bytes } from '../../protocol/remote/utf8.ts'
import { ok, type Result } from '../../protocol/result.ts'
import { type Refusal, refuse } from './refusal.ts'

/** The profile with which routing decides; the first one, and the default (D09). */
export const AUTO_PROFILE = 'auto'
/** Takes the override of the effort away. It does not mean that the model does not think. */
export const DEFAULT_EFFORT = 'default'

/** What a device has set; `effort` is null for the default. */
export type ChosenSettings = { model: string; effort: string | null }

type Profile = RemoteSessionSettings['models'][number]

/**
 * What a device may choose from: `auto`, then each model that the policy names, in the order in which it names them (D09).
 * A profile is named by its reference: no address and no credential is in it.
 */
export function profilesOf({ routing }: Pick<ExecutePolicy, 'routing'>): Profile[] {
  const routes = [...routing.rules, ...(routing.default ? [routing.default] : [])]
  const references = new Set(routes.flatMap(({ model, fallbacks }) => [model, ...fallbacks]))
  references.delete(AUTO_PROFILE)
  return [
    { id: AUTO_PROFILE, model: 'chosen by the routing rules', reasoning_efforts: [DEFAULT_EFFORT] },
    // No catalogue says which efforts a model takes: none is offered but the default (RF 20).
    ...[...references].map((id) => ({
      id,
      model: id.slice(id.indexOf('/') + 1),
      reasoning_efforts: [DEFAULT_EFFORT],
    })),
  ]
}

/** The settings as they hold. A choice that the policy does not offer any more does not count. */
export function settingsOf(
  models: Profile[],
  chosen: ChosenSettings | null,
  canChange: boolean,
): RemoteSessionSettings {
  const profile = models.find(({ id }) => id === chosen?.model)
  const effort = chosen?.effort ?? DEFAULT_EFFORT
  return {
    models,
    selected_model: profile?.id ?? AUTO_PROFILE,
    reasoning_effort: profile?.reasoning_efforts.includes(effort) ? effort : DEFAULT_EFFORT,
    can_change: canChange,
  }
}

/** Checks a change in the order of RF 20 and applies both fields or none of them. */
export function changedSettings(
  current: RemoteSessionSettings,
  { model, effort }: { model: string; effort: string },
): Result<RemoteSessionSettings, Refusal> {
  if (!current.can_change)
    return refuse('busy', 'the settings can be changed when nothing is going on in the session')
  const profile = current.models.find(({ id }) => id === model)
  if (!profile) return refuse('invalid_request', 'there is no such model among those of this session')
  if (!profile.reasoning_efforts.includes(effort))
    return refuse('invalid_request', `this model takes the efforts: ${profile.reasoning_efforts.join(', ')}`)
  const changed = { ...current, selected_model: model, reasoning_effort: effort }
  if (utf8Bytes(JSON.stringify(changed)) > MAX_SETTINGS_BYTES)
    return refuse('frame_too_large', 'the policy names more models than an answer can hold')
  return ok(changed)
}

/** As it is kept; null for what is the default anyway. */
export const chosenOf = ({
  selected_model: model,
  reasoning_effort: effort,
}: RemoteSessionSettings): ChosenSettings | null =>
  model === AUTO_PROFILE && effort === DEFAULT_EFFORT
    ? null
    : { model, effort: effort === DEFAULT_EFFORT ? null : effort }
