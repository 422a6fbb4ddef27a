/** Small valid things to decide about; a test names only what it is about. */

import type { z } from 'zod'
import type { MemoryFact } from '../../../src/core/memory.ts'
import type { Catalogue, Lookup } from '../../../src/core/select.ts'
import type { TranscriptCall, TranscriptMessage } from '../../../src/core/transcript.ts'
import type { RunInput, TurnView } from '../../../src/core/turn-view.ts'
import { ExecuteRequest } from '../../../src/protocol/execution/execute.ts'
import type { ModelDescriptor } from '../../../src/protocol/execution/models.ts'
import { ClassificationRule, PrivacyPolicy, RoutingRule } from '../../../src/protocol/execution/policy.ts'

type Wire = z.input<typeof ExecuteRequest>
type Policy = Wire['policy']

export const LOCAL = 'ollama/local-model'
export const REMOTE = 'anthropic/remote-model'

/** What a request says, each part in the short form; defaults as the wire fills them in. */
export type RequestParts = {
  text?: string
  command?: Wire['input']['command']
  explicitModel?: string
  workspace?: Partial<Wire['workspace']>
  classification?: Policy['classification']
  rules?: z.input<typeof RoutingRule>[]
  /** `null`: the policy has no default route. */
  defaultRoute?: Policy['routing']['default']
  permissions?: Record<string, 'allow' | 'ask' | 'deny'>
  privacy?: Partial<Policy['privacy']>
  preferences?: Partial<Wire['local_preferences']>
  attachments?: Partial<Wire['attachments']>
}

export function makeRequest(parts: RequestParts = {}): RunInput {
  return ExecuteRequest.parse({
    input: {
      text: parts.text ?? 'hello',
      ...(parts.command === undefined ? {} : { command: parts.command }),
      ...(parts.explicitModel === undefined ? {} : { explicit_model: parts.explicitModel }),
    },
    workspace: { root: '/code', referenced_paths: [], ...parts.workspace },
    policy: {
      version: 1,
      source: 'merged',
      classification: parts.classification ?? {},
      routing: {
        rules: parts.rules ?? [],
        default: parts.defaultRoute === undefined ? { model: LOCAL } : parts.defaultRoute,
      },
      tools: { permissions: parts.permissions ?? {} },
      privacy: { restricted_paths: [], remote: { mode: 'allow' }, ...parts.privacy },
    },
    local_preferences: { auto_apply: false, local_only: false, no_network: false, ...parts.preferences },
    attachments: { files: [], instructions: [], ...parts.attachments },
  } satisfies Wire)
}

export const makeFile = (path: string, content: string, required = false) => ({
  path,
  content,
  content_hash: `sha256:${'0'.repeat(64)}`,
  required,
})

export const makeRule = (fields: Partial<z.input<typeof RoutingRule>> & { name: string }): RoutingRule =>
  RoutingRule.parse({ model: LOCAL, ...fields })

export const makeClassificationRule = (fields: z.input<typeof ClassificationRule>): ClassificationRule =>
  ClassificationRule.parse(fields)

export const makePrivacy = (fields: z.input<typeof PrivacyPolicy>): PrivacyPolicy =>
  PrivacyPolicy.parse(fields)

export const RUN = 'run-now'
export const EARLIER_RUN = 'run-before'

export function makeCall(
  fields: Partial<TranscriptCall> & { name: string },
  result: string | null = 'done',
): TranscriptCall {
  return {
    id: `call-${fields.name}`,
    arguments: {},
    isError: false,
    changesFiles: false,
    ...(result === null ? {} : { result }),
    ...fields,
  }
}

type MessageFields = Partial<Omit<TranscriptMessage, 'seq'>> & { text?: string }

export const userSays = (text: string, fields: MessageFields = {}): Omit<TranscriptMessage, 'seq'> => ({
  role: 'user',
  text,
  runId: RUN,
  interrupted: false,
  calls: [],
  ...fields,
})

export const modelSays = (text: string, fields: MessageFields = {}): Omit<TranscriptMessage, 'seq'> => ({
  role: 'assistant',
  text,
  runId: RUN,
  provider: 'ollama',
  model: 'local-model',
  interrupted: false,
  calls: [],
  ...fields,
})

/** A fact about the user, unless it says otherwise. Its id is made of what it says. */
export const makeFact = (fields: Partial<MemoryFact> & { content: string }): MemoryFact => ({
  scope: 'user',
  id: `fact-${fields.key ?? fields.content}`,
  updatedAtMs: 0,
  ...fields,
})

/** A view whose transcript is what was said, or the prompt of the request alone. */
export function makeView(
  runInput: RunInput,
  {
    said,
    ...fields
  }: Partial<Omit<TurnView, 'transcript'>> & {
    said?: Omit<TranscriptMessage, 'seq'>[]
  } = {},
): TurnView {
  return {
    runInput,
    runId: RUN,
    firstTurn: true,
    planning: false,
    planApproved: false,
    remoteDeclined: false,
    transcript: (said ?? [userSays(runInput.input.text)]).map((message, index) => ({
      ...message,
      seq: index + 1,
    })),
    olderMessages: 0,
    memories: [],
    ...fields,
  }
}

export function makeModel(reference: string, fields: Partial<ModelDescriptor> = {}): ModelDescriptor {
  const slash = reference.indexOf('/')
  const provider = reference.slice(0, slash)
  return {
    provider,
    model: reference.slice(slash + 1),
    display_name: null,
    local: provider === 'ollama',
    auth: provider === 'ollama' ? 'none' : 'api_key',
    capabilities: { tools: true, streaming: true },
    max_context_tokens: 100_000,
    max_output_tokens: 1_000,
    input_cost_per_million_tokens: '0',
    output_cost_per_million_tokens: '0',
    default_parameters: {},
    ...fields,
  }
}

/** A catalogue of found models, of stated lookups for others, and of providers whose credential is missing. */
export function makeCatalogue(
  models: readonly ModelDescriptor[],
  { without = [], lookups = {} }: { without?: string[]; lookups?: Record<string, Lookup> } = {},
): Catalogue {
  const found = new Map(models.map((model) => [`${model.provider}/${model.model}`, model]))
  return {
    hasCredential: (provider) => !without.includes(provider),
    find: (provider, name) => {
      const reference = `${provider}/${name}`
      const model = found.get(reference)
      return lookups[reference] ?? (model ? { k: 'found', model } : { k: 'absent' })
    },
  }
}

/** The value of a result that must not have failed. */
export function must<T>(result: { ok: true; value: T } | { ok: false; error: unknown }): T {
  if (!result.ok) throw new Error(`failed: ${JSON.stringify(result.error)}`)
  return result.value
}
