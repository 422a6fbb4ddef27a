import type {
  ApprovalDecision,
  ApprovalDecisionEntry,
  ContinueKind,
  ToolResult,
} from '../../protocol/execution/continue.ts'
import { failure } from '../../protocol/execution/errors.ts'
import type { PlainMap } from '../../protocol/execution/sealed.ts'
import type { Payload } from '../../protocol/execution/trace.ts'
import { acquire, serveNext, withTraces } from './begin.ts'
import { withCostGrant } from './cost-grants.ts'
import { idle } from './envelope.ts'
import { boundText, eventTurnId, type RunEvent } from './events.ts'
import { withGrant } from './grants.ts'
import { decisionTarget, type RunPhase, type RunState } from './state.ts'
import type { Refusal, Step, StepContext } from './step.ts'
import type { Write } from './writes.ts'

const refuse = (message: string, details?: Record<string, unknown>): Refusal => ({
  refused: failure('invalid_request', message, details),
})

const doesNotFit = (kind: ContinueKind, phase: RunPhase): Refusal =>
  refuse(
    phase.k === 'Idle'
      ? `nothing is waiting for ${kind}: the run is idle`
      : `${kind} does not answer the current pause, ${phase.k}`,
    { phase: phase.k },
  )

/**
 * `tool_results`: every outstanding call exactly once (EC 12.4). A result that has been accepted stays as it is: what
 * repeats it after a crash is accepted and ignored (D05). The phase stays until the next checkpoint.
 */
export function toolResults(
  state: RunState,
  digest: string,
  results: ToolResult[],
  context: StepContext,
): Step | Refusal {
  const { phase } = state
  if (phase.k !== 'AwaitingTool') return doesNotFit('tool_results', phase)
  const answered = new Set<string>()
  for (const { call_id: callId, driver_epoch: epoch } of results) {
    if (answered.has(callId)) return refuse(`call ${callId} is answered twice`, { call_id: callId })
    answered.add(callId)
    if (!phase.calls.some((call) => call.callId === callId)) {
      return refuse(`call ${callId} is not outstanding`, { call_id: callId })
    }
    if (epoch !== undefined && epoch !== state.driverEpoch) {
      return refuse('the result comes from another driver than that of this run', {
        call_id: callId,
        driver_epoch: state.driverEpoch,
      })
    }
  }
  const open = new Map(phase.calls.filter(({ settled }) => !settled).map((call) => [call.callId, call]))
  const missing = [...open.keys()].filter((callId) => !answered.has(callId))
  if (missing.length > 0) return refuse('every outstanding call needs a result', { missing })
  const active = acquire(context)
  const writes: Write[] = []
  const events: RunEvent[] = []
  const payloads: Payload[] = []
  for (const { call_id: callId, content, is_error: failed, decision } of results) {
    const name = open.get(callId)?.toolName
    if (name === undefined) continue
    // A call that was declined did not run, whatever else its report says (U22).
    const isError = failed || decision === 'rejected'
    writes.push({ w: 'settle_call', callId, isError, content })
    events.push({ type: 'tool_finished', id: callId, name, success: !isError, content: boundText(content) })
    payloads.push({ type: 'tool_call', tool_name: name, status: isError ? 'failed' : 'completed' })
    if (!decision) continue
    const target = { targetType: 'tool_call', targetId: callId } as const
    writes.push({ w: 'approval', id: context.newId(), ...target, decision, outcome: decision })
    payloads.push({ type: 'approval', target_type: 'tool_call', target_id: callId, decision })
  }
  const next: RunState = {
    ...state,
    phase: { ...phase, calls: phase.calls.map((call) => ({ ...call, settled: true })) },
    active,
    unsettled: { digest, kind: 'tool_results' },
    unattendedRounds: 0,
  }
  // Results that were all known already are those of the turn that a crash cut off: it is served again.
  const turn = open.size === 0 ? state.turn : state.turn + 1
  return withTraces(serveNext(next, writes, events, turn), active.turnId, payloads, context)
}

/**
 * `approval_decisions`: the entry that names the pending approval counts, others are ignored (EC 13). The first decision
 * stands: what comes after a crash goes on with it, whatever it says (D05).
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
  const settled = phase.decided !== null
  const decision = phase.decided ?? entry.decision
  const reason = entry.reason ?? undefined
  const target = decisionTarget(phase)
  const withReason = reason === undefined ? {} : { reason }
  const declined = decision === 'rejected' ? phase.disclosure : undefined
  const writes: Write[] = []
  if (!settled) {
    writes.push({
      w: 'approval',
      id: phase.approvalId,
      ...target,
      decision,
      outcome: decision,
      ...withReason,
    })
    if (phase.planId !== undefined) writes.push({ w: 'plan_status', id: phase.planId, status: decision })
    if (declined !== undefined && !declined.local) writes.push({ w: 'keep_local', runId: state.runId })
  }
  const events: RunEvent[] = settled
    ? []
    : [{ type: 'approval_resolved', approvalId: phase.approvalId, decision }]
  const payloads: Payload[] = settled
    ? []
    : [
        {
          type: 'approval',
          target_type: target.targetType,
          target_id: target.targetId,
          decision,
          ...withReason,
          kind: phase.kind,
        },
      ]
  const endsRun = decision === 'rejected' && phase.kind !== 'remote_disclosure'
  if (endsRun) {
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
    ...(settled ? {} : broughtBy(state, phase, decision, context)),
  }
  // A gate stands before the call of the turn that raised it; an approved plan is the end of one.
  const turn = phase.kind === 'plan' && !settled ? state.turn + 1 : state.turn
  return withTraces(serveNext(next, writes, events, turn), active.turnId, payloads, context)
}

/** What a decision that lets the run go on changes for the rest of it (EC 13). */
function broughtBy(
  { disclosed, costs = [] }: RunState,
  { kind, disclosure, cost }: Extract<RunPhase, { k: 'AwaitingApproval' }>,
  decision: ApprovalDecision,
  { newId }: StepContext,
): Partial<RunState> {
  if (kind === 'plan') return { planning: false, planApproved: true }
  if (cost !== undefined) return { costs: withCostGrant(costs, cost, newId) }
  if (disclosure === undefined) return {}
  if (decision === 'approved') return { disclosed: withGrant(disclosed, disclosure, newId) }
  return disclosure.local ? { localDeclined: true } : { remoteDeclined: true }
}

/** `decrypted`: every record that was asked for (EC 17.3). The plaintext goes to the turn and nowhere else. */
export function decrypted(
  state: RunState,
  digest: string,
  plaintext: PlainMap,
  context: StepContext,
): Step | Refusal {
  const { phase } = state
  if (phase.k !== 'AwaitingDecrypt') return doesNotFit('decrypted', phase)
  const closed = phase.records.filter((ref) => plaintext[ref] === undefined)
  if (closed.length > 0) return refuse('content is still missing in plaintext', { missing: closed })
  const active = acquire(context)
  const next: RunState = { ...state, active, unsettled: { digest, kind: 'decrypted' } }
  return serveNext(next, [], [], state.turn)
}

/** `sealed`: the ciphertext of everything that the completed turn left open; the run goes idle. */
export function sealed(state: RunState): Step | Refusal {
  const { phase } = state
  if (phase.k !== 'AwaitingEncrypt') return doesNotFit('sealed', phase)
  return {
    state: { ...state, phase: { k: 'Idle' }, unsettled: null, checkpointTurnId: null },
    writes: [],
    events: [],
    effects: [],
    reply: { by: 'outcome', outcome: idle(state.traceId) },
  }
}
