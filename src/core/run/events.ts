import type { ApprovalDecision } from '../../protocol/execution/continue.ts'
import type { ApprovalKind, ToolApproval } from '../../protocol/execution/turn.ts'

/** A text cut to what an event may hold; the whole stands in the transcript under its id. */
export type BoundedText = { text: string; truncated: boolean; totalChars: number }

/** Longest text in one event; longer ones are cut here and read from the transcript. */
export const EVENT_TEXT_CHARS = 4096

export function boundText(text: string): BoundedText {
  // A pair of surrogates is not cut in two: half of one is no text that every reader accepts.
  const inPair = (text.codePointAt(EVENT_TEXT_CHARS - 1) ?? 0) > 0xffff
  return {
    text: text.slice(0, inPair ? EVENT_TEXT_CHARS - 1 : EVENT_TEXT_CHARS),
    truncated: text.length > EVENT_TEXT_CHARS,
    totalChars: text.length,
  }
}

/** What happened in a session, in order. The ring keeps them; whoever watches follows them by sequence. */
export type RunEvent =
  | { type: 'turn_started'; turnId: string; messageId: string; prompt: BoundedText }
  | { type: 'input_injected'; turnId: string; messageId: string; prompt: BoundedText }
  | { type: 'text_delta'; text: string }
  | { type: 'reasoning_delta'; text: string }
  | { type: 'tool_started'; id: string; name: string; requiresApproval?: ToolApproval }
  | { type: 'tool_finished'; id: string; name: string; success: boolean; content: BoundedText }
  | { type: 'approval_requested'; approvalId: string; kind: ApprovalKind }
  | { type: 'approval_resolved'; approvalId: string; decision: ApprovalDecision }
  | { type: 'turn_finished'; turnId: string; outcome: 'completed' | 'failed' }
  | { type: 'turn_cancelled'; turnId: string }
  /** Serving was cut off by a crash; the run waits at its last checkpoint. */
  | { type: 'turn_interrupted'; turnId: string }

/** The remote protocol's turn is the run (D01). */
export const eventTurnId = (runId: string): string => `turn:${runId}`
