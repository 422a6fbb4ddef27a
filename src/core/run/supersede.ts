import type { Payload } from '../../protocol/execution/trace.ts'
import { costPayloads } from './costs.ts'
import { eventTurnId, type RunEvent } from './events.ts'
import type { Partial } from './inputs.ts'
import { openQuestion, pendingBatchId, undecidedCalls } from './pending.ts'
import { saidBy, saying } from './saying.ts'
import { decisionTarget, isOver, type RunState, type ToolWait } from './state.ts'
import type { Effect, Step, StepContext } from './step.ts'
import type { EndedOutcome, Write } from './writes.ts'

/** What a superseding message leaves behind of the turn or the pause that it ends (EC 15). */
export type Superseded = { writes: Write[]; events: RunEvent[]; effects: Effect[]; payloads: Payload[] }

/**
 * Why something is ended (U22): what becomes of a decision that waits, why, and what a call that waits is answered with.
 * Stored results are told apart by these notes (`endingOf`): a note that is changed keeps its old text among them.
 */
const ENDINGS = {
  stopped: { outcome: 'cancelled', reason: 'the run was stopped', note: 'Cancelled by the user.' },
  new_input: {
    outcome: 'superseded',
    reason: 'the user gave new input',
    note: 'Cancelled: the user gave new input.',
  },
  new_run: {
    outcome: 'superseded',
    reason: 'the user started something else',
    note: 'Cancelled: the user started something else.',
  },
  /** A device declined what waited for a decision, and with it the turn (RF 19). */
  declined: { outcome: 'cancelled', reason: 'the run was stopped', note: 'Cancelled by the user.' },
} as const satisfies Record<string, { outcome: EndedOutcome; reason: string; note: string }>

/** The result of a call that a device declined: a decision, and no mere end of the wait (U22). */
export const DECLINED_NOTE = 'Declined by the user.'

export type Ending = keyof typeof ENDINGS

/** What ended the wait for a call that was answered with this error; null where the call's own report is its result. */
export const endingOf = (result: string): EndedOutcome | null =>
  Object.values(ENDINGS).find(({ note }) => note === result)?.outcome ?? null

/**
 * Ends what is going on: the turn that is being served is cut and its partial kept as interrupted; calls that wait
 * get a cancellation as their result; a decision that waits is rejected. What the run is left as, the caller says.
 */
export function supersede(
  state: RunState,
  partial: Partial | null,
  ending: Ending,
  context: StepContext,
): Superseded {
  const { outcome, reason, note } = ENDINGS[ending]
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
    const batchId = pendingBatchId(phase)
    if (batchId !== null)
      result.events.push({
        type: 'approval_resolved',
        approvalId: batchId,
        decision: 'rejected',
        outcome: ending === 'declined' ? 'rejected' : outcome,
      })
    const asked = openQuestion(phase)
    if (asked !== null)
      result.events.push({ type: 'question_resolved', questionId: asked.question.id, outcome })
    const declined = ending === 'declined' ? undecidedCalls(phase) : []
    const cancelled = cancelCalls(
      phase.calls.filter(({ settled }) => !settled),
      (call) => (declined.includes(call) ? DECLINED_NOTE : note),
    )
    result.writes.push(...declined.map((call) => declinedCall(call, context)))
    result.payloads.push(
      ...declined.map(
        ({ callId }): Payload => ({
          type: 'approval',
          target_type: 'tool_call',
          target_id: callId,
          decision: 'rejected',
        }),
      ),
    )
    result.writes.push(...cancelled.writes)
    result.events.push(...cancelled.events)
    result.payloads.push(...cancelled.payloads)
  }
  if (phase.k === 'AwaitingApproval' && pendingBatchId(phase) !== null) {
    const target = decisionTarget(phase)
    result.writes.push({ w: 'approval', id: phase.approvalId, ...target, decision: 'rejected', outcome })
    if (phase.planId !== undefined)
      result.writes.push({ w: 'plan_status', id: phase.planId, status: 'rejected' })
    result.events.push({ type: 'approval_resolved', approvalId: phase.approvalId, decision: 'rejected' })
    result.payloads.push({
      type: 'approval',
      target_type: target.targetType,
      target_id: target.targetId,
      decision: 'rejected',
      reason: `${outcome}: ${reason}`,
      kind: phase.kind,
    })
  }
  return result
}

/** What tells that a run is given up; nothing for one that came to its end by itself. */
export const givenUp = (state: RunState): RunEvent[] =>
  isOver(state) ? [] : [{ type: 'turn_cancelled', turnId: eventTurnId(state.runId) }]

const declinedCall = ({ callId }: ToolWait, { newId }: StepContext): Write => ({
  w: 'approval',
  id: newId(),
  targetType: 'tool_call',
  targetId: callId,
  decision: 'rejected',
  outcome: 'rejected',
})

function cancelCalls(calls: ToolWait[], noteOf: (call: ToolWait) => string): Omit<Superseded, 'effects'> {
  return {
    writes: calls.map((call) => ({
      w: 'settle_call',
      callId: call.callId,
      isError: true,
      content: noteOf(call),
    })),
    events: calls.map((call) => ({
      type: 'tool_finished',
      id: call.callId,
      name: call.toolName,
      success: false,
      content: noteOf(call),
    })),
    payloads: calls.map((call) => ({
      type: 'tool_call',
      tool_name: call.toolName,
      status: 'failed',
      error: noteOf(call),
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
