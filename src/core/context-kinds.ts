/**
 * The kinds of context that a classification rule may ask for: those of the workspace (EC 7), and those that the state
 * of the run adds (D11).
 */
export const CONTEXT_KINDS = [
  'git_diff',
  'git_branch',
  'active_file',
  'referenced_paths',
  'tool_results',
  'tool_error',
  'file_changed',
  'plan_approved',
  'invoked_skill',
  'image',
] as const

/** A kind that rules may name and that no turn ever has (EC 7). */
export const NEVER_PRESENT_KIND = 'pull_request'
