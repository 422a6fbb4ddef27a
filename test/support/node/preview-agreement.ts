/** Previews a request and then runs it, in one and the same session, and holds the two against each other (EC 2.13). */

import { expect } from 'vitest'
import type { RunInput } from '../../../src/core/turn-view.ts'
import type { ModelDescriptor } from '../../../src/protocol/execution/models.ts'
import type { Effort } from '../../../src/protocol/execution/policy.ts'
import type { PreviewResponse } from '../../../src/protocol/execution/preview.ts'
import type { Payload } from '../../../src/protocol/execution/trace.ts'
import type { PendingApproval, TurnResponse } from '../../../src/protocol/execution/turn.ts'
import { makeAccess } from '../../../src/providers/access.ts'
import type { ModelEvent, ModelProvider } from '../../../src/providers/provider.ts'
import { ModelCatalogue } from '../../../src/session/catalogue.ts'
import { previewTurn } from '../../../src/session/preview.ts'
import { loosenedPermissions } from '../../../src/worker/policy-refusals.ts'
import { makeRequest } from '../core/builders.ts'
import type { EarlierRun, World } from '../core/previewed-worlds.ts'
import { type Bringing, InMemorySession } from './in-memory-session.ts'

/** What a preview came to, for counting. */
export type Came =
  | 'refused'
  | 'warned of a refusal'
  | 'ready'
  | 'asks for a disclosure'
  | 'asks for the cost'
  | 'left something out'
  | 'planning'
  | 'fallback'

/** The note by which a preview says that the run will be refused for a rule that loosens a permission. */
const REFUSAL_NOTE = /; execute refuses this policy: .*$/
const PRICE_NOTE = '; the price of this model is unknown'

export async function checkAgreement(world: World): Promise<Came[]> {
  const models = new Models(world)
  const session = new InMemorySession(models.providers)
  const access = await makeAccess(
    {
      userId: 'u',
      credentials: Object.fromEntries(world.keys.map((provider) => [provider, `key of ${provider}`])),
      deploymentProviders: world.deploymentProviders,
    },
    new Map(),
  )
  const bringing: Bringing = { access, facts: world.facts }
  for (const run of world.earlier) await runEarlier(session, models, run, bringing)

  models.says = () => [
    { type: 'text_delta', delta: 'done' },
    { type: 'finished', reason: 'stop' },
  ]
  models.calls.length = 0
  const written = session.rowsWritten()
  const preview = (catalogue: ModelCatalogue) =>
    previewTurn({
      body: world.body,
      ...session.history(),
      memories: session.memories(world.facts),
      catalogue,
      access,
    })
  const previewed = await preview(new ModelCatalogue(models.providers))
  expect(await preview(session.catalogue), 'equal inputs give equal output').toEqual(previewed)
  expect(models.calls, 'a preview asks no model').toEqual([])
  expect(session.rowsWritten(), 'a preview writes nothing').toBe(written)

  // What the door of `execute` refuses a preview shows all the same, and says so (EC 2.13).
  const loosened = loosenedPermissions(world.body).length > 0
  if (previewed.ok) expect(REFUSAL_NOTE.test(previewed.value.routing.reason)).toBe(loosened)
  if (loosened) return [previewed.ok ? 'warned of a refusal' : 'refused']

  const turnsBefore = session.turns().length
  const run = await serve(session, world.body, bringing)
  const first = session.turns()[turnsBefore]
  const traces = first?.trace.map(({ payload }) => payload) ?? []
  const refused = run.outcome.status === 'error' ? run.outcome.data.error : null
  if (refused !== null) expect({ asked: run.asked, calls: models.calls }).toEqual({ asked: [], calls: [] })
  if (!previewed.ok) {
    expect(refused).toEqual({ ...previewed.error })
    return ['refused']
  }
  const { routing, approval } = previewed.value
  checkTrace(traces, previewed.value)
  const [asked] = run.asked
  expect(asked && { kind: asked.kind, detail: asked.detail }).toEqual(approval)
  checkServed(models.calls[0], previewed.value)
  checkOutcome(run.outcome, previewed.value)
  return [
    run.outcome.status === 'completed' ? 'ready' : 'planning',
    ...(approval === undefined
      ? []
      : [
          approval.kind === 'cost_limit'
            ? ('asks for the cost' as const)
            : ('asks for a disclosure' as const),
        ]),
    ...(previewed.value.excluded_context.length > 0 ? (['left something out'] as const) : []),
    ...(routing.fallback_used ? (['fallback'] as const) : []),
  ]
}

/** The decisions of the first turn, as the trace tells them. */
function checkTrace(traces: readonly { type: string }[], previewed: PreviewResponse): void {
  const { intent: _, ...routing } = previewed.routing
  const reason = routing.reason.replace(PRICE_NOTE, '')
  expect(traces.find(({ type }) => type === 'classification')).toMatchObject(previewed.classification)
  const routed = traces.find(
    (trace): trace is Extract<Payload, { type: 'routing_decision' }> => trace.type === 'routing_decision',
  )
  const { type: __, inputs, ...told } = routed ?? { type: null, inputs: undefined }
  expect(told).toEqual({ ...routing, reason })
  if (inputs !== undefined) expect(inputs.effort).toBe(previewed.effort)
}

/** The model that was called, and how. */
function checkServed(call: Call | undefined, { routing, effort, estimated_cost }: PreviewResponse): void {
  expect(call).toMatchObject({ provider: routing.provider, model: routing.model, effort })
  const priced = call?.descriptor.input_cost_per_million_tokens !== undefined
  expect(routing.reason.endsWith(PRICE_NOTE), 'an unknown price is no price of zero').toBe(!priced)
  if (!priced) expect(estimated_cost).toEqual({ min: '0', max: '0', currency: 'USD' })
}

function checkOutcome(outcome: TurnResponse, previewed: PreviewResponse): void {
  if (outcome.status === 'awaiting_approval') {
    expect(outcome.data.approval.kind).toBe('plan')
    expect(previewed.classification.intent).toBe('plan')
    return
  }
  if (outcome.status !== 'completed') throw new Error(`the run ended as ${JSON.stringify(outcome)}`)
  const { classification, routing, context } = outcome.data
  const { intent, reason: _, ...route } = previewed.routing
  expect(classification).toEqual(previewed.classification)
  expect(routing).toEqual({ task_type: intent, ...route })
  const { included_context: included, excluded_context: excluded, exclusions } = previewed
  expect(context).toEqual({ included, excluded, ...(exclusions === undefined ? {} : { exclusions }) })
  expect((exclusions ?? []).map(({ item }) => item)).toEqual(excluded)
}

/** A run up to its end or to a plan; every gate on the way is opened. */
async function serve(
  session: InMemorySession,
  body: RunInput,
  bringing: Bringing,
): Promise<{ outcome: TurnResponse; asked: PendingApproval[] }> {
  const asked: PendingApproval[] = []
  let outcome = await session.execute(body, bringing)
  while (outcome.status === 'awaiting_approval' && outcome.data.approval.kind !== 'plan') {
    const { approval } = outcome.data
    asked.push(approval)
    if (asked.length > 2) throw new Error('asked again and again')
    outcome = await session.proceed(decision(approval, 'approved'), bringing)
  }
  return { outcome, asked }
}

const decision = ({ approval_id }: PendingApproval, decided: 'approved' | 'rejected') => ({
  type: 'approval_decisions' as const,
  data: { decisions: [{ approval_id, decision: decided }] },
})

async function runEarlier(
  session: InMemorySession,
  models: Models,
  { text, reference, preferences, declines, reads, remembers }: EarlierRun,
  bringing: Bringing,
): Promise<void> {
  models.says = (tools, round) => [
    { type: 'text_delta', delta: `round ${round}` },
    ...(round === 1 && reads !== null && tools.includes('read_file')
      ? [{ type: 'tool_call' as const, name: 'read_file', arguments: { path: reads } }]
      : []),
    ...(round === 1 && remembers !== null && tools.includes('memory')
      ? [
          {
            type: 'tool_call' as const,
            name: 'memory',
            arguments: { op: 'record', scope: 'session', key: 'port', content: remembers },
          },
        ]
      : []),
    { type: 'finished', reason: 'stop' },
  ]
  models.round = 0
  const body = makeRequest({
    text,
    explicitModel: reference,
    preferences,
    permissions: { read_file: 'allow' },
    privacy: { remote: { mode: declines ? 'ask' : 'allow' } },
  })
  let outcome = await session.execute(body, bringing)
  while (outcome.status === 'awaiting_approval' || outcome.status === 'awaiting_tool') {
    outcome = await session.proceed(
      outcome.status === 'awaiting_approval'
        ? decision(outcome.data.approval, 'rejected')
        : {
            type: 'tool_results',
            data: {
              results: outcome.data.tool_requests.map(({ call_id }) => ({
                call_id,
                content: 'what it says',
                is_error: false,
              })),
            },
          },
      bringing,
    )
  }
}

type Call = { provider: string; model: string; effort: Effort; descriptor: ModelDescriptor }

/** The providers of a world. They say what they are told to, and note each prompt. */
class Models {
  readonly providers: ReadonlyMap<string, ModelProvider>
  readonly calls: Call[] = []
  says: (tools: string[], round: number) => ModelEvent[] = () => []
  round = 0

  constructor({ models, down }: World) {
    this.providers = new Map(models.map((model) => [model.provider, this.#provider(model, down)]))
  }

  #provider(model: ModelDescriptor, down: World['down']): ModelProvider {
    const { provider, local } = model
    const calls = this.calls
    const say = (tools: string[]) => this.says(tools, ++this.round)
    return {
      descriptor: { id: provider, display_name: provider, local },
      listModels: async (_, names) => {
        const error = down[provider]
        if (error !== undefined) return { ok: false, error }
        return { ok: true, value: names === undefined || names.includes(model.model) ? [model] : [] }
      },
      async *invoke({ tools, effort }, { egress }) {
        egress({ baseUrl: 'http://model.test', local, model: model.model })
        calls.push({ provider, model: model.model, effort, descriptor: model })
        yield* say(tools.map(({ name }) => name))
      },
    }
  }
}
