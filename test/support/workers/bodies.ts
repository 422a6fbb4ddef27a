import type { z } from 'zod'
import type { ExecuteRequest } from '../../../src/protocol/execution/execute.ts'

type Body = z.input<typeof ExecuteRequest>

export type BodyChanges = {
  input?: Partial<Body['input']>
  workspace?: Partial<Body['workspace']>
  policy?: Partial<Body['policy']>
  local_preferences?: Partial<Body['local_preferences']>
  attachments?: Partial<Body['attachments']>
}

/** A prompt for the local model `small`, under which files may be read freely and commands are asked for. */
export const makeExecute = (text: string, changes: BodyChanges = {}): Body => ({
  input: { text, ...changes.input },
  workspace: { root: '/project', referenced_paths: [], ...changes.workspace },
  policy: {
    version: 1,
    source: 'merged',
    classification: {},
    routing: { default: { model: 'ollama/small' } },
    tools: { permissions: { read_file: 'allow', shell: 'ask' } },
    privacy: {},
    ...changes.policy,
  },
  local_preferences: {
    auto_apply: false,
    local_only: false,
    no_network: false,
    ...changes.local_preferences,
  },
  attachments: { files: [], instructions: [], ...changes.attachments },
})

/** A route to this model, with fallbacks. */
export const routeTo = (model: string, ...fallbacks: string[]): Partial<Body['policy']> => ({
  routing: { default: { model, fallbacks } },
})
