import type { ApprovalDecision } from '../protocol/execution/continue.ts'
import type { PendingApproval, ToolRequest } from '../protocol/execution/turn.ts'

/** What a tool gave, with a few words for whoever watches; a failing tool is an outcome, not an exception. */
export type ToolOutcome = { content: string; isError: boolean; summary?: string }

/** Runs the tools of the machine it lives on. Approval is not its business. */
export type ToolRunner = {
  /** @param signal fires when the run is stopped: end what was started, then return */
  run(call: ToolRequest, signal: AbortSignal): Promise<ToolOutcome>
  /** Whether the call asks the user something, which a device may answer instead (D08). */
  asksUser?(call: ToolRequest): boolean
}

/** A person's answer, with words for the model when there are any. */
export type Decision = { decision: ApprovalDecision; reason?: string }

/** Who decides where the policy says `ask`. */
export type Approver = {
  /**
   * An `ask` call, before it runs. `call.decision` is what another device has said already, if any (D05).
   * @param signal fires when the answer is not needed any more: the run is stopped, or a device has decided
   */
  approveTool(call: ToolRequest, signal: AbortSignal): Promise<Decision>
  /** A gate without a tool: disclosure, cost or a plan (EC 13). The signal is the same. */
  decideGate(approval: PendingApproval, signal: AbortSignal): Promise<Decision>
  /** Whether the approval of a device is enough for this call to run here. Absent: for none (D46). */
  acceptsDevice?(call: ToolRequest): boolean
}
