import type { ToolResult } from '../../protocol/execution/continue.ts'
import type { PlainMap } from '../../protocol/execution/sealed.ts'
import type { Payload } from '../../protocol/execution/trace.ts'
import { acquire, serveNext, withTraces } from './begin.ts'
import { idle } from './envelope.ts'
import type { RunEvent } from './events.ts'
import { openQuestion, pendingBatchId, undecidedCalls } from './pending.ts'
import { doesNotFit, refuse } from './refusals.ts'
import type { RunPhase, RunState } from './state.ts'
import type { Refusal, Step, StepContext } from './step.ts'
import type { Write } from './writes.ts'

/**
 * `tool_results`: every outstanding call exactly once (EC 12.4). A result that has been accepted stays as it is: what
 * repeats it after a crash, or after a device has answered the question, is accepted and ignored (D05). What devices
 * decided does not bind the report: the driver alone knows what was run. The phase stays until the next checkpoint.
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
  const events: RunEvent[] = endWaiting(phase, results)
  const payloads: Payload[] = []
  for (const { call_id: callId, content, is_error: failed, decision: reported } of results) {
    const call = open.get(callId)
    if (call === undefined) continue
    const { toolName: name } = call
    // A call that was declined did not run, whatever else its report says (U22).
    const isError = failed || reported === 'rejected'
    writes.push({ w: 'settle_call', callId, isError, content })
    events.push({ type: 'tool_finished', id: callId, name, success: !isError, content })
    payloads.push({ type: 'tool_call', tool_name: name, status: isError ? 'failed' : 'completed' })
    const decision = reported ?? call.decision?.decision
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
  // Results that were all known already are those of a turn that a crash cut off, which is served again; or devices have
  // answered everything, and the run waits for its driver's keys.
  const isCutOff = open.size === 0 && state.unsettled !== null
  const turn = isCutOff ? state.turn : state.turn + 1
  return withTraces(serveNext(next, writes, events, turn), active.turnId, payloads, context)
}

/** The results end what devices were asked; where a device had decided, its decision has been acted on (D10). */
function endWaiting(phase: Extract<RunPhase, { k: 'AwaitingTool' }>, results: ToolResult[]): RunEvent[] {
  const { batchId, calls } = phase
  const acted = calls.some(({ settled, decision }) => !settled && decision !== undefined)
  const pending = pendingBatchId(phase)
  const declined = new Set(
    results.flatMap(({ call_id: id, decision }) => (decision === 'rejected' ? [id] : [])),
  )
  const decision = undecidedCalls(phase).every(({ callId }) => declined.has(callId)) ? 'rejected' : 'approved'
  const asked = openQuestion(phase)
  return [
    ...(acted && batchId !== undefined ? [{ type: 'decision_moved' as const, approvalId: batchId }] : []),
    ...(pending === null
      ? []
      : [{ type: 'approval_resolved' as const, approvalId: pending, decision, outcome: decision } as const]),
    ...(asked === null
      ? []
      : [
          { type: 'question_resolved' as const, questionId: asked.question.id, outcome: 'answered' as const },
        ]),
  ]
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
