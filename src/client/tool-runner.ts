import type { ApprovalDecision } from '../protocol/execution/continue.ts'
import type { PendingApproval, ToolRequest } from '../protocol/execution/turn.ts'

/** What a tool gave, with a few words for whoever watches; a failing tool is an outcome, not an exception. */
export type ToolOutcome = { content: string; isError: boolean; summary?: string }

/** Runs the tools of the machine it lives on. Approval is not its business. */
export type ToolRunner = {
  /** @param signal fires when the run is stopped: end what was started, then return */
  run(call: ToolRequest, signal: AbortSignal): Promise<ToolOutcome>
}

/** A person's answer, with words for the model when there are any. */
export type Decision = { decision: ApprovalDecision; reason?: string }

/** Who decides where the policy says `ask`. */
export type Approver = {
  /** An `ask` call, before it runs. `call.decision` is what another device has said already, if any (D05). */
  approveTool(call: ToolRequest, signal: AbortSignal): Promise<Decision>
  /** A gate without a tool: disclosure, cost or a plan (EC 13). */
  decideGate(approval: PendingApproval, signal: AbortSignal): Promise<Decision>
}
