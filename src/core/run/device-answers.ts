import { failure } from '../../protocol/execution/errors.ts'
import type { Provider } from '../../protocol/execution/ids.ts'
import type { Payload } from '../../protocol/execution/trace.ts'
import type { RemoteErrorCode } from '../../protocol/remote/errors.ts'
import { joinTold } from '../ask-user.ts'
import { acquire, serveNext, withTraces } from './begin.ts'
import { decide, endsRun, settleApproval } from './decide.ts'
import type { RunEvent } from './events.ts'
import type { RunInputEvent } from './inputs.ts'
import { cancelRun } from './interrupt.ts'
import { isUndecided, openQuestion, pendingBatchId } from './pending.ts'
import type { DeviceDecision, RunPhase, RunState, ToolWait } from './state.ts'
import type { Refusal, Step, StepContext } from './step.ts'
import type { Write } from './writes.ts'

type Input<Type extends RunInputEvent['type']> = Extract<RunInputEvent, { type: Type }>

const stale = (message: string, remote: RemoteErrorCode): Refusal => ({
  refused: failure('invalid_request', message),
  remote,
})

const STALE_APPROVAL = stale('what this decision names is not waiting for one', 'stale_approval')
const STALE_QUESTION = stale('this question is not waiting for an answer', 'stale_question')

/**
 * A device decides (D05, RF 19). Calls that it approves stay with their driver, which is shown the decision and runs them;
 * calls that it declines take the turn with them. A gate or a plan goes on at once where the driver's keys are not needed
 * for that; else its decision is kept for the driver's next message, and no reply is given.
 */
export function deviceDecided(
  state: RunState | null,
  input: Input<'device_decided'>,
  context: StepContext,
): Step | Refusal {
  if (state === null || pendingBatchId(state.phase) !== input.batchId) return STALE_APPROVAL
  const { phase } = state
  const { batchId, decision, partial } = input
  if (phase.k === 'AwaitingApproval') return decideGate(state, phase, input, context)
  if (phase.k !== 'AwaitingTool') return STALE_APPROVAL
  if (decision === 'rejected') return cancelRun(state, partial, context, { declined: true })
  const stored: DeviceDecision = { decision, storedAtMs: context.nowMs }
  const calls = phase.calls.map((call) => (isUndecided(call) ? { ...call, decision: stored } : call))
  return {
    state: { ...state, phase: { ...phase, calls } },
    writes: [],
    events: [
      { type: 'approval_resolved', approvalId: batchId, decision },
      { type: 'decision_moved', approvalId: batchId },
    ],
    effects: [],
  }
}

function decideGate(
  state: RunState,
  phase: Extract<RunPhase, { k: 'AwaitingApproval' }>,
  { digest, decision }: Input<'device_decided'>,
  context: StepContext,
): Step | Refusal {
  const { approvalId, disclosure, cost } = phase
  if (endsRun(phase, decision) || mayGoOn(state, disclosure?.provider ?? cost?.provider, context)) {
    const entry = { approval_id: approvalId, decision }
    const decided = decide(state, digest, [entry], context)
    return 'refused' in decided ? decided : { ...decided, state: settledBy(decided.state, approvalId) }
  }
  const { writes, events, payloads } = settleApproval(state, phase, decision, undefined)
  const kept: Step = {
    state: { ...state, phase: { ...phase, byDevice: { decision, storedAtMs: context.nowMs } } },
    writes,
    events: [...events, { type: 'decision_moved', approvalId }],
    effects: [],
  }
  return state.checkpointTurnId === null ? kept : withTraces(kept, state.checkpointTurnId, payloads, context)
}

/**
 * Whether the run can go on without its driver (D06): nobody drives it, or no key is needed that came with the driver's
 * requests. `provider`: the one that the next call goes to, where that is known. A sealed session always waits: what its
 * turns need the client has to open (D47).
 */
function mayGoOn(
  { driver, keyed = [] }: RunState,
  provider: Provider | undefined,
  { sealing }: StepContext,
): boolean {
  if (sealing !== undefined) return false
  if (driver.kind === 'none' || keyed.length === 0) return true
  return provider !== undefined && !keyed.includes(provider)
}

/** More than devices settle in a run that anybody still asks about. */
const MAX_SETTLED = 50

const settledBy = (state: RunState, ...ids: string[]): RunState => ({
  ...state,
  deviceSettled: [...(state.deviceSettled ?? []), ...ids].slice(-MAX_SETTLED),
})

/**
 * One question of a chain is answered (RF 18). The call gets its result with the last one; when no other call of the pause
 * is outstanding, the run goes on, or waits for its driver's keys, as after a gate.
 */
export function questionAnswered(
  state: RunState | null,
  { digest, questionId, answer }: Input<'question_answered'>,
  context: StepContext,
): Step | Refusal {
  const asked = state === null ? null : openQuestion(state.phase)
  if (state === null || state.phase.k !== 'AwaitingTool' || asked?.question.id !== questionId)
    return STALE_QUESTION
  if (context.sealing !== undefined) return CANNOT_BE_SEALED
  const { phase } = state
  const questions = (asked.call.questions ?? []).map((question) =>
    question.id === questionId ? { ...question, answer } : question,
  )
  const told = questions.flatMap((question) => question.answer ?? [])
  const isLast = told.length === questions.length
  const answered: ToolWait = { ...asked.call, questions, settled: isLast }
  const calls = phase.calls.map((call) => (call === asked.call ? answered : call))
  const next: RunState = { ...state, phase: { ...phase, calls } }
  const following = openQuestion(next.phase)
  const { callId, toolName } = answered
  const content = joinTold(told)
  const writes: Write[] = isLast ? [{ w: 'settle_call', callId, isError: false, content }] : []
  const payloads: Payload[] = isLast ? [{ type: 'tool_call', tool_name: toolName, status: 'completed' }] : []
  const events: RunEvent[] = [
    { type: 'question_resolved', questionId },
    ...(isLast
      ? [{ type: 'tool_finished' as const, id: callId, name: toolName, success: true, content }]
      : []),
    ...(following === null
      ? []
      : [{ type: 'question_requested' as const, questionId: following.question.id }]),
  ]
  if (calls.every(({ settled }) => settled) && mayGoOn(state, undefined, context)) {
    const active = acquire(context)
    const ids = calls.filter((call) => call.questions !== undefined).map((call) => call.callId)
    const begun: RunState = {
      ...settledBy(next, ...ids),
      active,
      unsettled: { digest, kind: 'question_answered' },
      unattendedRounds: 0,
    }
    return withTraces(serveNext(begun, writes, events, state.turn + 1), active.turnId, payloads, context)
  }
  const kept: Step = { state: next, writes, events, effects: [] }
  return state.checkpointTurnId === null ? kept : withTraces(kept, state.checkpointTurnId, payloads, context)
}

/** An answer is content, and nobody is there to seal it (D47). */
const CANNOT_BE_SEALED = stale(
  'in an encrypted session a question is answered where the key is',
  'unsupported_operation',
)

/** The whole chain is dismissed, and the turn with it (remote protocol, "Question cancellation"). */
export function questionCancelled(
  state: RunState | null,
  { questionId, partial }: Input<'question_cancelled'>,
  context: StepContext,
): Step | Refusal {
  if (state === null || openQuestion(state.phase)?.question.id !== questionId) return STALE_QUESTION
  return cancelRun(state, partial, context)
}

/** The driver has been shown what devices decided (D10); null where there is nothing that it had not been shown. */
export function decisionDelivered(state: RunState, { nowMs }: StepContext): Step | null {
  const { phase } = state
  const delivered = (decision: DeviceDecision): DeviceDecision => ({ ...decision, deliveredAtMs: nowMs })
  const told = (next: RunPhase, approvalId: string): Step => ({
    state: { ...state, phase: next },
    writes: [],
    events: [{ type: 'decision_moved', approvalId }],
    effects: [],
  })
  if (phase.k === 'AwaitingApproval') {
    const { byDevice, decided, approvalId } = phase
    if (byDevice === undefined || byDevice.deliveredAtMs !== undefined || decided !== null) return null
    return told({ ...phase, byDevice: delivered(byDevice) }, approvalId)
  }
  if (phase.k !== 'AwaitingTool' || phase.batchId === undefined) return null
  const isNew = ({ settled, decision }: ToolWait): boolean =>
    !settled && decision !== undefined && decision.deliveredAtMs === undefined
  if (!phase.calls.some(isNew)) return null
  const calls = phase.calls.map((call) =>
    isNew(call) && call.decision !== undefined ? { ...call, decision: delivered(call.decision) } : call,
  )
  return told({ ...phase, calls }, phase.batchId)
}
