import { assertNever } from '../../protocol/assert.ts'
import type { RemoteEvent } from '../../protocol/remote/events.ts'
import { MAX_MESSAGE_TEXT_BYTES } from '../../protocol/remote/limits.ts'
import type { RemoteTurnTiming } from '../../protocol/remote/message.ts'
import type { RemoteApprovalBatch, RemoteDecision, RemoteQuestion } from '../../protocol/remote/question.ts'
import type { RunEvent } from '../run/events.ts'
import { isOver, type RunState } from '../run/state.ts'
import { headCut } from './bounded-text.ts'
import { toolDetail, toolName } from './labels.ts'

/**
 * What the session is after the step that its events tell of. Each is asked for only when an event needs it, after the rows
 * of the step were written and in the same transaction.
 */
export type ProjectionFacts = {
  /** The batch, gate or plan that waits for a decision. */
  batch(): RemoteApprovalBatch | null
  /** The question that waits for an answer. */
  question(): RemoteQuestion | null
  /** The newest decision of a device in this run. */
  decision(): RemoteDecision | null
  /** When a turn ran, and how it ended. */
  timing(turnId: string): RemoteTurnTiming | null
  /** What stands for the texts of a sealed session, which no device has the key to (D47, U35); null in a clear one. */
  locked(): string | null
}

/** What devices are told of a step (RF 13): one event each, in order. What no event tells makes a snapshot due. */
export const projectEvents = (events: readonly RunEvent[], facts: ProjectionFacts): RemoteEvent[] =>
  events.flatMap((event) => projected(event, facts))

function projected(event: RunEvent, facts: ProjectionFacts): RemoteEvent[] {
  switch (event.type) {
    case 'turn_started':
      return [
        {
          type: 'turn_started',
          turn_id: event.turnId,
          prompt: headCut(facts.locked() ?? event.prompt, MAX_MESSAGE_TEXT_BYTES),
          origin: { kind: 'user' },
          ...timing(event.turnId, facts),
        },
      ]
    case 'tool_started': {
      const { id, name, arguments: args } = event
      const detail = facts.locked() === null ? toolDetail(args) : undefined
      return [
        {
          type: 'tool_started',
          tool: { id, name: toolName(name), ...(detail === undefined ? {} : { detail }), state: 'running' },
        },
      ]
    }
    case 'tool_finished': {
      const { id, success, content } = event
      return [
        {
          type: 'tool_finished',
          id,
          success,
          pending: false,
          content: headCut(facts.locked() ?? content, MAX_MESSAGE_TEXT_BYTES),
        },
      ]
    }
    case 'approval_requested': {
      const approval = facts.batch()
      return approval?.batch_id === event.approvalId ? [{ type: 'approval_requested', approval }] : []
    }
    case 'approval_resolved':
      return [{ type: 'approval_resolved', batch_id: event.approvalId }]
    case 'decision_moved': {
      const decision = facts.decision()
      return decision?.batch_id === event.approvalId ? [{ type: 'approval_decision', decision }] : []
    }
    case 'question_requested': {
      const question = facts.question()
      return question?.question_id === event.questionId ? [{ type: 'question_requested', question }] : []
    }
    case 'question_resolved':
      return [{ type: 'question_resolved', question_id: event.questionId }]
    case 'turn_finished':
    case 'turn_cancelled':
      return [{ type: event.type, turn_id: event.turnId, ...timing(event.turnId, facts) }]
    case 'input_injected':
    case 'turn_interrupted':
      return []
    default:
      return assertNever(event)
  }
}

function timing(turnId: string, facts: ProjectionFacts): { timing?: RemoteTurnTiming } {
  const known = facts.timing(turnId)
  return known === null ? {} : { timing: known }
}

/**
 * Whether a step changed what a snapshot shows in a way that no event tells (RF 13). The begin and the end of a run do: the
 * settings can be changed, or cannot any more, and what was streamed stands in the transcript.
 */
export function needsSnapshot(
  events: readonly RunEvent[],
  before: RunState | null,
  after: RunState,
): boolean {
  return (
    before === null ||
    before.runId !== after.runId ||
    isOver(before) !== isOver(after) ||
    events.some(({ type }) => SILENT.has(type)) ||
    (isPlan(after) && !isPlan(before))
  )
}

/** Nothing is sent of the first two; a run that ends and one that begins in the same step look like one that goes on. */
const SILENT: ReadonlySet<RunEvent['type']> = new Set([
  'input_injected',
  'turn_interrupted',
  'turn_started',
  'turn_finished',
  'turn_cancelled',
])

/** What the model said became a plan: no event tells of that message. */
const isPlan = ({ phase }: RunState): boolean => phase.k === 'AwaitingApproval' && phase.kind === 'plan'
