import type { ApprovalDecision, ApprovalDecisionEntry } from '../../protocol/execution/continue.ts'
import type { Payload } from '../../protocol/execution/trace.ts'
import { acquire, serveNext, withTraces } from './begin.ts'
import { withCostGrant } from './cost-grants.ts'
import { idle } from './envelope.ts'
import { eventTurnId, type RunEvent } from './events.ts'
import { withGrant } from './grants.ts'
import { doesNotFit, refuse } from './refusals.ts'
import { decisionTarget, type RunPhase, type RunState } from './state.ts'
import type { Refusal, Step, StepContext } from './step.ts'
import type { Write } from './writes.ts'

type Gate = Extract<RunPhase, { k: 'AwaitingApproval' }>

/**
 * `approval_decisions`: the entry that names the pending approval counts, others are ignored (EC 13). The first decision
 * stands: what comes after a crash, or after the decision of a device, goes on with it, whatever it says (D05, D06).
 */
export function decide(
  state: RunState,
  digest: string,
  decisions: ApprovalDecisionEntry[],
  context: StepContext,
): Step | Refusal {
  const { phase } = state
  if (phase.k !== 'AwaitingApproval') return doesNotFit('approval_decisions', phase)
  const entry = decisions.find(({ approval_id: id }) => id === phase.approvalId)
  if (!entry) return refuse('no decision names the pending approval', { approval_id: phase.approvalId })
  const { decided, byDevice } = phase
  const isBegun = decided !== null
  const decision = decided ?? byDevice?.decision ?? entry.decision
  const { writes, events, payloads } =
    isBegun || byDevice !== undefined
      ? NOTHING
      : settleApproval(state, phase, decision, entry.reason ?? undefined)
  if (endsRun(phase, decision)) {
    const ended: Step = {
      state: { ...state, phase: { k: 'Idle' }, unsettled: null, planning: false, checkpointTurnId: null },
      writes,
      events: [...events, { type: 'turn_finished', turnId: eventTurnId(state.runId), outcome: 'completed' }],
      effects: [],
    }
    const traced =
      state.checkpointTurnId === null ? ended : withTraces(ended, state.checkpointTurnId, payloads, context)
    return { ...traced, reply: { by: 'outcome', outcome: idle(traced.state.traceId) } }
  }
  const active = acquire(context)
  const next: RunState = {
    ...state,
    phase: { ...phase, decided: decision },
    active,
    unsettled: { digest, kind: 'approval_decisions' },
    // What the decision brought may have been taken back since: it is not brought again (U23).
    ...(isBegun ? {} : broughtBy(state, phase, decision, context)),
  }
  const moved: RunEvent[] =
    byDevice === undefined || isBegun ? [] : [{ type: 'decision_moved', approvalId: phase.approvalId }]
  // A gate stands before the call of the turn that raised it; an approved plan is the end of one.
  const turn = phase.kind === 'plan' && !isBegun ? state.turn + 1 : state.turn
  return withTraces(serveNext(next, writes, [...moved, ...events], turn), active.turnId, payloads, context)
}

/** A plan or a cost that is declined ends the run; without the disclosure it goes on, with other models (EC 13). */
export const endsRun = ({ kind }: Gate, decision: ApprovalDecision): boolean =>
  decision === 'rejected' && kind !== 'remote_disclosure'

export type Settled = { writes: Write[]; events: RunEvent[]; payloads: Payload[] }

const NOTHING: Settled = { writes: [], events: [], payloads: [] }

/** What is stored and told of a decision when it is made, whether or not the run goes on with it now. */
export function settleApproval(
  { runId }: RunState,
  phase: Gate,
  decision: ApprovalDecision,
  reason: string | undefined,
): Settled {
  const { approvalId, planId, kind } = phase
  const target = decisionTarget(phase)
  const withReason = reason === undefined ? {} : { reason }
  const declined = decision === 'rejected' ? phase.disclosure : undefined
  return {
    writes: [
      { w: 'approval', id: approvalId, ...target, decision, outcome: decision, ...withReason },
      ...(planId === undefined ? [] : [{ w: 'plan_status' as const, id: planId, status: decision }]),
      ...(declined === undefined || declined.local ? [] : [{ w: 'keep_local' as const, runId }]),
    ],
    events: [{ type: 'approval_resolved', approvalId, decision }],
    payloads: [
      {
        type: 'approval',
        target_type: target.targetType,
        target_id: target.targetId,
        decision,
        ...withReason,
        kind,
      },
    ],
  }
}

/** What a decision that lets the run go on changes for the rest of it (EC 13). */
function broughtBy(
  { disclosed, costs = [] }: RunState,
  { kind, disclosure, cost }: Gate,
  decision: ApprovalDecision,
  { newId }: StepContext,
): Partial<RunState> {
  if (kind === 'plan') return { planning: false, planApproved: true }
  if (cost !== undefined) return { costs: withCostGrant(costs, cost, newId) }
  if (disclosure === undefined) return {}
  if (decision === 'approved') return { disclosed: withGrant(disclosed, disclosure, newId) }
  return disclosure.local ? { localDeclined: true } : { remoteDeclined: true }
}
