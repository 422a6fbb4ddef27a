import type { LocalPreferences } from '../../protocol/execution/execute.ts'
import type { ExecutePolicy } from '../../protocol/execution/policy.ts'
import type { RunInput } from '../turn-view.ts'
import { AUTO_PROFILE } from './session-settings.ts'

/** What a run of a device takes over from the run before it. */
export type ReusedInput = Pick<RunInput, 'workspace' | 'policy' | 'local_preferences'>

/**
 * The input of a run that a device starts without a host (D07): policy, preferences and workspace of the last run, and of
 * its content nothing. `profile` is the id of a model, or `auto`, with which routing decides (D09). `localOnly`: the words
 * are for local models alone, whatever the last run allows (U37).
 */
export const deviceRunInput = (
  last: ReusedInput,
  { text, localOnly }: { text: string; localOnly: boolean },
  profile: string,
): RunInput => ({
  input: { text, ...(profile === AUTO_PROFILE ? {} : { explicit_model: profile }) },
  workspace: {
    root: last.workspace.root,
    ...(last.workspace.git_branch == null ? {} : { git_branch: last.workspace.git_branch }),
    referenced_paths: [],
  },
  policy: last.policy,
  local_preferences: localOnly ? { ...last.local_preferences, local_only: true } : last.local_preferences,
  attachments: { files: [], instructions: [], invoked_skills: [], available_skills: [] },
})

/** The same in a session that never had a run: what the user published for it, and nothing about a machine. */
export const firstInput = (published: {
  policy: ExecutePolicy
  localPreferences: LocalPreferences
}): ReusedInput => ({
  workspace: { root: '', referenced_paths: [] },
  policy: published.policy,
  local_preferences: published.localPreferences,
})
