import type { DecisionProgress, RunResponse } from '../../protocol/execution/turn.ts'
import { toWireTime } from '../../protocol/time.ts'
import type { DeviceDecision, RunState, ToolWait } from './state.ts'

/**
 * The current envelope with what devices decided since it was told (D05, D10): the driver runs calls that are approved
 * already, and takes a gate for decided. A call that devices have answered is not asked for any more.
 */
export function withDecisions(envelope: RunResponse, { phase }: RunState): RunResponse {
  if (envelope.status === 'awaiting_tool' && phase.k === 'AwaitingTool') {
    const waits = new Map(phase.calls.map((call) => [call.callId, call]))
    const requests = envelope.data.tool_requests.flatMap((request) => {
      const wait = waits.get(request.call_id)
      if (wait !== undefined && isAnswered(wait)) return []
      return [wait?.decision === undefined ? request : { ...request, ...told(wait.decision, wait.settled) }]
    })
    return { ...envelope, data: { ...envelope.data, tool_requests: requests } }
  }
  if (envelope.status === 'awaiting_approval' && phase.k === 'AwaitingApproval' && phase.byDevice) {
    const approval = { ...envelope.data.approval, ...told(phase.byDevice, phase.decided !== null) }
    return { ...envelope, data: { ...envelope.data, approval } }
  }
  return envelope
}

const isAnswered = ({ settled, questions }: ToolWait): boolean =>
  settled && questions?.every(({ answer }) => answer !== null) === true

const told = (
  { decision, storedAtMs, deliveredAtMs }: DeviceDecision,
  isActedOn: boolean,
): DecisionProgress => ({
  decision,
  decision_state: isActedOn ? 'acted_on' : deliveredAtMs === undefined ? 'stored' : 'delivered',
  decided_at: toWireTime(storedAtMs),
  ...(deliveredAtMs === undefined ? {} : { delivered_at: toWireTime(deliveredAtMs) }),
})
