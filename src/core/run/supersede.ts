import type { ApprovalDecision } from '../../protocol/execution/continue.ts'
import type { Payload } from '../../protocol/execution/trace.ts'
import { costPayloads } from './costs.ts'
import { boundText, eventTurnId, type RunEvent } from './events.ts'
import type { Partial } from './inputs.ts'
import { saidBy, saying } from './saying.ts'
import { decisionTarget, isOver, type RunState, type ToolWait } from './state.ts'
import type { Effect, Step, StepContext } from './step.ts'
import type { SettledOutcome, Write } from './writes.ts'

/** What a superseding message leaves behind of the turn or the pause that it ends (EC 15). */
export type Superseded = { writes: Write[]; events: RunEvent[]; effects: Effect[]; payloads: Payload[] }

/** Why something is ended: what a call that waits is answered with, and what became of a decision that waits (U22). */
export type Ending = { note: string; outcome: Exclude<SettledOutcome, ApprovalDecision> }

/**
 * Ends what is going on: the turn that is being served is cut and its partial kept as interrupted; calls that wait
 * get a cancellation as their result; a decision that waits is rejected. What the run is left as, the caller says.
 */
export function supersede(
  state: RunState,
  partial: Partial | null,
  { note, outcome }: Ending,
  context: StepContext,
): Superseded {
  const result: Superseded = { writes: [], events: [], effects: [], payloads: [] }
  if (state.active) {
    const { turnId } = state.active
    if (partial) {
      if (partial.text.trim() !== '') {
        result.writes.push(saying(state.runId, partial.text, partial.call, context, { interrupted: true }))
        result.payloads.push(saidBy(partial.call))
      }
      result.writes.push({ w: 'call_settled', turnId, call: partial.call })
      result.payloads.push(...costPayloads(partial.call))
    }
    result.writes.push({ w: 'close_turn', turnId, status: 'superseded', outcome: null })
    result.effects.push({ e: 'cancel_turn', turnId })
  }
  const { phase } = state
  if (phase.k === 'AwaitingTool') {
    const cancelled = cancelCalls(
      phase.calls.filter(({ settled }) => !settled),
      note,
    )
    result.writes.push(...cancelled.writes)
    result.events.push(...cancelled.events)
    result.payloads.push(...cancelled.payloads)
  }
  if (phase.k === 'AwaitingApproval' && phase.decided === null) {
    const target = decisionTarget(phase)
    result.writes.push({ w: 'approval', id: phase.approvalId, ...target, decision: 'rejected', outcome })
    if (phase.planId !== undefined)
      result.writes.push({ w: 'plan_status', id: phase.planId, status: 'rejected' })
    result.events.push({ type: 'approval_resolved', approvalId: phase.approvalId, decision: 'rejected' })
  }
  return result
}

/** What tells that a run is given up; nothing for one that came to its end by itself. */
export const givenUp = (state: RunState): RunEvent[] =>
  isOver(state) ? [] : [{ type: 'turn_cancelled', turnId: eventTurnId(state.runId) }]

function cancelCalls(calls: ToolWait[], note: string): Omit<Superseded, 'effects'> {
  return {
    writes: calls.map(({ callId }) => ({ w: 'settle_call', callId, isError: true, content: note })),
    events: calls.map(({ callId, toolName }) => ({
      type: 'tool_finished',
      id: callId,
      name: toolName,
      success: false,
      content: boundText(note),
    })),
    payloads: calls.map(({ toolName }) => ({
      type: 'tool_call',
      tool_name: toolName,
      status: 'failed',
      error: note,
    })),
  }
}

/**
 * Clears a lock that a crash left. The phase stays: it is the last checkpoint, and whoever sent the request that was
 * cut off may send it again (EC 5.8).
 */
export function recover(state: RunState): Step {
  const turnId = state.active?.turnId
  if (turnId === undefined) return { state, writes: [], events: [], effects: [] }
  return {
    state: { ...state, active: null },
    writes: [{ w: 'close_turn', turnId, status: 'interrupted', outcome: null }],
    events: [{ type: 'turn_interrupted', turnId: eventTurnId(state.runId) }],
    // Nothing after a crash; the turn itself where only its lease ran out.
    effects: [{ e: 'cancel_turn', turnId }],
  }
}
