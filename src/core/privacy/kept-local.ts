import type { RunInput } from '../turn-view.ts'

/**
 * What is said in a run that was started like this was not meant for any remote model: it stays with local ones in later
 * runs as well, whatever those allow (U37). A rule that is local-only does not count: it is a choice of models.
 */
export const isKeptLocal = ({
  local_preferences: preferences,
  policy,
}: Pick<RunInput, 'local_preferences' | 'policy'>): boolean =>
  preferences.local_only || preferences.no_network || policy.privacy.remote?.mode === 'deny'
