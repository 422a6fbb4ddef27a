import type { AskedQuestion, RunPhase, ToolWait } from './state.ts'

/** Nobody has decided this call, nor reported on it. */
export const isUndecided = ({ requiresApproval, settled, decision }: ToolWait): boolean =>
  requiresApproval === 'ask' && !settled && decision === undefined

/** Calls of a pause that wait for a decision: devices decide all of them together (D02). */
export const undecidedCalls = (phase: RunPhase): ToolWait[] =>
  phase.k === 'AwaitingTool' ? phase.calls.filter(isUndecided) : []

/** The id under which a device may decide what waits for a decision; null when nothing does (D02). */
export function pendingBatchId(phase: RunPhase): string | null {
  if (phase.k === 'AwaitingApproval')
    return phase.decided === null && phase.byDevice === undefined ? phase.approvalId : null
  if (phase.k !== 'AwaitingTool') return null
  const [first] = undecidedCalls(phase)
  // A pause of an older release has no id of its own: its first call names it.
  return first === undefined ? null : (phase.batchId ?? first.callId)
}

/** A question of a call that waits, and its place among those of the call. */
export type OpenQuestion = { call: ToolWait; index: number; question: AskedQuestion }

/** The question that is asked now: they are asked one after the other, call by call (RF 18). Null: none is. */
export function openQuestion(phase: RunPhase): OpenQuestion | null {
  if (phase.k !== 'AwaitingTool') return null
  for (const call of phase.calls) {
    if (call.settled) continue
    const index = call.questions?.findIndex(({ answer }) => answer === null) ?? -1
    const question = call.questions?.[index]
    if (question !== undefined) return { call, index, question }
  }
  return null
}
