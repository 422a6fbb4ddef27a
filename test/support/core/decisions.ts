/** Argued decisions in `golden/decisions/`: what comes in, in few words, and what has to come of it, with the reason why. */

import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { planTurn, prepareCall } from '../../../src/core/resolve.ts'
import { chooseModel, type Lookup } from '../../../src/core/select.ts'
import { failure } from '../../../src/protocol/execution/errors.ts'
import { TaskInput, Workspace } from '../../../src/protocol/execution/execute.ts'
import {
  ClassificationConfig,
  PrivacyPolicy,
  RoutingPolicy,
  ToolsConfig,
} from '../../../src/protocol/execution/policy.ts'
import {
  makeCall,
  makeCatalogue,
  makeFile,
  makeModel,
  makeRequest,
  makeView,
  modelSays,
  userSays,
} from './builders.ts'

const FOLDER = path.join(import.meta.dirname, '../../../golden/decisions')

/** What the run has come to, if this is not its first turn. */
const Run = z.strictObject({
  plan_approved: z.boolean().default(false),
  /** One round: its calls, in order. */
  calls: z
    .array(
      z.strictObject({
        name: z.string(),
        path: z.string(),
        result: z.string().default('done'),
        failed: z.boolean().default(false),
        changes_files: z.boolean().default(false),
      }),
    )
    .default([]),
  injected: z.string().optional(),
})

/** What the router knows of a model, by its reference. */
const Model = z.strictObject({
  local: z.boolean(),
  window: z.int().default(100_000),
  tools: z.boolean().default(true),
  needs_key: z.boolean().default(false),
  down: z.boolean().default(false),
})

const Decision = z.strictObject({
  why: z.string().min(1),
  input: z.strictObject({
    input: TaskInput.strict(),
    workspace: Workspace.extend({
      root: z.string().default('/code'),
      referenced_paths: z.array(z.string()).default([]),
    })
      .strict()
      .prefault({}),
    /** Paths of attached files, and how long each is; a path with `!` in front is required. */
    files: z.record(z.string(), z.int()).default({}),
    classification: ClassificationConfig.prefault({}),
    routing: RoutingPolicy,
    privacy: PrivacyPolicy.prefault({ remote: { mode: 'allow' } }),
    tools: ToolsConfig.prefault({}),
    local_only: z.boolean().default(false),
    run: Run.optional(),
    models: z.record(z.string(), Model),
    keys: z.array(z.string()).default([]),
  }),
  expected: z.unknown(),
})
export type Decision = z.infer<typeof Decision>

/** Every decision by its file name. A file of another form throws. */
export function loadDecisions(): { name: string; decision: Decision }[] {
  return readdirSync(FOLDER)
    .sort()
    .map((name) => ({
      name,
      decision: Decision.parse(JSON.parse(readFileSync(path.join(FOLDER, name), 'utf8'))),
    }))
}

/** What the router decides, in the form in which it is argued about. */
export function decide({ input: given }: Decision): unknown {
  const { input, workspace, run } = given
  const request = makeRequest({
    text: input.text,
    ...(input.command == null ? {} : { command: input.command }),
    ...(input.explicit_model == null ? {} : { explicitModel: input.explicit_model }),
    workspace,
    classification: given.classification,
    rules: given.routing.rules,
    defaultRoute: given.routing.default ?? null,
    permissions: given.tools.permissions,
    privacy: given.privacy,
    preferences: { local_only: given.local_only },
    attachments: {
      files: Object.entries(given.files).map(([name, length]) =>
        makeFile(name.replace(/^!/, ''), 'x'.repeat(length), name.startsWith('!')),
      ),
    },
  })
  const view = makeView(request, {
    firstTurn: run === undefined,
    planApproved: run?.plan_approved ?? false,
    said: [
      userSays(input.text),
      ...(run && run.calls.length > 0 ? [modelSays('', { calls: run.calls.map(toCall) })] : []),
      ...(run?.injected === undefined ? [] : [userSays(run.injected)]),
    ],
  })
  const planned = planTurn(view)
  if (!planned.ok) return { failure: planned.error.code, because: planned.error.details?.reason }
  const { classification, route, demands } = planned.value
  const choice = chooseModel(demands, catalogueOf(given))
  const decided = { intent: classification.intent, why: classification.reason, route: route.reason }
  if (choice.k === 'list') throw new Error('a decision lists nothing')
  if (choice.k === 'none') {
    const { code, details } = choice.failure
    const because = details?.reason === undefined ? {} : { because: details.reason }
    return { ...decided, failure: code, ...because }
  }
  const { outcome } = prepareCall(planned.value, choice.model)
  return {
    ...decided,
    model: choice.reference,
    ...(choice.fallbackUsed ? { fallback_used: true } : {}),
    ...(demands.localBecause === null ? {} : { local_because: demands.localBecause }),
    ...(outcome.excluded.length === 0 ? {} : { left_out: outcome.excluded }),
  }
}

const toCall = ({
  name,
  path: file,
  result,
  failed,
  changes_files: changesFiles,
}: z.infer<typeof Run>['calls'][number]) =>
  makeCall({ name, arguments: { path: file }, isError: failed, changesFiles }, result)

function catalogueOf({ models, keys }: Decision['input']) {
  const lookups: Record<string, Lookup> = {}
  const descriptors = Object.entries(models).map(
    ([reference, { local, window, tools, needs_key: key, down }]) => {
      if (down)
        lookups[reference] = { k: 'unavailable', failure: failure('provider_unavailable', 'nobody answers') }
      return makeModel(reference, {
        local,
        auth: key ? 'api_key' : 'none',
        capabilities: { tools },
        max_context_tokens: window,
      })
    },
  )
  const without = descriptors.map(({ provider }) => provider).filter((provider) => !keys.includes(provider))
  return makeCatalogue(descriptors, { lookups, without })
}
