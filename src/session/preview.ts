import { estimateCost, gateFor } from '../core/gates.ts'
import type { MemoryFact } from '../core/memory.ts'
import { permissionExpansions } from '../core/policy-check/expansions.ts'
import { policyWarnings } from '../core/policy-check.ts'
import { reportOf } from '../core/report.ts'
import { planTurn, prepareCall, type TurnPlan } from '../core/resolve.ts'
import { gateDetail } from '../core/run/envelope.ts'
import { chooseModel } from '../core/select.ts'
import type { TranscriptMessage } from '../core/transcript.ts'
import type { TurnView } from '../core/turn-view.ts'
import type { Failure } from '../protocol/execution/errors.ts'
import type { ExecuteRequest } from '../protocol/execution/execute.ts'
import type { PreviewResponse } from '../protocol/execution/preview.ts'
import { err, ok, type Result } from '../protocol/result.ts'
import type { Access } from '../providers/access.ts'
import type { ModelCatalogue } from './catalogue.ts'

export type PreviewInput = Pick<TurnView, 'transcript' | 'olderMessages' | 'pastCalls'> & {
  body: ExecuteRequest
  memories: MemoryFact[]
  catalogue: ModelCatalogue
  access: Access
}

/** A run that begins: nothing has been allowed yet. */
const NOTHING_DECIDED = { disclosed: [] }

/** The run that a preview decides for; never stored. */
const PREVIEW_RUN = 'preview'

/**
 * What `execute` would decide for the first turn, by the very same functions. Stores nothing, takes no lock, and never
 * asks a model (EC 2.13).
 */
export async function previewTurn({
  body,
  transcript,
  olderMessages,
  pastCalls = [],
  memories,
  catalogue,
  access,
}: PreviewInput): Promise<Result<PreviewResponse, Failure>> {
  const prompt: TranscriptMessage = {
    seq: (transcript.at(-1)?.seq ?? 0) + 1,
    role: 'user',
    text: body.input.text,
    runId: PREVIEW_RUN,
    interrupted: false,
    calls: [],
  }
  const view: TurnView = {
    runInput: body,
    runId: PREVIEW_RUN,
    firstTurn: true,
    planning: body.input.command === 'plan',
    planApproved: false,
    remoteDeclined: false,
    transcript: [...transcript, prompt],
    olderMessages,
    pastCalls,
    memories,
  }
  const planned = planTurn(view, { looseRules: 'ignore' })
  if (!planned.ok) return planned
  const plan = planned.value
  const never = new AbortController().signal
  const known = catalogue.view(access, Date.now())
  for (;;) {
    const choice = chooseModel(plan.demands, known)
    if (choice.k === 'list') {
      const localOnly = plan.demands.localBecause !== null
      await catalogue.list(choice.provider, choice.models, access, never, localOnly)
      continue
    }
    if (choice.k === 'none') return err(choice.failure)
    const prepared = prepareCall(plan, choice.model)
    const report = reportOf(plan, prepared, choice.model, choice.fallbackUsed)
    const cost = estimateCost(choice.model, prepared)
    const [expansion] = permissionExpansions(body.policy)
    const notes = [
      // The shape has no place for an unknown price, so the reason says it (EC 20.3).
      ...(cost === null ? ['the price of this model is unknown'] : []),
      ...(expansion === undefined ? [] : [`execute refuses this policy: ${expansion.message}`]),
    ]
    const gate = gateFor(plan, choice.model, prepared, NOTHING_DECIDED)
    const warnings = policyWarnings(body.policy)
    return ok({
      classification: report.classification,
      routing: { ...report.routing, reason: [report.routing.reason, ...notes].join('; ') },
      included_context: report.context.included,
      excluded_context: report.context.excluded,
      estimated_cost: { ...(cost ?? { min: '0', max: '0' }), currency: 'USD' },
      required_permissions: permissionList(plan),
      ...(report.context.exclusions === undefined ? {} : { exclusions: report.context.exclusions }),
      effort: plan.route.effort,
      ...(gate === null ? {} : { approval: { kind: gate.kind, detail: gateDetail(gate) } }),
      ...(warnings.length === 0 ? {} : { warnings }),
    })
  }
}

const permissionList = ({ permissions }: TurnPlan): PreviewResponse['required_permissions'] =>
  Object.entries(permissions)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([permission, mode]) => ({ permission, mode }))
