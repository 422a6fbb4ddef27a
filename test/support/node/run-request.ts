import type { ExecuteRequest } from '../../../src/protocol/execution/execute.ts'
import { ExecutePolicy } from '../../../src/protocol/execution/policy.ts'

/** A policy that sends everything to one local model. */
export const smallPolicy = (changes: Record<string, unknown> = {}): ExecutePolicy =>
  ExecutePolicy.parse({
    version: 1,
    source: 'merged',
    classification: {},
    routing: { default: { model: 'ollama/small' } },
    tools: {},
    privacy: {},
    ...changes,
  })

export const NO_PREFERENCES = { auto_apply: false, local_only: false, no_network: false }

export const executeRequest = (prompt: string): ExecuteRequest => ({
  input: { text: prompt },
  workspace: { root: '/project', referenced_paths: [] },
  policy: smallPolicy(),
  local_preferences: NO_PREFERENCES,
  attachments: { files: [], instructions: [], invoked_skills: [], available_skills: [] },
})
