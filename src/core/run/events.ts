import type { ApprovalDecision } from '../../protocol/execution/continue.ts'
import type { EndedOutcome, SettledOutcome } from './writes.ts'

/**
 * What happened in a run, in order. What devices see of it is made of these and of what the session is after the step
 * (`core/remote/project.ts`). Text that a model streams is no step of the machine, and stands in no event of it.
 */
export type RunEvent =
  | { type: 'turn_started'; turnId: string; messageId: string; prompt: string }
  | { type: 'input_injected'; turnId: string; messageId: string; prompt: string }
  | { type: 'tool_started'; id: string; name: string; arguments: Record<string, unknown> }
  | { type: 'tool_finished'; id: string; name: string; success: boolean; content: string }
  /** Something waits for a decision: a gate, a plan, or the calls of a pause together (D02). */
  | { type: 'approval_requested'; approvalId: string }
  | {
      type: 'approval_resolved'
      approvalId: string
      decision: ApprovalDecision
      /** What a late answer is told, where nothing else that is stored says it (U21). */
      outcome?: SettledOutcome
    }
  /** How far the decision of a device has come on its way to the driver has changed (D10, U19). */
  | { type: 'decision_moved'; approvalId: string }
  | { type: 'question_requested'; questionId: string }
  | { type: 'question_resolved'; questionId: string; outcome?: QuestionOutcome }
  | { type: 'turn_finished'; turnId: string; outcome: 'completed' | 'failed' }
  | { type: 'turn_cancelled'; turnId: string }
  /** Serving was cut off by a crash; the run waits at its last checkpoint. */
  | { type: 'turn_interrupted'; turnId: string }

/** What became of a question that nobody answered from a device. */
export type QuestionOutcome = 'answered' | EndedOutcome

/** The remote protocol's turn is the run (D01). */
export const eventTurnId = (runId: string): string => `turn:${runId}`
